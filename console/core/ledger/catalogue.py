"""The models and devices that ship with the console.

The one place in `core` that reads a file: its own package data, once.
"""

from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from console.core.errors import InputError
from console.core.ledger.architecture import Architecture
from console.core.ledger.choose import TableRow
from console.core.ledger.devices import Device
from console.core.ledger.hf_config import read_config
from console.core.ledger.mixers import Shape


class CatalogueModel(Shape):
    """One known model. `config` is None where only its size is known; `nominal_parameters` is the size in its
    name.
    """

    name: str
    hugging_face: str
    nominal_parameters: int
    nominal_active_parameters: int | None = None
    config: dict[str, Any] | None
    vision_parameters: int | None = None
    source: str
    note: str = ""

    def architecture(self) -> Architecture:
        """Its shapes; InputError where they are not published."""
        if self.config is None:
            raise InputError(
                f"the shapes of {self.name} are not known",
                why=self.note,
                next_step="use --classic, or give its config.json with --config",
            )
        return _architecture(self.name)


class _Catalogue(Shape):
    models: tuple[CatalogueModel, ...]
    devices: tuple[Device, ...]
    course_table: tuple[TableRow, ...]


def models() -> tuple[CatalogueModel, ...]:
    return _catalogue().models


def devices() -> tuple[Device, ...]:
    return _catalogue().devices


def course_table() -> tuple[TableRow, ...]:
    """The course's measured table of the 125B model on eight devices (LoRA rank 8, micro 1, global 8)."""
    return _catalogue().course_table


def model(name: str) -> CatalogueModel:
    """A model by name; case, an organisation prefix and an -Instruct suffix do not matter."""
    wanted = _plain(name)
    for entry in models():
        if wanted in (_plain(entry.name), _plain(entry.hugging_face)):
            return entry
    raise _unknown("model", name, [entry.name for entry in models()])


def device(name: str) -> Device:
    """A device by name or alias, whole names only: "H20" is never taken for "H200"."""
    wanted = _plain(name)
    for entry in devices():
        if wanted in {_plain(known) for known in (entry.name, *entry.aliases)}:
            return entry
    raise _unknown("device", name, [entry.name for entry in devices()])


def _plain(name: str) -> str:
    bare = name.rsplit("/", 1)[-1].strip().lower().removesuffix("-instruct").removesuffix("-base")
    return "".join(letter for letter in bare if letter.isalnum() or letter == ".")


def _unknown(what: str, name: str, known: list[str]) -> InputError:
    by_lower = {entry.lower(): entry for entry in known}
    near = get_close_matches(name.rsplit("/", 1)[-1].lower(), by_lower, n=1, cutoff=0.5)
    nearest = by_lower[near[0]] if near else f"one of {', '.join(known)}"
    return InputError(f"unknown {what} {name[:80]!r}", why="it is not in the catalogue", next_step=nearest)


@cache
def _catalogue() -> _Catalogue:
    return _Catalogue.model_validate_json(files(__package__).joinpath("catalogue.json").read_bytes())


@cache
def _architecture(name: str) -> Architecture:
    config = model(name).config
    assert config is not None
    return read_config(config, name).architecture
