"""`lab demo`, `lab open`, `lab run`, `lab watch`, `lab replay`: an experiment run or looked at."""

import asyncio
import contextlib
import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from console.cli.conducting import Wish, conduct
from console.cli.files import folder_to_open, folder_to_read, read_lab
from console.core.errors import InputError
from console.core.record.events import event_json
from console.engine.replay import ReadSession, WatchSession

Out = Annotated[Path | None, typer.Option("--out", help="Folder of the experiment.")]
Only = Annotated[str, typer.Option("--only", help="Configurations to run, e.g. E0,E1.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable on stdout, messages on stderr.")]
Lang = Annotated[str, typer.Option("--lang", help="en or zh.")]
WindowLength = Annotated[
    str, typer.Option("--window", help="Length of the maintenance window, e.g. 4h or 90m.")
]
AcceptNew = Annotated[bool, typer.Option("--accept-new", help="Accept host keys seen for the first time.")]
ProfileName = Annotated[
    str, typer.Argument(metavar="PROFILE", help="A file, or the name of a shipped profile.")
]


def demo(
    out: Out = None,
    only: Only = "",
    headless: Annotated[bool, typer.Option("--headless", help="Without a screen.")] = False,
    as_json: Json = False,
    lang: Lang = "en",
) -> int:
    """The whole lab on two embedded nodes: real SSH, real ms-swift training on the CPU."""
    return _run("embedded", out, only, headless or as_json, as_json, lang, "", False, "lab demo")


def open_lab(
    profile: ProfileName,
    out: Out = None,
    only: Only = "",
    window: WindowLength = "",
    accept_new: AcceptNew = False,
    lang: Lang = "en",
) -> int:
    """The console on a lab: a new experiment, or the one that is open."""
    return _run(
        profile, out, only, False, False, lang, window, accept_new, f"lab open {shlex.quote(profile)}"
    )


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
    return _run(
        profile, out, only, True, as_json, lang, window, accept_new, f"lab run {shlex.quote(profile)}"
    )


def watch(
    experiment: Annotated[str, typer.Argument(help="Folder or name of an experiment.")],
    as_json: Json = False,
    lang: Lang = "en",
) -> int:
    """Look on while another console works; any number at once."""
    return asyncio.run(_watch(folder_to_read(experiment), as_json, lang))


def replay(
    experiment: Annotated[str, typer.Argument(help="Folder or name of an experiment.")],
    until: Annotated[int | None, typer.Option("--until", min=1, help="Show only the first N events.")] = None,
    as_json: Json = False,
    lang: Lang = "en",
) -> int:
    """Look at a finished or foreign experiment as it went."""
    folder = folder_to_read(experiment)
    session = ReadSession(folder, until=until)
    if as_json:
        _print_events(folder, until)
        return 0
    from console.tui.app import LabApp

    LabApp(session, _known(lang), return_command=f"lab replay {shlex.quote(experiment)}").run()
    return 0


def parse_window(text: str) -> float | None:
    """Hours from `4h`, `90m` or `4h30m`; None for no text. Raises `InputError`."""
    if not text:
        return None
    parts = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+)m?)?", text, re.ASCII)
    if parts is None or text.isdigit():
        raise InputError(f"--window {text}", why="not a length of time", next_step="write it like 4h or 90m")
    found = float(parts[1] or 0) + float(parts[2] or 0) / 60
    if not 0 < found <= 72:
        raise InputError(f"--window {text}", next_step="give more than 0 and at most 72 hours")
    return found


def chosen(only: str) -> tuple[str, ...]:
    """Ids of `--only`, each once; none: all. Raises `InputError` for an option that names none."""
    ids = tuple(dict.fromkeys(part.strip() for part in only.split(",") if part.strip()))
    if only and not ids:
        raise InputError(f"--only {only!r} names no configuration", next_step="write it like E0,E1")
    return ids


def _run(
    profile: str,
    out: Path | None,
    only: str,
    headless: bool,
    as_json: bool,
    lang: str,
    window: str,
    accept_new: bool,
    command: str,
) -> int:
    files = read_lab(profile)
    folder = folder_to_open(files, out)
    back = f"{command} --out {shlex.quote(str(folder))}"
    wish = Wish(
        files=files,
        folder=folder,
        command=back + (" --headless" if headless and command == "lab demo" else ""),
        only=chosen(only),
        headless=headless,
        as_json=as_json,
        lang=_known(lang),
        window_hours=parse_window(window),
        accept_new=accept_new,
    )
    return asyncio.run(conduct(wish))


async def _watch(folder: Path, as_json: bool, lang: str) -> int:
    session = WatchSession(folder)
    follower = asyncio.create_task(session.follow(), name="follower")
    try:
        if as_json:
            _print_events(folder, None)
            session.listen(lambda experiment, event: print(event_json(event), flush=True))
            await follower
        else:
            from console.tui.app import LabApp

            await LabApp(session, _known(lang), return_command=f"lab watch {folder}").run_async()
    finally:
        follower.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await follower
    return 0


def _print_events(folder: Path, until: int | None) -> None:
    from console.journal import read_journal

    for event in read_journal(folder)[:until]:
        print(event_json(event))


def _known(lang: str) -> str:
    if lang not in ("en", "zh"):
        raise InputError(f"--lang {lang}", why="not a language of the console", next_step="en or zh")
    return lang
