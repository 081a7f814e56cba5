"""The append-only journal of one experiment.

`experiment.sqlite3` holds `events` (one row, one transaction each) and `samples`. A commit is on disk before
`append` returns (`synchronous=FULL` under WAL): what was shown can't be lost, however the console ends.
A writer that closes leaves one file, which can be read anywhere and stays as it is. `-wal` and `-shm` lie
beside it only while a console works, or after one that was killed.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from console.core.errors import JournalError, NotAJournal
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
        """Open the journal in `folder`, or begin one. Raises `JournalError`, for a file that is no journal
        `NotAJournal`; such a file is left as it is.
        """
        self.folder = folder
        path = folder / FILE
        if read_only and not path.is_file():
            raise JournalError(
                f"no experiment in {folder}", next_step="give the folder that holds experiment.sqlite3"
            )
        try:
            if path.exists():
                _examine(path, read_only)
            self._db = _open_to_read(path) if read_only else _open(path)
            self._writes = not read_only
        except sqlite3.Error as error:
            raise JournalError(
                f"the journal {path} can't be opened",
                why=str(error),
                next_step="see disk room and rights, or copy the whole folder to where you may write",
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
        """A writer leaves one file; while another looks on, `-wal` stays beside it, with nothing in it."""
        if self._writes:
            with suppress(sqlite3.Error):  # refused, the journal is whole as it is
                self._db.execute("PRAGMA busy_timeout=0")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._db.execute("PRAGMA journal_mode=DELETE")
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

    def events(self, after: int = 0, *, kind: str | None = None) -> Iterator[tuple[int, Event]]:
        """Events (of one kind) with their numbers, in order, from the one after `after`.

        Raises `JournalError`.
        """
        try:
            rows = self._db.execute(
                "SELECT seq, body FROM events WHERE seq > ? AND kind = coalesce(?, kind) ORDER BY seq",
                (after, kind),
            ).fetchall()  # a reader that pauses half way would keep a console from opening or closing
            for seq, body in rows:
                yield seq, parse_event(body)
        except ValidationError as error:
            raise NotAJournal(
                f"event {seq} of {self.folder / FILE} can't be read",
                why=str(error.errors(include_url=False)[0]["msg"]),
                next_step="it was written by another version of the console; use that version",
            ) from None
        except sqlite3.OperationalError as error:
            raise JournalError(
                f"the journal in {self.folder} can't be read now", why=str(error), next_step="try again"
            ) from None
        except sqlite3.DatabaseError as error:
            raise _damaged(self.folder / FILE, str(error)) from None

    def samples(
        self, node: str, since: datetime | None = None, until: datetime | None = None
    ) -> Iterator[tuple[datetime, Sample]]:
        """Readings of a node that arrived after `since` and not after `until`, oldest first, one by one:
        there may be days of them."""
        rows = self._db.execute(
            "SELECT at, body FROM samples WHERE node = ? AND at > ? ORDER BY at, n",
            (node, since.isoformat() if since else ""),
        )
        for at, body in rows:
            if until is not None and datetime.fromisoformat(at) > until:
                return
            yield datetime.fromisoformat(at), Sample.model_validate_json(body)

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


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path, isolation_level="DEFERRED")
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("PRAGMA busy_timeout=5000")
    db.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version={SCHEMA_VERSION}; COMMIT;")
    return db


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Raises `sqlite3.Error`."""
    path = path.resolve()
    uri = path.as_uri()
    try:
        return _connected(f"{uri}?mode=ro")
    except sqlite3.OperationalError:
        if _filled(path, "-journal"):
            # a console was killed on its way into or out of WAL: only a writer may roll that back
            _connected(f"{uri}?mode=rw").close()
            return _connected(f"{uri}?mode=ro")
        # WAL needs files beside it, which a read-only folder refuses. `immutable` does without them, and
        # without what they hold.
        if _filled(path, "-wal"):
            raise
        return _connected(f"{uri}?immutable=1")


def _connected(uri: str) -> sqlite3.Connection:
    db = sqlite3.connect(uri, uri=True)
    try:
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.Error:
        db.close()
        raise
    return db


def _filled(path: Path, suffix: str) -> bool:
    """Whether a file beside the journal holds something that the journal itself lacks."""
    beside = path.with_name(path.name + suffix)
    return beside.exists() and beside.stat().st_size > 0


def _examine(path: Path, read_only: bool) -> None:
    """Look at a file before anything may write to it. Raises `NotAJournal`, `sqlite3.OperationalError`."""
    if path.stat().st_size == 0:
        raise _not_ours(path, "the file is empty")
    try:
        with closing(_open_to_read(path)) as db:
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            columns = {name for _, name, *_ in db.execute("PRAGMA table_info(events)")}
            version = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise _damaged(path, str(error)) from None
    if not tables and not read_only:
        return  # a console was killed between making the file and its first event
    if "samples" not in tables or not columns >= {"seq", "at", "kind", "body"}:
        raise _not_ours(path, "it is a database of something else")
    if version > SCHEMA_VERSION:
        raise NotAJournal(
            f"{path} has layout {version}, this console knows {SCHEMA_VERSION}",
            why="it was written by a newer console",
            next_step="open it with the console that wrote it",
        )


def _not_ours(path: Path, why: str) -> NotAJournal:
    return NotAJournal(
        f"{path} is not an experiment's journal",
        why=why,
        next_step="give the folder of an experiment, or begin one in another folder",
    )


def _damaged(path: Path, why: str) -> NotAJournal:
    return NotAJournal(
        f"the journal {path} is damaged, or is none",
        why=why,
        next_step="use a copy of it, or begin a new experiment in another folder",
    )


def _not_written(folder: Path, error: sqlite3.Error) -> JournalError:
    return JournalError(
        f"the journal in {folder} can't be written",
        why=str(error),
        next_step="make room on the disk, then start again: nothing that was shown is lost",
    )
