"""The first moments of `lab`: Ctrl-C ends it quietly while the rest is still being loaded."""

import os
import signal
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    """Entry point. A SIGINT that the caller ignores stays ignored."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from console.cli.main import main as command

    signal.signal(signal.SIGINT, before)
    command()


def _end(_number: int, _frame: FrameType | None) -> None:
    """Not by an exception: code that is being loaded may catch it. Nothing is open yet."""
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
