"""Every launch of the shipped profiles is one that the installed ms-swift's own parsers take."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Literal

from console.cli.files import shipped
from console.core.plan.launch import Launch, plan_launches
from console.core.plan.matrix import Configuration, Mode
from console.core.plan.profile import Profile, parse_profile
from console.engine.forecast import forecast, places_on_paper
from console.engine.planning import smoke_of, smoke_settings

PARSER = Path(__file__).parents[1] / "support" / "framework_parser.py"
PROGRAM_WORDS = 4
"""python -m MODULE sft"""


def profiles() -> dict[str, Profile]:
    folder = shipped("profiles")
    return {
        path.stem: parse_profile(path.read_text(encoding="utf-8"), file=path.name)
        for path in sorted(folder.glob("*.yaml"))
    }


def launches(profile: Profile) -> list[tuple[str, Mode, Launch]]:
    """The first rank of every configuration, and the checklist's small runs."""
    matrices = [one for one in (profile.matrix, profile.degraded_matrix) if one is not None]
    configurations = [config for matrix in matrices for config in matrix.configurations]
    return [
        *((config.id, config.mode, forecast(profile, config)[0]) for config in configurations),
        ("smoke-ordinary", "swift", smoke(profile, "ordinary")),
        ("smoke-megatron", "megatron", smoke(profile, "megatron")),
    ]


def smoke(profile: Profile, which: Literal["ordinary", "megatron"]) -> Launch:
    run, mode = smoke_of(profile, which)
    return plan_launches(
        profile,
        Configuration(id=f"smoke-{which}", title="x", mode=mode, varies="nothing"),
        master_port=29500,
        places=places_on_paper(profile, "smoke"),
        model=run.model,
        dataset=run.dataset,
        settings=smoke_settings(profile, run, mode),
    )[0]


def refused(asked: list[tuple[str, list[str]]]) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(PARSER)], input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answers: list[str] = json.loads(done.stdout)
    assert len(answers) == len(asked)
    return answers


def test_every_shipped_launch_is_understood() -> None:
    named = [
        (f"{name} {run}", mode, list(launch.argv[PROGRAM_WORDS:]))
        for name, profile in profiles().items()
        for run, mode, launch in launches(profile)
    ]
    assert {"spark-pair E0", "spark-pair E3", "embedded E1", "h200-pair E2"} <= {name for name, _, _ in named}
    answers = refused([(mode, flags) for _, mode, flags in named])
    assert {name: words for (name, _, _), words in zip(named, answers, strict=True) if words} == {}


def test_the_parsers_do_refuse() -> None:
    """What the test above would miss if the parsers took anything."""
    fraction, unknown = refused(
        [("megatron", ["--num_train_epochs", "1.0"]), ("swift", ["--train_type", "lora"])]
    )
    assert "invalid int value" in fraction
    assert "--train_type" in unknown
