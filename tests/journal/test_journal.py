"""The journal: durable, append-only, one writer, any number of readers."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from console.core.errors import JournalError, NotAJournal
from console.core.record.events import Noted, StepLogged
from console.journal import Journal, read_journal
from console.journal.journal import FILE
from console.journal.lock import ExperimentLock

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOBODY = 65534


def noted(words: str) -> Noted:
    return Noted(at=AT, words=words)


def test_events_come_back_in_order(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        numbers = [journal.append(noted(f"event {i}")) for i in range(20)]
    assert numbers == sorted(numbers)
    assert [event.words for event in read_journal(tmp_path)] == [f"event {i}" for i in range(20)]


def test_nan_survives(tmp_path: Path) -> None:
    step = StepLogged(
        at=AT,
        node="a",
        run="E0-1",
        step=1,
        total=2,
        loss=0.0,
        grad_norm=float("nan"),
        start_byte=0,
        end_byte=9,
        line=1,
    )
    with Journal(tmp_path) as journal:
        journal.append(step)
    (back,) = read_journal(tmp_path)
    assert isinstance(back, StepLogged)
    assert back.grad_norm != back.grad_norm


WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from console.core.record.events import Noted
from console.journal import Journal
journal = Journal(Path(sys.argv[1]))
n = 0
while True:
    journal.append(Noted(at=datetime.now(UTC), words=str(n)))
    print(n, flush=True)
    n += 1
"""


def kill_a_writer(folder: Path) -> list[int]:
    """Let one write until it is killed; the numbers of the events that it has shown."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        shown = [int(writer.stdout.readline()) for _ in range(50)]
        writer.send_signal(signal.SIGKILL)
        return shown + [int(line) for line in writer.stdout.read().split("\n") if line.strip()]


def words(folder: Path) -> list[str]:
    return [event.words for event in read_journal(folder) if isinstance(event, Noted)]


def test_killed_writer_loses_nothing_that_was_shown(tmp_path: Path) -> None:
    shown = kill_a_writer(tmp_path)
    kept = [int(number) for number in words(tmp_path)]
    assert kept[: len(shown)] == shown
    assert kept == list(range(len(kept)))


def test_reader_beside_a_writer(tmp_path: Path) -> None:
    with Journal(tmp_path) as writer:
        writer.append(noted("one"))
        with Journal(tmp_path, read_only=True) as reader:
            assert len(list(reader.events())) == 1
            writer.append(noted("two"))
            assert [event.words for _, event in reader.events(after=1)] == ["two"]


def test_a_reader_from_before_the_console_started_sees_its_events(tmp_path: Path) -> None:
    with Journal(tmp_path) as first:
        first.append(noted("one"))
    with Journal(tmp_path, read_only=True) as reader:
        assert len(list(reader.events())) == 1
        with Journal(tmp_path) as second:
            second.append(noted("two"))
            assert [event.words for _, event in reader.events(after=1)] == ["two"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that other users may look into, unlike `tmp_path`."""
    with TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        folder = Path(parent) / "experiment"
        folder.mkdir()
        yield folder


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Who may only read; root, whom no permission stops, is another user meanwhile."""
    for path in (folder, *folder.iterdir()):
        path.chmod(0o555 if path.is_dir() else 0o444)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(0o755)


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and time of the last change of every file."""
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}


def test_a_closed_journal_is_one_file_that_reading_leaves_alone(folder: Path) -> None:
    with Journal(folder) as journal:
        journal.append(noted("one"))
    before = contents(folder)
    assert list(before) == [FILE]
    assert words(folder) == ["one"]
    with unwritable(folder):
        assert words(folder) == ["one"]
    assert contents(folder) == before


def test_closed_while_another_looks_on_the_file_alone_holds_everything(tmp_path: Path) -> None:
    with Journal(tmp_path / "seen") as journal:
        journal.append(noted("one"))
        with Journal(tmp_path / "seen", read_only=True) as reader:
            assert len(list(reader.events())) == 1
            journal.append(noted("two"))
            journal.close()
            (tmp_path / "copy").mkdir()
            shutil.copy(tmp_path / "seen" / FILE, tmp_path / "copy")
            assert [event.words for _, event in reader.events(after=1)] == ["two"]
    assert words(tmp_path / "copy") == ["one", "two"]


def test_who_may_only_read_sees_what_a_living_console_writes(folder: Path) -> None:
    with Journal(folder) as writer:
        writer.append(noted("one"))
        with unwritable(folder):
            reader = Journal(folder, read_only=True)
        writer.append(noted("two"))
        with reader, unwritable(folder):
            assert [event.words for _, event in reader.events()] == ["one", "two"]


def test_who_may_only_read_sees_all_that_a_killed_console_wrote(folder: Path) -> None:
    shown = kill_a_writer(folder)
    assert (folder / f"{FILE}-wal").stat().st_size
    before = contents(folder)
    with unwritable(folder):
        assert words(folder)[: len(shown)] == [str(number) for number in shown]
    assert contents(folder) == before


def test_a_journal_that_can_be_read_in_part_only_is_not_read(folder: Path) -> None:
    kill_a_writer(folder)
    (folder / f"{FILE}-shm").unlink()
    with unwritable(folder), pytest.raises(JournalError, match="can't be opened") as told:
        read_journal(folder)
    assert "copy the whole folder" in told.value.render()
    assert len(words(folder)) >= 50


def test_a_journal_left_in_wal_mode_with_nothing_beside_it_can_be_read(folder: Path) -> None:
    with Journal(folder) as journal:
        journal.append(noted("one"))
    with closing(sqlite3.connect(folder / FILE)) as db:
        db.execute("PRAGMA journal_mode=WAL")
    with unwritable(folder):
        assert words(folder) == ["one"]
    assert [file.name for file in folder.iterdir()] == [FILE]


HALF_WAY = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size=1")
db.execute("BEGIN")
db.execute("UPDATE events SET body = 'half-written' || body")
db.execute("CREATE TABLE spilled AS SELECT zeroblob(2000000)")
os.kill(os.getpid(), signal.SIGKILL)
"""
"""Writes to the file itself, and is killed before it is done: `-journal` holds the way back."""


@pytest.mark.parametrize("read_only", [True, False])
def test_a_console_killed_while_it_closed_left_a_journal_that_opens(folder: Path, read_only: bool) -> None:
    with Journal(folder) as journal:
        for number in range(40):
            journal.append(noted(str(number)))
    killed = subprocess.run([sys.executable, "-c", HALF_WAY, str(folder / FILE)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (folder / f"{FILE}-journal").stat().st_size
    with Journal(folder, read_only=read_only) as journal:
        assert [event.words for _, event in journal.events()] == [str(number) for number in range(40)]
    assert words(folder) == [str(number) for number in range(40)]


def test_a_reader_that_pauses_keeps_no_console_out(folder: Path) -> None:
    with Journal(folder) as journal:
        for number in range(40):
            journal.append(noted(str(number)))
    with Journal(folder, read_only=True) as reader:
        paused = reader.events()
        assert next(paused)[0] == 1
        with Journal(folder) as writer:
            writer.append(noted("40"))
        assert len(list(paused)) == 39
    assert len(words(folder)) == 41


def test_a_journal_behind_a_link_is_read_whole_or_not_at_all(folder: Path) -> None:
    kill_a_writer(folder)
    (folder / f"{FILE}-shm").unlink()
    link = folder / "link"
    link.mkdir()
    (link / FILE).symlink_to(folder / FILE)
    with unwritable(folder), pytest.raises(JournalError, match="can't be opened"):
        read_journal(link)


def test_a_folder_that_is_only_readable_is_not_worked_on(folder: Path) -> None:
    with unwritable(folder), pytest.raises(JournalError, match="can't be worked on"), ExperimentLock(folder):
        pass


def test_second_console_is_told_who_holds_it(tmp_path: Path) -> None:
    holder = (
        "import sys, time\nfrom pathlib import Path\nfrom console.journal.lock import ExperimentLock\n"
        "with ExperimentLock(Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", holder, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(JournalError, match=f"pid {other.pid} on "), ExperimentLock(tmp_path):
            pass
        other.kill()
    with ExperimentLock(tmp_path):
        assert str(tmp_path)


def test_no_experiment_there(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="no experiment in"):
        Journal(tmp_path, read_only=True)
    assert not (tmp_path / FILE).exists()


def of_a_newer_console(path: Path) -> None:
    with Journal(path.parent) as journal:
        journal._db.execute("PRAGMA user_version=99")


def of_something_else(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")


def of_something_alike(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE events (day TEXT, title TEXT)")
        db.execute("CREATE TABLE samples (n INTEGER)")


@pytest.mark.parametrize("read_only", [True, False], ids=["read", "written"])
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Path.touch, "the file is empty"),
        (lambda path: path.write_bytes(bytes(range(256)) * 20), "not a database"),
        (of_something_else, "a database of something else"),
        (of_something_alike, "a database of something else"),
        (of_a_newer_console, "a newer console"),
    ],
    ids=["empty", "random bytes", "something else", "something alike", "newer console"],
)
def test_a_file_that_is_no_journal_of_ours_is_told_and_left_alone(
    tmp_path: Path, make: Callable[[Path], object], why: str, read_only: bool
) -> None:
    file = tmp_path / FILE
    make(file)
    before = file.read_bytes()
    with pytest.raises(NotAJournal, match=why) as told:
        Journal(tmp_path, read_only=read_only)
    assert told.value.exit_code == 2
    assert file.read_bytes() == before


def test_a_damaged_page_is_told(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        for number in range(200):
            journal.append(noted(f"event {number} " + "x" * 200))
    with (tmp_path / FILE).open("r+b") as file:
        file.seek(5 * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(NotAJournal, match="is damaged"):
        read_journal(tmp_path)


def test_unreadable_event(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append(noted("one"))
        with journal._db:
            journal._db.execute(
                "INSERT INTO events (at, kind, body) VALUES ('x', 'x', '{\"kind\": \"unheard of\"}')"
            )
    with pytest.raises(JournalError, match="event 2"):
        read_journal(tmp_path)
