"""What goes wrong before or in a run is one clear message, and leaves nothing behind."""

import socket
from pathlib import Path

import pytest
from support.borrowed_lab import CHECKLIST, profile_with

from console.core.errors import LabError
from console.engine import running


def trainer(tmp_path: Path, script: str) -> Path:
    path = tmp_path / "trainer"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


async def guards(lab) -> list[str]:
    """Nodes on which a guard stands."""
    return [node for node, status in (await lab.conductor.guarding.statuses()).items() if status.alive]


async def test_a_rendezvous_port_that_is_taken(small_lab, tmp_path: Path) -> None:
    profile = profile_with({}, trainer=trainer(tmp_path, "exec sleep 600"))
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        profile = profile.replace("master_port: auto", f"master_port: {port}")
        async with small_lab(CHECKLIST, profile=profile) as lab:
            with pytest.raises(LabError, match=f"the rendezvous port {port} is not free") as told:
                await lab.conductor.conduct()
            assert "network.master_port" in told.value.next_step
            assert len(told.value.render().splitlines()) == 3
            assert not await guards(lab)
            assert not lab.recorder.experiment.runs
            assert lab.recorder.experiment.outcome is None, "it can be taken up again"


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("exec {python} -c 'import no_such_torch'", "ModuleNotFoundError: No module named 'no_such_torch'"),
        (
            "exec {python} -c 'open(\"/no/such/model/config.json\")'",
            "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/model/config.json'",
        ),
        ("exit 3", "node-a exit 3"),
    ],
    ids=["without torch", "no model", "no words"],
)
async def test_a_run_that_cannot_train(small_lab, tmp_path: Path, script: str, cause: str) -> None:
    program = trainer(tmp_path, script.format(python="/usr/bin/python3"))
    profile = profile_with({}, trainer=program).replace("run_failed: retry", "run_failed: stop")
    async with small_lab(CHECKLIST, profile=profile) as lab:
        assert await lab.conductor.conduct() == "stopped"
        (run,) = lab.recorder.experiment.runs.values()
        assert run.outcome == "failed"
        assert cause in run.cause
        assert "Traceback" not in run.cause
        assert not await guards(lab)


async def test_an_interpreter_that_is_not_on_the_node(small_lab, tmp_path: Path) -> None:
    profile = profile_with({}, trainer=tmp_path / "nowhere").replace("run_failed: retry", "run_failed: stop")
    async with small_lab(CHECKLIST, profile=profile) as lab:
        assert await lab.conductor.conduct() == "stopped"
        (run,) = lab.recorder.experiment.runs.values()
        assert str(tmp_path / "nowhere") in run.cause
        assert "next:" in run.cause
        assert len(run.cause.splitlines()) <= 3


TABLE = """
Root Cause (first observed failure):
[0]:
  time      : 2026-03-01_10:00:02
  rank      : 1 (local_rank: 0)
  exitcode  : -9 (pid: 8204)
"""
TOLD = """
Traceback (most recent call last):
  File "run.py", line 1
torch.distributed.elastic.multiprocessing.api.SignalException: Process 8047 got signal: 15
"""


async def test_a_killed_rank_is_the_cause_and_the_end_of_the_other_is_ours(
    small_lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "ENDING_SECONDS", 0.5)
    (tmp_path / "table").write_text(TABLE)
    (tmp_path / "told").write_text(TOLD)
    program = trainer(
        tmp_path,
        f'[ "$NODE_RANK" = 1 ] && {{ cat {tmp_path}/table; exit 1; }}\n'
        f'trap "cat {tmp_path}/told; exit 1" TERM\n'
        "sleep 600 & wait",
    )
    profile = profile_with({}, trainer=program).replace("run_failed: retry", "run_failed: stop")
    profile = profile.replace("      nodes: 1\n", "      nodes: 2\n")
    async with small_lab(CHECKLIST, profile=profile) as lab:
        assert await lab.conductor.conduct() == "stopped"
        (run,) = lab.recorder.experiment.runs.values()
        what, advice = run.cause.splitlines()
        assert what.startswith("node-b: rank 1 (local rank 0) was killed by SIGKILL")
        assert what.endswith("; node-a was then ended by the console")
        assert "dmesg on node-b" in advice
