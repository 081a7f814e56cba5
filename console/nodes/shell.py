"""Scripts over stdin to a bare bash, and their answers between random markers."""

from dataclasses import dataclass

from console.nodes.text import SafeText, clean


@dataclass(frozen=True)
class Answer:
    """What a script left: its exit status and both outputs, complete or not at all."""

    exit_status: int
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def text(self) -> SafeText:
        """The output as safe text."""
        return clean(self.stdout)

    @property
    def error_text(self) -> SafeText:
        """The error output as safe text."""
        return clean(self.stderr)


class Stream:
    """A running script: bytes as they come, and bytes to its stdin."""

    async def read(self, limit: int = 65536) -> bytes:
        """Next bytes of its output; b"" when the script ended. Raises Unreachable when the link is lost."""
        raise NotImplementedError

    async def write(self, data: bytes) -> None:
        """Send bytes to its stdin."""
        raise NotImplementedError
