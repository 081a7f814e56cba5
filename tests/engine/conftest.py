"""A small lab on embedded nodes with checklists of the tests' own."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

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
        now: Callable[[], datetime] = utc_now,
    ) -> AsyncIterator[SmallLab]:
        root = tmp_path / folder
        root.mkdir(exist_ok=True)
        recorder = open_recorder(root, LabFiles(profile, "small.yaml", checklist), now=now)
        async with assembled(recorder.experiment.profile, root, recorder=recorder) as crew:
            yield SmallLab(recorder, crew, Conductor(recorder, crew, read_rules(), headless=headless))
        recorder.journal.close()

    return build
