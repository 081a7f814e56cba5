"""Running an experiment, with or without a screen, to its end or to the user's goodbye."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from console.cli.files import read_rules
from console.cli.kept import restore_command
from console.cli.sources import told_unsound
from console.cli.telling import drop_output
from console.core.errors import LabError, ServiceError
from console.core.record.acceptance import Lang
from console.core.record.events import Event, event_json
from console.core.record.experiment import Experiment
from console.core.record.timeline import line_of
from console.engine.conductor import Conductor
from console.engine.crew import assembled
from console.engine.live import LiveSession
from console.engine.opening import LabFiles, open_recorder
from console.journal.lock import ExperimentLock
from console.report.export import export

LEFT = 130
CODES = {"accepted": 0, "fell short": 1, "stopped": 1}


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked for on the command line."""

    files: LabFiles
    folder: Path
    command: str
    """How to come back, as typed."""
    only: tuple[str, ...] = ()
    headless: bool = True
    as_json: bool = False
    lang: Lang = "en"
    window_hours: float | None = None
    accept_new: bool = False


async def conduct(wish: Wish) -> int:
    """The experiment to its end; returns the exit code. Raises `LabError`."""
    wish.folder.mkdir(parents=True, exist_ok=True)
    with (
        ExperimentLock(wish.folder),
        open_recorder(wish.folder, wish.files, only=wish.only, window_hours=wish.window_hours) as recorder,
    ):
        if recorder.experiment.outcome is not None:
            print(f"{wish.folder} holds an experiment that has ended: nothing is run", file=sys.stderr)
            print("  next: give another --out to begin a new one", file=sys.stderr)
            return _ended(recorder.experiment, wish)
        async with assembled(
            recorder.experiment.profile, wish.folder, recorder=recorder, accept_new=wish.accept_new
        ) as crew:
            conductor = Conductor(recorder, crew, read_rules(), headless=wish.headless)
            try:
                if wish.headless:
                    recorder.listen(printer(wish.as_json))
                    code = await _without_screen(conductor)
                else:
                    code = await _with_screen(conductor, wish)
            except Exception:
                _goodbye(recorder.experiment, wish)
                raise
        if recorder.experiment.outcome is not None:
            return _ended(recorder.experiment, wish)
        _goodbye(recorder.experiment, wish)
        return code


async def _without_screen(conductor: Conductor) -> int:
    """Until the end, or until the user interrupts: then the jobs go on."""
    task = asyncio.create_task(conductor.conduct(), name="conductor")
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        return CODES[await task]
    except asyncio.CancelledError:
        await conductor.leave()
        return LEFT


async def _with_screen(conductor: Conductor, wish: Wish) -> int:
    """The screens over the running conductor; leaving them leaves the jobs at work.

    They stay open when the conductor ends before the user does. What it raises is raised once they are left.
    """
    from console.tui.app import LabApp
    from console.tui.messages import WorkFailed

    app = LabApp(LiveSession(conductor), wish.lang, return_command=wish.command)
    task = asyncio.create_task(conductor.conduct(), name="conductor")

    def tell(ended: asyncio.Task[str]) -> None:
        if not ended.cancelled() and (error := ended.exception()) is not None:
            app.post_message(WorkFailed(error if isinstance(error, LabError) else unforeseen(error)))

    task.add_done_callback(tell)
    await app.run_async()
    if task.done():
        app.raise_fault()
        return CODES[task.result()]
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await conductor.leave()
    app.raise_fault()
    return LEFT


def unforeseen(error: BaseException) -> LabError:
    """A fault of the console itself as the screens show it; its traceback goes where `lab` keeps them."""
    return LabError(
        f"the console met an error of its own: {type(error).__name__}: {error}",
        next_step="leave and start again, the experiment is taken up where it stood",
    )


def printer(as_json: bool) -> Callable[[Experiment, Event], None]:
    """One line per event: JSON of every event, or the timeline's words.

    Output that goes nowhere any more does not end the lab: everything is in the journal.
    """

    def show(experiment: Experiment, event: Event) -> None:
        text = event_json(event) if as_json else _told(event)
        if text is None:
            return
        try:
            print(text, flush=True)
        except OSError as error:
            drop_output()
            gone = isinstance(error, BrokenPipeError)
            why = "nobody reads any more" if gone else f"{error.strerror}: standard output"
            print(f"{why}; the lab goes on", file=sys.stderr)

    return show


def _told(event: Event) -> str | None:
    line = line_of(event)
    if line is None:
        return None
    where = " ".join(part for part in (line.run, line.node) if part)
    words = line.words.replace("\n", "\n" + " " * 10)
    return f"{line.at.astimezone():%H:%M:%S}  {where + ': ' if where else ''}{words}"


def _ended(experiment: Experiment, wish: Wish) -> int:
    """Export, and the exit code. Raises `ServiceError` while the service is not back, however it ended."""
    _export(experiment, wish)
    if experiment.service.owed:
        raise ServiceError(
            "the service is not back",
            why=experiment.service.words,
            next_step=f"see to what it says, then: {restore_command(wish.files, wish.folder)}",
        )
    return CODES[experiment.outcome or "stopped"]


def _export(experiment: Experiment, wish: Wish) -> None:
    unsound = told_unsound(experiment, wish.folder)
    written = export(experiment, wish.folder / "exports", lang=wish.lang, unsound=unsound)
    if wish.as_json:
        print(json.dumps({"kind": "exported", "files": [str(path) for path in written]}), flush=True)
        return
    print(f"\n{experiment.outcome}; sheet and one page:", file=sys.stderr)
    for path in written:
        print(f"  {path}", file=sys.stderr)


def _goodbye(experiment: Experiment, wish: Wish) -> None:
    """Tell what goes on without the console, unless the terminal was closed."""
    try:
        _tell_what_goes_on(experiment, wish)
    except OSError:
        drop_output()


def _tell_what_goes_on(experiment: Experiment, wish: Wish) -> None:
    """Which jobs, where, and the command that returns to them."""
    jobs = experiment.running_jobs
    if jobs:
        print("\njobs that go on without this console:", file=sys.stderr)
        for run, node in jobs:
            print(f"  {run} on {node}  {experiment.runs[run].jobs[node].run_dir}", file=sys.stderr)
    else:
        print("\nno job is running", file=sys.stderr)
    print(f"return with:  {wish.command}", file=sys.stderr)
