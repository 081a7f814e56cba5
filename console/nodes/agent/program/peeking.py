"""Watching a stopped service for coming back by itself."""

from __future__ import annotations

import time

from . import commands
from .answers import Doc
from .folder import Folder, read_document
from .kinds import Kind, kind_of


class PeekAtService:
    """Looks every few seconds while the service is stopped for the window."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._kind: Kind | None = None
        self._due = 0.0

    def look(self, state: Doc, now: float) -> None:
        stopped = state.get("service_touched") and state.get("stop") and not state.get("restore")
        if not stopped:
            self._kind = None
            return
        if self._kind is None:
            self._kind = kind_of(read_document(self._folder.file("service.json"))["spec"])
        if now < self._due:
            return
        self._due = now + self._kind.peek_seconds
        try:
            running = self._kind.peek()
        except commands.Failed as trouble:
            self._folder.account("the service can't be looked at", str(trouble))
            return
        if running and not state.get("came_back_at"):
            self._folder.set(came_back_at=time.time())
            self._folder.account(
                "came back by itself", "the service runs although it was stopped for the window"
            )
        elif not running and state.get("came_back_at"):
            self._folder.set(came_back_at=None)
            self._folder.account("gone again", "the service that came back by itself runs no more")
