"""The part of an SSH connection that the agent's client needs."""

from collections.abc import Sequence
from typing import Protocol


class Answered(Protocol):
    @property
    def exit_status(self) -> int | None: ...
    @property
    def stdout(self) -> bytes: ...
    @property
    def stderr(self) -> bytes: ...


class Runner(Protocol):
    """A node on which a script can be run."""

    @property
    def name(self) -> str: ...

    async def run(
        self,
        script: str,
        *,
        args: Sequence[str] = ...,
        timeout: float,
        stdin: bytes = ...,
        check: bool = ...,
    ) -> Answered: ...
