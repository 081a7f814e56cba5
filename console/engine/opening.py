"""Opening an experiment's folder: a new one begins its journal, an existing one is resumed."""

import getpass
import secrets
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from console import __version__
from console.core.errors import InputError
from console.core.plan.launch import check_matrices
from console.core.plan.profile import Profile, Window, parse_profile
from console.core.record.events import ExperimentOpened
from console.core.record.folding import fold
from console.engine.recorder import Recorder, utc_now
from console.journal import Journal
from console.journal.journal import FILE


@dataclass(frozen=True, slots=True)
class LabFiles:
    """The texts an experiment is made of, with the names that errors shall show."""

    profile_text: str
    profile_file: str
    checklist_text: str

    @property
    def profile(self) -> Profile:
        """Raises `InputError`."""
        return parse_profile(self.profile_text, file=self.profile_file)


def exists(folder: Path) -> bool:
    """Whether `folder` holds an experiment."""
    return (folder / FILE).is_file()


def open_recorder(
    folder: Path,
    files: LabFiles,
    *,
    only: Sequence[str] = (),
    window_hours: float | None = None,
    read_only: bool = False,
    now: Callable[[], datetime] = utc_now,
) -> Recorder:
    """Begin the experiment in `folder`, or take up the one that is there; `read_only`, it can't be written.

    An experiment keeps the profile it was begun with; `files` must still say the same. Raises `InputError`
    when they don't, when `only` names other configurations than the experiment has, when the matrix is
    refused, or when the window is over; `JournalError` when the journal can't be used.
    """
    if exists(folder):
        journal = Journal(folder, read_only=read_only)
        events = [event for _, event in journal.events()]
        if events:
            recorder = Recorder(journal, fold(events), now=now)
            _same_lab(recorder, files, folder)
            _same_matrix(recorder, only, folder)
            return recorder
        journal.close()
    profile = files.profile
    check_matrices(profile)
    for config in only:
        profile.configuration(config)
    opened = ExperimentOpened(
        at=now(),
        name=folder.name,
        profile_text=files.profile_text,
        profile_file=files.profile_file,
        checklist_text=files.checklist_text,
        only=tuple(only),
        window_ends=window_end(profile.window, now(), window_hours),
        console_version=__version__,
        holder=_new_holder(folder.name),
    )
    return Recorder.begin(Journal(folder), opened, now=now)


def _new_holder(experiment: str) -> str:
    """Another one than that of any other experiment, even of one with this name on this computer."""
    return f"{getpass.getuser()}@{socket.gethostname()} {experiment} {secrets.token_hex(4)}"


def window_end(window: Window, now: datetime, hours: float | None = None) -> datetime | None:
    """When the maintenance window ends; None: no end. Raises `InputError` when it is over or not begun."""
    if hours is not None:
        if not 0 < hours <= 72:
            raise InputError(
                f"a window of {hours:g} hours", next_step="give more than 0 and at most 72 hours"
            )
        return now + timedelta(hours=hours)
    if window.hours is not None:
        return now + timedelta(hours=window.hours)
    if window.end is not None and window.end <= now:
        raise InputError(
            f"the maintenance window ended at {window.end:%Y-%m-%d %H:%M %Z}",
            next_step="agree on a new window and write it into the profile, or give --window 4h",
        )
    if window.start is not None and window.start > now:
        raise InputError(
            f"the maintenance window begins at {window.start:%Y-%m-%d %H:%M %Z}",
            next_step="wait for it; until then nothing may be stopped",
        )
    return window.end


def _same_lab(recorder: Recorder, files: LabFiles, folder: Path) -> None:
    begun_with = recorder.experiment.profile
    if files.profile != begun_with:
        raise InputError(
            f"{folder} holds an experiment of {begun_with.name} that was begun with another profile",
            why="one experiment has one profile from its first event to its last",
            next_step="give another --out, or the profile it was begun with",
        )


def _same_matrix(recorder: Recorder, only: Sequence[str], folder: Path) -> None:
    begun_with = recorder.experiment.configurations
    if only and set(only) != set(begun_with):
        raise InputError(
            f"{folder} was begun with {', '.join(begun_with)}, not with {', '.join(only)}",
            why="what is to be measured is settled before the first run",
            next_step="leave --only out to go on with it, or give another --out",
        )
