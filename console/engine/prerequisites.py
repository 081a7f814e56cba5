"""What must be true of the machines before anything is stopped: warnings, some of which block."""

import asyncio

from console.core.errors import ServiceError
from console.core.plan.align import check_prerequisites
from console.core.record import events as ev
from console.engine.crew import Crew
from console.engine.recorder import Recorder
from console.nodes.probes import run_probe

PROBE_SECONDS = 90


async def check(recorder: Recorder, crew: Crew) -> None:
    """Ask every node, record each judgement. Raises `ServiceError` when one blocks by the policy."""
    answers = await asyncio.gather(
        *(
            run_probe(
                member.node,
                member.node.target.interpreter,
                "prerequisites",
                {"paths": {"checkpoints": "~/.lab", "shared": member.shared}},
                timeout=PROBE_SECONDS,
            )
            for member in crew.values()
        )
    )
    profile = recorder.experiment.profile
    found = check_prerequisites(
        dict(zip(crew, answers, strict=True)),
        needed_disk_bytes=profile.policies.needed_disk_bytes,
        max_clock_skew_seconds=profile.network.max_clock_skew_seconds,
    )
    blocking = []
    for judged in found:
        blocks = judged.passed is False and judged.name in profile.policies.prerequisite_blocks
        recorder.record(
            ev.PrerequisiteChecked(
                at=recorder.now(),
                node=judged.node,
                name=judged.name,
                passed=judged.passed,
                blocks=blocks,
                words=judged.words,
                remedy=judged.remedy,
            )
        )
        if blocks:
            blocking.append(judged)
    if blocking:
        first = blocking[0]
        raise ServiceError(
            f"not fit for the window: {first.words}",
            node=first.node,
            why="the profile's policy lets no window begin without: "
            + ", ".join(dict.fromkeys(judged.name for judged in blocking)),
            next_step=first.remedy,
        )
