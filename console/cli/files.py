"""Where profiles and checklists are: names on the command line to texts."""

from pathlib import Path

import console
from console.core.errors import InputError
from console.core.ledger.of_lab import device_of
from console.core.plan.profile import Profile, parse_profile
from console.core.plan.unfilled import unfilled
from console.core.reading.diagnosis import Rules, load_rules
from console.engine.opening import LabFiles

MOST_INPUT_BYTES = 4 << 20
"""Profiles and tables have some kilobytes; a device has no end."""
_PACKAGE = Path(console.__file__).parent


def shipped(kind: str) -> Path:
    """The folder `profiles` or `checklists`: beside the package in a checkout, inside it when installed."""
    beside = _PACKAGE.parent / kind
    return beside if (_PACKAGE.parent / "pyproject.toml").is_file() else _PACKAGE / "assets" / kind


def read_lab(name: str) -> LabFiles:
    """The profile of that name or path, with its checklist. Raises `InputError`."""
    text, file = _profile_text(name)
    profile = parse_profile(text, file=file)
    device_of(profile)  # a name that no catalogue has would leave every prediction out without a word
    return LabFiles(text, file, read_checklist(profile.checklist))


def unfilled_places(files: LabFiles) -> list[str]:
    """Lines of the profile that still are as the shipped ones leave them to be filled in."""
    patterns = [path.read_text(encoding="utf-8") for path in shipped("profiles").glob("*.yaml")]
    return unfilled(files.profile_text, patterns)


def require_filled_in(files: LabFiles) -> None:
    """Raises `InputError` for a profile with places that still are as they were shipped."""
    places = unfilled_places(files)
    if places:
        raise InputError(
            f"{files.profile_file} is not filled in: {places[0]}",
            why=f"{len(places)} such places, and nothing may be stopped by guess",
            next_step="fill them in and take the mark off each line; lab doctor names them all",
        )


def read_profile(name: str) -> Profile:
    """Raises `InputError`."""
    return read_lab(name).profile


def read_checklist(name: str) -> str:
    """The text of a shipped checklist. Raises `InputError`."""
    path = shipped("checklists") / f"{name}.yaml"
    if not path.is_file():
        raise InputError(f"no checklist {name}", next_step=f"choose among {_names('checklists')}")
    return path.read_text(encoding="utf-8")


def read_rules() -> Rules:
    """The diagnosis rules that ship with the console."""
    path = shipped("checklists") / "diagnosis.yaml"
    return load_rules(path.read_text(encoding="utf-8"), path.name)


def _profile_text(name: str) -> tuple[str, str]:
    path = Path(name)
    if path.is_dir() and not _shipped_profile(name).is_file():
        raise InputError(
            f"{name} is a folder, not a profile", next_step="give a YAML file, or a shipped name"
        )
    if not path.is_file() and "/" not in name:
        path = _shipped_profile(name)
    try:
        shown = path.name if path.parent == shipped("profiles") else str(path)
        return read_input(path), shown
    except FileNotFoundError:
        raise InputError(
            f"no profile {name}", next_step=f"give a file, or one of the shipped: {_names('profiles')}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the profile {name} can't be read", why=str(error), next_step="give a YAML text in UTF-8"
        ) from None


def read_input(path: Path) -> str:
    """A text that a user names. Raises `InputError` when it is larger than any such text, `OSError`,
    `UnicodeDecodeError`."""
    with path.open("rb") as file:
        data = file.read(MOST_INPUT_BYTES + 1)
    if len(data) > MOST_INPUT_BYTES:
        raise InputError(
            f"{path} has more than {MOST_INPUT_BYTES >> 20} MiB", next_step="name the file that is meant"
        )
    return data.decode("utf-8")


def _shipped_profile(name: str) -> Path:
    return shipped("profiles") / f"{name.removesuffix('.yaml')}.yaml"


def _names(kind: str) -> str:
    return ", ".join(sorted(path.stem for path in shipped(kind).glob("*.yaml"))) or "none"
