"""Arguments and options that several commands share, and what their words read into."""

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from console.core.errors import InputError
from console.core.record.acceptance import Lang as Language

ProfileName = Annotated[
    str, typer.Argument(metavar="PROFILE", help="A file, or the name of a shipped profile.")
]
ExperimentName = Annotated[str, typer.Argument(metavar="EXPERIMENT", help="Folder or name of an experiment.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder of the experiment.")]
Only = Annotated[str, typer.Option("--only", help="Configurations, e.g. E0,E1.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable on stdout, messages on stderr.")]
Lang = Annotated[str, typer.Option("--lang", help="en or zh.")]
WindowLength = Annotated[
    str, typer.Option("--window", help="Length of the maintenance window, e.g. 4h or 90m.")
]
AcceptNew = Annotated[bool, typer.Option("--accept-new", help="Accept host keys seen for the first time.")]


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


def known_lang(lang: str) -> Language:
    """Raises `InputError`."""
    known: dict[str, Language] = {"en": "en", "zh": "zh"}
    if lang in known:
        return known[lang]
    raise InputError(f"--lang {lang}", why="not a language of the console", next_step="en or zh")


def again_in(lang: Language) -> str:
    """The option that asks for this language once more, at the end of a command that is shown."""
    return "" if lang == "en" else f" --lang {lang}"


def require_terminal(instead: str) -> None:
    """See that screens can be drawn and keys read; `instead` works without. Raises `InputError`."""
    # Textual reads keys from stdin and draws on stderr, so that stdout may go elsewhere.
    if not all(stream is not None and stream.isatty() for stream in (sys.__stdin__, sys.__stderr__)):
        raise InputError(
            "no terminal for the screens",
            why="stdin or stderr is closed, a pipe or a file",
            next_step=f"call it from a terminal, or go without screens: {instead}",
        )
