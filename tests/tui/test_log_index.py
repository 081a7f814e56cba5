"""The line index: nothing is missed, repeated or held that need not be."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.tui.widgets.log_index import LogIndex


def lines_of(index: LogIndex) -> list[str]:
    return [index.text(line) for line in range(len(index))]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "run.log"


def test_a_log_that_does_not_exist_yet_is_empty(log: Path) -> None:
    index = LogIndex(log)
    assert not index.advance().grown
    log.write_bytes(b"one\n")
    assert index.advance().grown
    assert lines_of(index) == ["one"]


@given(chunks=st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\r", b"")), max_size=12))
@settings(max_examples=150, deadline=None)
def test_chunks_make_the_same_lines_as_the_whole(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes]
) -> None:
    log = tmp_path_factory.mktemp("log") / "run.log"
    index = LogIndex(log)
    for chunk in chunks:
        with log.open("ab") as stream:
            stream.write(chunk)
        index.advance()
    whole = b"".join(chunks)
    expected = whole.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert [index.read(line) for line in range(len(index))] == expected
    for line in range(len(index)):
        start, _ = index.span(line)
        assert index.line_at(start) == line
        assert index.number(line) == line + 1
    index.close()


def test_a_long_log_is_entered_at_its_end_and_goes_back_by_blocks(log: Path) -> None:
    written = [f"line {n}" for n in range(5000)]
    log.write_text("\n".join(written) + "\n")
    index = LogIndex(log, block=4096)
    index.advance()
    assert 0 < len(index) < 1000
    assert lines_of(index) == written[-len(index) :]
    assert index.number(0) is None
    while added := index.older():
        assert lines_of(index)[added] == written[-(len(index) - added)]
    assert lines_of(index) == written
    assert index.number(4999) == 5000


def test_a_line_longer_than_a_block_is_found_whole(log: Path) -> None:
    log.write_bytes(b"first\n" + b"x" * 50_000 + b"\nlast\n")
    index = LogIndex(log, block=4096)
    index.advance()
    assert lines_of(index)[-1] == "last"
    index.older()
    assert len(index) == 2 or index.read(0) == b"first"
    start, end = index.span(len(index) - 2)
    assert end - start == 50_001
    assert "50001 bytes, cut" in index.text(len(index) - 2)


def test_what_was_never_fetched_is_told_not_shown(log: Path) -> None:
    with log.open("wb") as stream:
        stream.seek(1 << 20)
        stream.write(b"\n".join(b"line %d" % n for n in range(2000)) + b"\n")
    index = LogIndex(log, block=8192)
    index.advance()
    while index.older():
        pass
    assert index.hole
    assert lines_of(index) == [f"line {n}" for n in range(2000)]


def test_a_shorter_or_another_file_starts_anew(log: Path) -> None:
    log.write_bytes(b"old one\nold two\n")
    index = LogIndex(log)
    index.advance()
    os.truncate(log, 0)
    log.write_bytes(b"new\n")
    assert index.advance().reset
    assert lines_of(index) == ["new"]
    other = log.with_name("other")
    other.write_bytes(b"replaced by a longer file\n")
    other.replace(log)
    assert index.advance().reset
    assert lines_of(index) == ["replaced by a longer file"]


def test_the_ring_keeps_the_newest_lines_and_their_numbers(log: Path) -> None:
    index = LogIndex(log, lines_kept=100)
    with log.open("ab") as stream:
        for n in range(1000):
            stream.write(b"line %d\n" % n)
            stream.flush()
            index.advance()
    assert len(index) <= 101
    assert index.text(len(index) - 1) == "line 999"
    assert index.number(len(index) - 1) == 1000


def test_of_a_bar_only_its_last_state_is_shown(log: Path) -> None:
    log.write_bytes(b"Train:   0%|  | 0/9\rTrain:  50%|# | 4/9\rTrain: 100%|##| 9/9\r\nnext\n")
    index = LogIndex(log)
    index.advance()
    assert lines_of(index) == ["Train: 100%|##| 9/9", "next"]


def test_eight_megabytes_of_bar_show_the_end(log: Path) -> None:
    log.write_bytes(b"".join(b"\rTrain: %7d" % n for n in range(500_000)))
    index = LogIndex(log)
    index.advance()
    assert index.text(len(index) - 1) == "Train:  499999"
