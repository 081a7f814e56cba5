"""A small lab on embedded nodes with checklists of the tests' own."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from support.docker_engine import Standin, free_port
from support.processes import end_processes_of

from console.cli.files import read_rules, shipped
from console.engine.conductor import Conductor
from console.engine.crew import Crew, assembled
from console.engine.opening import LabFiles, open_recorder
from console.engine.recorder import Recorder, utc_now

PROFILE = (shipped("profiles") / "embedded.yaml").read_text(encoding="utf-8")


@dataclass
class SmallLab:
    recorder: Recorder
    crew: Crew
    conductor: Conductor


@pytest.fixture
def small_lab(tmp_path: Path) -> Callable[..., object]:
    """`async with small_lab(checklist_text, policy="go on") as lab`: connected, nothing begun yet."""

    @asynccontextmanager
    async def build(
        checklist: str,
        *,
        profile: str = PROFILE,
        headless: bool = True,
        folder: str = "small",
        only: tuple[str, ...] = (),
        now: Callable[[], datetime] = utc_now,
    ) -> AsyncIterator[SmallLab]:
        root = tmp_path / folder
        root.mkdir(exist_ok=True)
        recorder = open_recorder(root, LabFiles(profile, "small.yaml", checklist), only=only, now=now)
        async with assembled(recorder.experiment.profile, root, recorder=recorder) as crew:
            yield SmallLab(recorder, crew, Conductor(recorder, crew, read_rules(), headless=headless))
        recorder.journal.close()

    return build


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where a lab is kept, under a name of its own; what it left running is ended after the test."""
    yield tmp_path / f"lab-{os.getpid()}"
    end_processes_of(tmp_path)


@pytest.fixture
def standin(tmp_path: Path) -> Standin:
    """The service of node-a, not started yet."""
    made = Standin("node-a", free_port(), tmp_path / "control")
    made.set()
    return made


@pytest.fixture
def trainer(tmp_path: Path) -> Path:
    """Stands in for the interpreter of training: it goes on until it is ended."""
    path = tmp_path / "trainer"
    path.write_text("#!/bin/sh\nexec sleep 600\n")
    path.chmod(0o755)
    return path
