"""What other experiments owe this node: a service that they stopped and that does not run again."""

from __future__ import annotations

import os
from typing import Iterator

from . import commands
from .answers import Doc, Refused
from .folder import Folder, read_document
from .kinds import kind_of
from .status import operation_now


def refuse_while_owed(folder: Folder) -> None:
    """Raises `Refused` while a service that another experiment stopped is down.

    A second experiment would note it as not running, and never bring it back. One that runs again, whoever
    started it, is no obstacle; neither is an old debt for the experiment that stopped the service last.
    """
    if folder.state().get("service_touched"):
        return
    for other in _that_owe(folder):
        noted = read_document(other.file("service.json"))
        name = (noted.get("spec") or {}).get("name") or "the service"
        missing = _missing(other, noted)
        if missing:
            raise Refused(
                f"experiment {other.experiment} stopped {name} on this node and has not brought it back",
                why=f"{missing}; it is noted in {other.experiment_folder}, "
                f"held by {other.lease().get('holder') or 'nobody'}",
                next_step=f"bring it back: `lab service restore PROFILE --out {other.experiment}`, with that "
                f"experiment's profile and folder on its holder's computer; or start {name} by hand",
            )
        folder.account("service runs again", f"{name}, although {other.experiment} did not bring it back")


def _that_owe(folder: Folder) -> Iterator[Folder]:
    """Folders of other experiments whose service is not proven back."""
    for name in sorted(os.listdir(folder.root)):
        other = Folder(folder.root, name)
        if name != folder.experiment and other.state().get("service_touched"):
            yield other


def _missing(other: Folder, noted: Doc) -> str:
    """What is wrong with its service; empty when it runs."""
    if operation_now(other.state()) is not None:
        return "its stop or restore is still going on"
    if not noted:
        return "what it noted of the service can't be read"
    try:
        return "" if kind_of(noted["spec"]).look().running else "the service does not run"
    except commands.Failed as trouble:
        return f"whether it runs can't be told: {trouble}"
