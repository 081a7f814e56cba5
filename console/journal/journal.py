"""The append-only journal of one experiment.

`experiment.sqlite3` holds `events` (one row, one transaction each) and `samples`. A commit is on disk before
`append` returns (`synchronous=FULL` under WAL): what was shown can't be lost, however the console ends.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from console.core.errors import JournalError
from console.core.plan.custody import Sample
from console.core.record.events import Event, event_json, parse_event

FILE = "experiment.sqlite3"
SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    node TEXT,
    run TEXT,
    body TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS samples (
    node TEXT NOT NULL,
    n INTEGER NOT NULL,
    guard TEXT NOT NULL,
    at TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (node, guard, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS samples_by_time ON samples (node, at);
"""


class Journal:
    """Reading and appending. One writer at a time (see `lock.py`), any number of readers."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        """Open the journal in `folder`. Raises `JournalError`: absent, damaged, of another layout."""
        self.folder = folder
        path = folder / FILE
        if read_only and not path.is_file():
            raise JournalError(
                f"no experiment in {folder}", next_step="give the folder that holds experiment.sqlite3"
            )
        try:
            self._db = _open(path, read_only)
        except sqlite3.Error as error:
            raise JournalError(
                f"the journal {path} can't be opened", why=str(error), next_step="see disk room and rights"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def append(self, event: Event) -> int:
        """Store one event and return its number. Durable on return. Raises `JournalError`."""
        row = (event.at.isoformat(), event.kind, event.node, event.run, event_json(event))
        try:
            with self._db:
                cursor = self._db.execute(
                    "INSERT INTO events (at, kind, node, run, body) VALUES (?, ?, ?, ?, ?)", row
                )
        except sqlite3.Error as error:
            raise _not_written(self.folder, error) from None
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def add_samples(self, node: str, guard: str, samples: Sequence[Sample], at: datetime) -> None:
        """Store readings of a node; a reading that is already there is left as it is."""
        rows = [(node, sample.n, guard, at.isoformat(), sample.model_dump_json()) for sample in samples]
        try:
            with self._db:
                self._db.executemany("INSERT OR IGNORE INTO samples VALUES (?, ?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise _not_written(self.folder, error) from None

    def events(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Events with their numbers, in order, from the one after `after`. Raises `JournalError`."""
        rows = self._db.execute("SELECT seq, body FROM events WHERE seq > ? ORDER BY seq", (after,))
        for seq, body in rows:
            try:
                yield seq, parse_event(body)
            except ValidationError as error:
                raise JournalError(
                    f"event {seq} of {self.folder / FILE} can't be read",
                    why=str(error.errors(include_url=False)[0]["msg"]),
                    next_step="it was written by another version of the console; use that version",
                ) from None

    def samples(self, node: str, since: datetime | None = None) -> list[tuple[datetime, Sample]]:
        """Readings of a node that arrived after `since`, oldest first."""
        rows = self._db.execute(
            "SELECT at, body FROM samples WHERE node = ? AND at > ? ORDER BY at, n",
            (node, since.isoformat() if since else ""),
        )
        return [(datetime.fromisoformat(at), Sample.model_validate_json(body)) for at, body in rows]

    def newest_sample(self, node: str, guard: str) -> int:
        """The highest reading number stored of a guard, or -1."""
        row = self._db.execute(
            "SELECT max(n) FROM samples WHERE node = ? AND guard = ?", (node, guard)
        ).fetchone()
        return -1 if row[0] is None else int(row[0])


def read_journal(folder: Path) -> list[Event]:
    """All events of a finished or foreign experiment. Raises `JournalError`."""
    with Journal(folder, read_only=True) as journal:
        return [event for _, event in journal.events()]


def _open(path: Path, read_only: bool) -> sqlite3.Connection:
    if read_only:
        return _open_to_read(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path, isolation_level="DEFERRED")
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("PRAGMA busy_timeout=5000")
    _check_version(db, path)
    with db:
        db.executescript(_SCHEMA)
        db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
    return db


def _open_to_read(path: Path) -> sqlite3.Connection:
    """A foreign journal may lie on a read-only disk, where WAL can't be read without `immutable`."""
    uri = path.resolve().as_uri()
    try:
        db = sqlite3.connect(f"{uri}?mode=ro", uri=True)
        db.execute("SELECT count(*) FROM events").fetchone()
    except sqlite3.OperationalError:
        db = sqlite3.connect(f"{uri}?immutable=1", uri=True)
        db.execute("SELECT count(*) FROM events").fetchone()
    _check_version(db, path)
    return db


def _check_version(db: sqlite3.Connection, path: Path) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, SCHEMA_VERSION):
        raise JournalError(
            f"{path} has layout {version}, this console knows {SCHEMA_VERSION}",
            next_step="open it with the console that wrote it",
        )


def _not_written(folder: Path, error: sqlite3.Error) -> JournalError:
    return JournalError(
        f"the journal in {folder} can't be written",
        why=str(error),
        next_step="make room on the disk, then start again: nothing that was shown is lost",
    )
