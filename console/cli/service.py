"""`lab service status|stop|restore`: the production service by itself, outside a lab."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from console.cli.conducting import printer
from console.cli.files import experiments_folder, folder_of_its_own, read_lab
from console.cli.options import ProfileName
from console.cli.telling import told
from console.core.errors import InputError
from console.core.plan.service import NoService
from console.engine.crew import Crew, assembled
from console.engine.decisions import Decisions
from console.engine.guarding import Guarding
from console.engine.lending import Lending
from console.engine.opening import LabFiles, open_recorder
from console.engine.recorder import Recorder
from console.journal.lock import ExperimentLock

app = typer.Typer(help="The production service: status, stop, restore.", no_args_is_help=True)

Out = Annotated[Path | None, typer.Option("--out", help="Folder of the experiment that stopped it.")]


@app.command("status")
@told
def status(profile: ProfileName, out: Out = None) -> int:
    """Climb the health ladder and show the guards; changes nothing."""
    return _act(profile, out, _status)


@app.command("stop")
@told
def stop(profile: ProfileName, out: Out = None) -> int:
    """Inspect, drain and stop the service, with a guard on every node that brings it back."""
    return _act(profile, out, _stop)


@app.command("restore")
@told
def restore(profile: ProfileName, out: Out = None) -> int:
    """Bring the service back and prove it healthy."""
    return _act(profile, out, _restore)


class Hands:
    """What the three commands work with."""

    def __init__(self, recorder: Recorder, crew: Crew) -> None:
        self.recorder = recorder
        self.guarding = Guarding(recorder, crew)
        self.lending = Lending(recorder, crew, self.guarding, Decisions(recorder, headless=True))


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
    await hands.guarding.start()
    if not await hands.lending.give_back():
        return 3
    await hands.guarding.end()
    return 0


def _act(profile: str, out: Path | None, action: Callable[[Hands], Awaitable[int]]) -> int:
    files = read_lab(profile)
    folder = folder_of_its_own(out or experiments_folder() / f"{files.profile.name}-service")
    return asyncio.run(_with_hands(files, folder, action))


async def _with_hands(files: LabFiles, folder: Path, action: Callable[[Hands], Awaitable[int]]) -> int:
    if isinstance(files.profile.service, NoService):
        raise InputError("this profile names no service", next_step="add a service block to it")
    folder.mkdir(parents=True, exist_ok=True)
    with ExperimentLock(folder):
        recorder = open_recorder(folder, files)
        recorder.listen(printer(as_json=False))
        async with assembled(files.profile, folder, recorder=recorder) as crew:
            return await action(Hands(recorder, crew))
