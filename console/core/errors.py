"""The one error tree. Each error says what happened, where, why, and what to do next.

LabError
├── InputError            exit 2: a profile, an argument or a file is wrong
├── JournalError          exit 3: the experiment's memory can't be used
│   └── NotAJournal       exit 2: the file is empty, damaged, of something else, or of a newer console
├── ServiceError          exit 3: the production service needs a person
│   └── LeaseOver         the guard of a node ends the lab and brings the service back, or has done so
└── NodeError             exit 3: something on, or on the way to, one node
    ├── Unreachable       no contact: name, route, refused connection, time-out
    ├── AuthRefused       the node refused every key
    ├── HostKeyUnknown    first contact; a person has to compare the fingerprint
    ├── HostKeyChanged    the key differs from the known one
    ├── HostKeyRevoked    the key is marked @revoked
    ├── ScriptTimedOut    a script did not end within its limit
    ├── ScriptFailed      a script ended with a non-zero status
    └── AnswerUnreadable  a script's answer was cut short or is not what it should be
"""

from typing import ClassVar


class LabError(Exception):
    """Base of everything the console raises on purpose.

    `what` is the event, `why` the cause as far as it is known, `next_step` what a person does about it.
    """

    exit_code: ClassVar[int] = 3

    def __init__(self, what: str, *, why: str = "", next_step: str = "", node: str | None = None) -> None:
        self.what = what
        self.why = why
        self.next_step = next_step
        self.node = node
        super().__init__(self.render())

    def render(self) -> str:
        """One message of up to three lines, ready for a person."""
        head = f"{self.node}: {self.what}" if self.node else self.what
        lines = [head]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.next_step:
            lines.append(f"  next: {self.next_step}")
        return "\n".join(lines)


class InputError(LabError):
    """A profile, a checklist, an argument or a file given by the user is wrong."""

    exit_code = 2


class JournalError(LabError):
    """The experiment's journal is locked, or can't be read or written now."""


class NotAJournal(JournalError):
    """The given file holds no experiment that this console can read; it is left as it is."""

    exit_code = 2


class ServiceError(LabError):
    """The production service is in a state that a person has to decide about."""


class LeaseOver(ServiceError):
    """The lab's time on a node is over: its guard ends the jobs and brings the service back, or has done so.

    `state` is that of the lease: "expired" or "window over".
    """

    def __init__(self, node: str, state: str) -> None:
        super().__init__(
            f"the lab's time on this node is over ({state})",
            node=node,
            why="its guard ends the lab's jobs and brings the service back by itself",
            next_step="see `lab service status`; begin a new experiment in a new window",
        )


class NodeError(LabError):
    """Something on one node, or on the way to it. `node` is always set."""

    def __init__(self, node: str, what: str, *, why: str = "", next_step: str = "") -> None:
        super().__init__(what, why=why, next_step=next_step, node=node)


class Unreachable(NodeError):
    """No contact with the node; says nothing about the jobs on it."""


class AuthRefused(NodeError):
    """The node refused every key that was offered."""


class HostKeyUnknown(NodeError):
    """The node's host key is in no known_hosts file."""

    def __init__(
        self,
        node: str,
        *,
        fingerprint: str,
        known_hosts_line: str,
        accept_into: str = "~/.ssh/known_hosts",
        why: str = "",
        next_step: str = "",
    ) -> None:
        self.fingerprint = fingerprint
        self.known_hosts_line = known_hosts_line
        self.accept_into = accept_into
        super().__init__(node, f"unknown host key {fingerprint}", why=why, next_step=next_step)


class HostKeyChanged(NodeError):
    """The node's host key differs from the known one; never accepted from inside the console."""


class HostKeyRevoked(NodeError):
    """The node's host key is marked as revoked."""


class ScriptTimedOut(NodeError):
    """A script did not end within its time limit; its processes were ended."""


class ScriptFailed(NodeError):
    """A script ended with a non-zero status."""

    def __init__(self, node: str, what: str, *, exit_status: int, why: str = "", next_step: str = "") -> None:
        self.exit_status = exit_status
        super().__init__(node, what, why=why, next_step=next_step)


class AnswerUnreadable(NodeError):
    """A script's framed answer was cut short or could not be parsed."""
