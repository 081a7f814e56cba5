"""Which experiment a command means: one that is given, one that is kept, or a new one."""

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from platformdirs import user_data_path

from console.cli.program import program
from console.core.errors import InputError, LabError
from console.core.plan.profile import Profile
from console.core.record.experiment import Experiment
from console.engine.opening import LabFiles, exists
from console.engine.replay import ReadSession
from console.journal.lock import LOCK


def experiments_folder() -> Path:
    """Where experiments are kept when no --out is given."""
    return user_data_path("lab-console") / "experiments"


def folder_to_open(files: LabFiles, out: Path | None) -> Path:
    """`out`, or the newest unfinished lab of this very profile, or a new folder.

    Raises `InputError` when `out` is no folder, or one that holds something else, and when another experiment
    holds the service.
    """
    if out is not None:
        return folder_of_its_own(out)
    profile = files.profile
    kept = list(_kept(profile, f"{profile.name}-*"))
    unfinished = (
        folder
        for folder, seen in kept
        if seen.outcome is None
        and seen.profile == profile
        and not folder.name.startswith(_service_only(profile))
    )
    chosen = next(unfinished, None)
    for folder, seen in kept:
        if seen.service.owed and folder != chosen:
            raise _not_back(files, folder, "or go on in there, by that --out")
    return chosen or _new_folder(profile.name)


def folder_to_stop_in(files: LabFiles) -> Path:
    """The one in which `lab service stop` has the service stopped in this window, or a new one.

    Raises `InputError` when it is stopped by a lab, or since an earlier window.
    """
    profile, now = files.profile, datetime.now(UTC)
    for folder, seen in _kept(profile, f"{profile.name}-*"):
        if seen.service.owed:
            in_window = seen.window_ends is None or seen.window_ends > now
            if in_window and folder.name.startswith(_service_only(profile)):
                return folder
            raise _not_back(files, folder, "then stop it")
    return _new_folder(_service_only(profile))


def holders(profile: Profile) -> list[Path]:
    """Kept experiments of the profile's name that stopped the service and have not seen it healthy since."""
    return [folder for folder, seen in _kept(profile, f"{profile.name}-*") if seen.service.owed]


def unreadable(profile: Profile) -> list[Path]:
    """Kept experiments of the profile's name of which nobody can tell whether they hold the service."""
    return [folder for folder in _folders(f"{profile.name}-*") if _seen(folder) is None]


def newest(profile: Profile) -> Path | None:
    """The kept experiment of the profile's name that was begun last."""
    begun = {seen.opened_at: folder for folder, seen in _kept(profile, f"{profile.name}-*")}
    return begun[max(begun)] if begun else None


def folder_of_its_own(out: Path) -> Path:
    """`out` if it is an experiment's folder, empty, or not there yet. Raises `InputError`."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is not a folder", next_step="give a folder with --out")
    if not exists(out) and out.is_dir():
        others = [path.name for path in out.iterdir() if path.name != LOCK and not path.name.startswith(".")]
        if others:
            raise InputError(
                f"{out} holds other things and no experiment",
                why=f"{min(others)} is in it" + (f", with {len(others) - 1} more" if others[1:] else ""),
                next_step="give an empty or a new folder with --out",
            )
    return out


def folder_to_read(name: str) -> Path:
    """An experiment by folder, or by name among those that are kept. Raises `InputError`."""
    root = experiments_folder()
    for folder in (Path(name), root / name):
        if exists(folder):
            return folder
    kept = sorted(path.name for path in root.iterdir() if exists(path)) if root.is_dir() else []
    raise InputError(
        f"no experiment {name}",
        why=f"neither {name} nor {root / name} holds an experiment.sqlite3",
        next_step="give the folder that was named with --out, or one of: "
        + (", ".join(kept) or "none kept yet"),
    )


def _kept(profile: Profile, pattern: str) -> Iterator[tuple[Path, Experiment]]:
    """Kept experiments of the profile's name by the names of their folders, the latest first.

    One that can't be read is left out.
    """
    for folder in _folders(pattern):
        seen = _seen(folder)
        if seen is not None and seen.profile.name == profile.name:
            yield folder, seen


def _folders(pattern: str) -> list[Path]:
    return sorted(filter(exists, experiments_folder().glob(pattern)), reverse=True)


def _seen(folder: Path) -> Experiment | None:
    try:
        with ReadSession(folder) as session:
            return session.experiment
    except LabError:
        return None


def restore_command(files: LabFiles, folder: Path) -> str:
    """What brings back the service that the experiment in `folder` stopped, ready to be typed."""
    return f"{program()} {shlex.join(['service', 'restore', files.profile_file, '--out', str(folder)])}"


def _not_back(files: LabFiles, folder: Path, otherwise: str) -> InputError:
    return InputError(
        f"the experiment in {folder} stopped the service and has not seen it healthy since",
        why="how a service answers is noted before it is stopped",
        next_step=f"bring it back: {restore_command(files, folder)}; {otherwise}",
    )


def _service_only(profile: Profile) -> str:
    """How the names of experiments begin that do nothing but stop the service."""
    return f"{profile.name}-service"


def _new_folder(begins: str) -> Path:
    return experiments_folder() / f"{begins}-{datetime.now():%Y%m%d-%H%M%S}"
