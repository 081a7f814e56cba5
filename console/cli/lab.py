"""`lab demo`, `lab open`, `lab run`, `lab watch`, `lab replay`: an experiment run or looked at."""

import asyncio
import contextlib
import shlex
from pathlib import Path
from typing import Annotated

import typer

from console.cli.conducting import Wish, conduct
from console.cli.files import folder_to_open, folder_to_read, read_lab
from console.cli.options import (
    AcceptNew,
    ExperimentName,
    Json,
    Lang,
    Only,
    Out,
    ProfileName,
    WindowLength,
    chosen,
    known_lang,
    parse_window,
    require_terminal,
)
from console.cli.watching import stream_events
from console.core.record.events import event_json
from console.engine.replay import ReadSession, WatchSession


def demo(
    out: Out = None,
    only: Only = "",
    headless: Annotated[bool, typer.Option("--headless", help="Without a screen.")] = False,
    as_json: Json = False,
    lang: Lang = "en",
) -> int:
    """The whole lab on two embedded nodes: real SSH, real ms-swift training on the CPU."""
    without_screen = headless or as_json
    if not without_screen:
        require_terminal("lab demo --headless")
    command = "lab demo --headless" if without_screen else "lab demo"
    return _run("embedded", command, out, only, lang, headless=without_screen, as_json=as_json)


def open_lab(
    profile: ProfileName,
    out: Out = None,
    only: Only = "",
    window: WindowLength = "",
    accept_new: AcceptNew = False,
    lang: Lang = "en",
) -> int:
    """The console on a lab: a new experiment, or the one that is open."""
    name = shlex.quote(profile)
    require_terminal(f"lab run {name}")
    return _run(profile, f"lab open {name}", out, only, lang, window, accept_new=accept_new)


def run_lab(
    profile: ProfileName,
    out: Out = None,
    only: Only = "",
    window: WindowLength = "",
    accept_new: AcceptNew = False,
    as_json: Json = False,
    lang: Lang = "en",
) -> int:
    """The same without a screen: one line per event, exit code = outcome."""
    command = f"lab run {shlex.quote(profile)}"
    return _run(
        profile, command, out, only, lang, window, accept_new=accept_new, headless=True, as_json=as_json
    )


def watch(
    experiment: ExperimentName,
    as_json: Json = False,
    lang: Lang = "en",
) -> int:
    """Look on while another console works; any number at once. With --json until the experiment ends."""
    folder = folder_to_read(experiment)
    if as_json:
        stream_events(folder)
        return 0
    language = known_lang(lang)
    require_terminal(f"lab watch {shlex.quote(experiment)} --json")
    asyncio.run(_watch(folder, language))
    return 0


def replay(
    experiment: ExperimentName,
    until: Annotated[int | None, typer.Option("--until", min=1, help="Show only the first N events.")] = None,
    as_json: Json = False,
    lang: Lang = "en",
) -> int:
    """Look at a finished or foreign experiment as it went."""
    folder = folder_to_read(experiment)
    if as_json:
        _print_events(folder, until)
        return 0
    session = ReadSession(folder, until=until)
    language = known_lang(lang)
    require_terminal(f"lab replay {shlex.quote(experiment)} --json")
    from console.tui.app import LabApp

    app = LabApp(session, language, return_command=f"lab replay {shlex.quote(experiment)}")
    app.run()
    app.raise_fault()
    return 0


def _run(
    profile: str,
    command: str,
    out: Path | None,
    only: str,
    lang: str,
    window: str = "",
    *,
    accept_new: bool = False,
    headless: bool = False,
    as_json: bool = False,
) -> int:
    files = read_lab(profile)
    folder = folder_to_open(files, out)
    wish = Wish(
        files=files,
        folder=folder,
        command=f"{command} --out {shlex.quote(str(folder))}",
        only=chosen(only),
        headless=headless,
        as_json=as_json,
        lang=known_lang(lang),
        window_hours=parse_window(window),
        accept_new=accept_new,
    )
    return asyncio.run(conduct(wish))


async def _watch(folder: Path, lang: str) -> None:
    from console.tui.app import LabApp

    session = WatchSession(folder)
    follower = asyncio.create_task(session.follow(), name="follower")
    try:
        app = LabApp(session, lang, return_command=f"lab watch {shlex.quote(str(folder))}")
        await app.run_async()
        app.raise_fault()
    finally:
        follower.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await follower


def _print_events(folder: Path, until: int | None) -> None:
    from console.journal import read_journal

    for event in read_journal(folder)[:until]:
        print(event_json(event))
