"""`lab service status|stop|restore`: the production service by itself, outside a lab."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from console.cli.conducting import printer
from console.cli.files import read_lab
from console.cli.kept import folder_of_its_own, folder_to_stop_in, holders, newest, unreadable
from console.cli.options import ProfileName
from console.cli.telling import told
from console.core.errors import InputError
from console.core.plan.profile import Profile
from console.core.plan.service import NoService
from console.core.record.events import ExperimentOpened
from console.engine.crew import Crew, assembled
from console.engine.decisions import Decisions
from console.engine.guarding import Guarding
from console.engine.lending import Lending
from console.engine.opening import LabFiles, exists, open_recorder
from console.engine.recorder import Recorder
from console.journal import Journal
from console.journal.lock import ExperimentLock

app = typer.Typer(help="The production service: status, stop, restore.", no_args_is_help=True)

Out = Annotated[Path | None, typer.Option("--out", help="Folder of the experiment that stopped it.")]
LOOK_HOURS = 1.0
"""A look is not bound to the profile's window, which may be over."""


@app.command("status")
@told
def status(profile: ProfileName, out: Out = None) -> int:
    """Climb the health ladder and show the guards; changes nothing."""
    files = _with_service(profile)
    folder = _given(out) or next(iter(holders(files.profile)), None) or newest(files.profile)
    return asyncio.run(_look(files, folder, _status))


@app.command("stop")
@told
def stop(profile: ProfileName, out: Out = None) -> int:
    """Inspect, drain and stop the service, with a guard on every node that brings it back."""
    files = _with_service(profile)
    folder = folder_of_its_own(out) if out else folder_to_stop_in(files)
    return asyncio.run(_act(files, folder, _stop))


@app.command("restore")
@told
def restore(profile: ProfileName, out: Out = None) -> int:
    """Bring the service back and prove it healthy."""
    files = _with_service(profile)
    folder = _given(out) or _holder(files.profile)
    if folder is None:
        print("nothing to restore: no kept experiment holds the service (that of an --out may); it is now:")
        return asyncio.run(_look(files, newest(files.profile), _status))
    return asyncio.run(_act(_begun_with(files, folder), folder, _restore))


class Hands:
    """What the three commands work with."""

    def __init__(self, recorder: Recorder, crew: Crew) -> None:
        self.recorder = recorder
        self.guarding = Guarding(recorder, crew)
        self.lending = Lending(recorder, crew, self.guarding, Decisions(recorder, headless=True))


Action = Callable[[Hands], Awaitable[int]]


async def _status(hands: Hands) -> int:
    found = await hands.lending.health()
    for node, health in found.items():
        print(f"{node}: {'healthy' if health.healthy else 'not healthy'}")
        for rung in health.rungs:
            print(f"  {rung.state:11} {rung.name}" + (f": {rung.detail}" if rung.detail else ""))
    for node, status in (await hands.guarding.statuses()).items():
        print(f"{node}: guard {'at work' if status.alive else 'not running'}; {status.detail}")
        if status.came_back_at is not None:
            print(f"  the service came back by itself {status.at - status.came_back_at:.0f} s ago")
        if status.risk:
            print(f"  the guard may be ended: {status.risk}")
    return 0 if all(health.healthy for health in found.values()) else 3


async def _stop(hands: Hands) -> int:
    await hands.guarding.start()
    await hands.lending.borrow()
    until = await hands.guarding.leave()
    print(f"stopped; without a renewal the guards bring it back at {until:%H:%M} UTC")
    return 0


async def _restore(hands: Hands) -> int:
    if not hands.lending.owed:
        print("nothing to restore: this experiment does not hold the service (another --out may); it is now:")
        return await _status(hands)
    guarded = not hands.guarding.window_over  # no guard stands beyond the window
    if guarded:
        await hands.guarding.start()
    if not await hands.lending.give_back():
        return 3
    if guarded:
        await hands.guarding.end()
    return 0


def _with_service(profile: str) -> LabFiles:
    files = read_lab(profile)
    if isinstance(files.profile.service, NoService):
        raise InputError("this profile names no service", next_step="add a service block to it")
    return files


def _given(out: Path | None) -> Path | None:
    """`out`, which must hold an experiment. Raises `InputError`."""
    if out is not None and not exists(out):
        raise InputError(
            f"no experiment in {out}",
            why="the experiment that stopped the service knows how to bring it back",
            next_step="give its folder with --out, as `lab open` and `lab run` name it when they end",
        )
    return out


def _holder(profile: Profile) -> Path | None:
    """The kept experiment that holds the service. Raises `InputError` when more than one does, or may."""
    found = holders(profile)
    if len(found) > 1:
        raise InputError(
            f"{len(found)} experiments stopped the service and have not seen it healthy since",
            why=", ".join(map(str, found)),
            next_step="give one of them with --out",
        )
    if not found and (hidden := unreadable(profile)):
        raise InputError(
            "it can't be told whether a kept experiment holds the service",
            why=f"not to be read: {', '.join(map(str, hidden))}",
            next_step="see what `lab export` says of them; on the machines the guards bring the service back",
        )
    return found[0] if found else None


def _begun_with(files: LabFiles, folder: Path) -> LabFiles:
    """What the experiment was begun with: it counts for the way back, however the profile reads today.

    Raises `InputError` when the experiment is of another profile.
    """
    with Journal(folder, read_only=True) as journal:
        opened = next((event for _, event in journal.events(kind="experiment opened")), None)
    if not isinstance(opened, ExperimentOpened):
        return files
    begun = LabFiles(opened.profile_text, opened.profile_file, opened.checklist_text)
    if begun.profile.name != files.profile.name:
        raise InputError(
            f"{folder} holds an experiment of {begun.profile.name}, not of {files.profile.name}",
            next_step="give the folder of the experiment that stopped this service",
        )
    return begun


async def _look(files: LabFiles, folder: Path | None, action: Action) -> int:
    """Without a trace on this computer: beside the experiment in `folder`, or as of one not yet begun."""
    with tempfile.TemporaryDirectory() as scratch:
        if folder is None:
            folder = Path(scratch) / files.profile.name
        else:
            files = _begun_with(files, folder)
            print(f"experiment: {folder}")
        with open_recorder(folder, files, window_hours=LOOK_HOURS, read_only=True) as recorder:
            async with assembled(files.profile, folder) as crew:
                return await action(Hands(recorder, crew))


async def _act(files: LabFiles, folder: Path, action: Action) -> int:
    print(f"experiment: {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    with ExperimentLock(folder), open_recorder(folder, files) as recorder:
        recorder.listen(printer(as_json=False))
        async with assembled(files.profile, folder, recorder=recorder) as crew:
            return await action(Hands(recorder, crew))
