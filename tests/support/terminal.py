"""A program on a terminal of its own."""

import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Callable


class Terminal:
    """A pty of 80 columns and 24 rows that keeps every byte it was sent."""

    def __init__(self, argv: list[str], environment: dict[str, str]) -> None:
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def read_until(self, done: Callable[[bytes], bool], what: str, seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not done(self.seen):
            assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 1 << 16)
                except OSError:
                    return

    def press(self, key: bytes) -> None:
        """Press a key and take what is drawn until nothing more comes, or the program has ended."""
        os.write(self.fd, key)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and select.select([self.fd], [], [], 0.15)[0]:
            try:
                self.seen += os.read(self.fd, 1 << 16)
            except OSError:
                return

    def kept_as_typed(self) -> bool:
        """Whether the terminal takes lines and echoes them, as it does for a shell."""
        modes = termios.tcgetattr(self.fd)[3]
        return bool(modes & termios.ECHO and modes & termios.ICANON)

    def hang_up(self) -> int:
        """Close the terminal as a window is closed; the program's exit code."""
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> int:
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)
