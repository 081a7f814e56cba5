"""`lab watch --json`: every event once and at once, for any number of watchers, until nobody wants more."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from support.waiting import until

from console.cli.files import read_lab
from console.core.record import events as ev
from console.engine.opening import open_recorder
from console.engine.recorder import Recorder
from console.engine.replay import WatchSession
from console.tui.app import LabApp

SECONDS = 60

Watching = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    """The console that works on the experiment."""
    recorder = open_recorder(tmp_path / "experiment", read_lab("embedded"))
    yield recorder
    recorder.journal.close()


@pytest.fixture
def watching(recorder: Recorder) -> Iterator[Watching]:
    """`watching()`: one more process that looks on."""
    started: list[subprocess.Popen[str]] = []

    def start(stdout: IO[str] | int = subprocess.PIPE) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "console.cli.main", "watch", str(recorder.journal.folder), "--json"]
        process = subprocess.Popen(
            command,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def note(recorder: Recorder, words: str) -> None:
    recorder.record(ev.Noted(at=recorder.now(), words=words))


def close(recorder: Recorder) -> None:
    recorder.record(ev.ExperimentClosed(at=recorder.now(), outcome="accepted"))


def next_event(process: "subprocess.Popen[str]") -> dict[str, object]:
    """The next line; it comes although the pipe is far from full."""
    assert process.stdout is not None
    found: dict[str, object] = json.loads(process.stdout.readline())
    return found


def test_two_watchers_see_every_event_once_as_it_happens(recorder: Recorder, watching: Watching) -> None:
    note(recorder, "before")
    watchers = [watching(), watching()]
    for watcher in watchers:
        assert next_event(watcher)["kind"] == "experiment opened"
        assert next_event(watcher)["words"] == "before"
    for number in range(3):
        note(recorder, f"live {number}")
        assert [next_event(watcher)["words"] for watcher in watchers] == [f"live {number}"] * 2
    close(recorder)
    for watcher in watchers:
        rest, errors = watcher.communicate(timeout=SECONDS)
        assert [json.loads(line)["kind"] for line in rest.splitlines()] == ["experiment closed"]
        assert (watcher.returncode, errors) == (0, "")


def test_events_that_pour_in_while_one_begins_to_watch_come_once_and_in_order(
    recorder: Recorder, watching: Watching, tmp_path: Path
) -> None:
    shown = tmp_path / "shown"
    with shown.open("w") as file:
        watcher = watching(stdout=file)
    deadline = time.monotonic() + SECONDS
    while not shown.stat().st_size and time.monotonic() < deadline:
        note(recorder, "again")
    for _ in range(50):
        note(recorder, "and again")
    close(recorder)
    assert watcher.wait(SECONDS) == 0
    journalled = [ev.event_json(event) for _, event in recorder.journal.events()]
    assert shown.read_text().splitlines() == journalled


def test_a_reader_that_has_enough_ends_it_without_a_word(recorder: Recorder, watching: Watching) -> None:
    watcher = watching()
    next_event(watcher)
    assert watcher.stdout is not None
    watcher.stdout.close()
    assert watcher.wait(SECONDS) == 128 + signal.SIGPIPE
    assert watcher.stderr is not None
    assert watcher.stderr.read() == ""


def test_a_pipe_closed_while_it_writes_ends_it_without_a_word(recorder: Recorder, tmp_path: Path) -> None:
    for number in range(3000):
        note(recorder, f"{number} " + 100 * "x")
    command = f"{sys.executable} -m console.cli.main watch {recorder.journal.folder} --json | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert json.loads(done.stdout)["kind"] == "experiment opened"
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_ctrl_c_ends_it_with_130_and_without_a_word(recorder: Recorder, watching: Watching) -> None:
    watcher = watching()
    next_event(watcher)
    watcher.send_signal(signal.SIGINT)
    rest, errors = watcher.communicate(timeout=SECONDS)
    assert (watcher.returncode, rest, errors) == (130, "", "")


class LateWatch(WatchSession):
    """An event comes, and is drawn, after the goodbye."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder.journal.folder)
        self.recorder = recorder
        self.drawn: Callable[[], None]

    async def leave(self) -> None:
        await super().leave()
        note(self.recorder, "late")
        await until(lambda: self.experiment.timeline[-1].words == "late", "the late event")
        self.drawn()


async def test_leaving_the_screens_while_events_arrive(recorder: Recorder) -> None:
    with LateWatch(recorder) as session:
        follower = asyncio.create_task(session.follow())
        app = LabApp(session)
        session.drawn = lambda: app.lab_screen.redraw()
        async with app.run_test() as pilot:
            note(recorder, "before")
            await until(lambda: bool(session.experiment.timeline), "the first event")
            await pilot.press("q")
            await until(lambda: app.return_value is not None, "the exit")
        app.raise_fault()
        follower.cancel()
        with pytest.raises(asyncio.CancelledError):
            await follower
    assert session.experiment.timeline[-1].words == "late"
