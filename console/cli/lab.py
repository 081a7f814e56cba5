"""`lab demo`, `lab open`, `lab run`, `lab watch`, `lab replay`: an experiment run or looked at."""

import asyncio
import shlex
from pathlib import Path
from typing import Annotated

import typer

from console.cli.conducting import Wish, conduct
from console.cli.files import read_lab, require_filled_in
from console.cli.kept import folder_to_open, folder_to_read
from console.cli.options import (
    AcceptNew,
    ExperimentName,
    Json,
    Lang,
    Only,
    Out,
    ProfileName,
    WindowLength,
    again_in,
    chosen,
    known_lang,
    parse_window,
    require_terminal,
)
from console.cli.program import program, require_training
from console.cli.sources import told_unsound
from console.cli.watching import stream_events, watch_on_screens
from console.core.record.events import event_json
from console.engine.replay import ReadSession


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
        require_terminal(f"{program()} demo --headless")
    command = f"{program()} demo" + (" --headless" if without_screen else "")
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
    require_terminal(f"{program()} run {name}")
    return _run(profile, f"{program()} open {name}", out, only, lang, window, accept_new=accept_new)


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
    command = f"{program()} run {shlex.quote(profile)}"
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
    require_terminal(f"{program()} watch {shlex.quote(experiment)} --json")
    asyncio.run(watch_on_screens(folder, language))
    return 0


def replay(
    experiment: ExperimentName,
    until: Annotated[int | None, typer.Option("--until", min=1, help="Show only the first N events.")] = None,
    as_json: Json = False,
    lang: Lang = "en",
) -> int:
    """Look at a finished or foreign experiment as it went."""
    folder, language = folder_to_read(experiment), known_lang(lang)
    command = f"{program()} replay {shlex.quote(experiment)}"
    if not as_json:
        require_terminal(f"{command} --json")
    with ReadSession(folder, until=until) as session:
        told_unsound(session.experiment, folder)
        if as_json:
            _print_events(folder, until)
            return 0
        from console.tui.app import LabApp

        app = LabApp(session, language, return_command=command + again_in(language))
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
    require_filled_in(files)
    folder = folder_to_open(files, out)
    language = known_lang(lang)
    wish = Wish(
        files=files,
        folder=folder,
        command=f"{command} --out {shlex.quote(str(folder))}" + again_in(language),
        only=chosen(only),
        headless=headless,
        as_json=as_json,
        lang=language,
        window_hours=parse_window(window),
        accept_new=accept_new,
    )
    require_training(files.profile)
    return asyncio.run(conduct(wish))


def _print_events(folder: Path, until: int | None) -> None:
    from console.journal import read_journal

    for event in read_journal(folder)[:until]:
        print(event_json(event))
