"""torchrun's table of failed workers."""

import re

from console.core.reading.facts import WorkerFailure

WORKER_MARKS = (b"time      : ", b"(local_rank: ", b"exitcode  : ", b"first observed failure")

_AT = re.compile(r"time      : (\S+)")
_RANK = re.compile(r"rank      : (\d{1,9}) \(local_rank: (\d{1,9})\)")
_EXIT = re.compile(r"exitcode  : (-?\d{1,9}) \(pid: (\d{1,12})\)")


class WorkerTable:
    """Collects the lines of one entry until its exit status comes."""

    def __init__(self) -> None:
        self._at: str | None = None
        self._rank: tuple[int, int] | None = None
        self._root = False

    def line(self, text: str, place: dict[str, int]) -> WorkerFailure | None:
        if "first observed failure" in text:
            self._root = True
        elif match := _AT.search(text):
            self._at = match[1]
        elif match := _RANK.search(text):
            self._rank = (int(match[1]), int(match[2]))
        elif (match := _EXIT.search(text)) and self._rank is not None:
            failure = WorkerFailure(
                **place,
                rank=self._rank[0],
                local_rank=self._rank[1],
                exit_status=int(match[1]),
                pid=int(match[2]),
                at=self._at,
                root_cause=self._root,
            )
            self._at, self._rank, self._root = None, None, False
            return failure
        return None
