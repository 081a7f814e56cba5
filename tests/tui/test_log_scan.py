"""Scanning a log block by block finds the same lines as reading it whole."""

import asyncio
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.tui.widgets import log_scan
from console.tui.widgets.expressions import expression
from console.tui.widgets.log_index import Span, shown
from console.tui.widgets.log_scan import Matches, Wanted, first_wanted, scan

WANTED = Wanted(pattern=expression("a"))
LOGS = st.lists(
    st.binary(max_size=12) | st.sampled_from([b"a", b"\r", b"\x1b[31ma", "\u2028a".encode(), b"\ta"]),
    max_size=30,
).map(b"\n".join)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_scan, "BLOCK_BYTES", 16)


def reading(log: bytes | bytearray) -> Callable[[int, int], bytes]:
    return lambda start, length: bytes(log[start : start + length])


def passing(log: bytes, wanted: Wanted = WANTED) -> list[Span]:
    spans, at = [], 0
    for line in re.findall(rb"[^\n]*\n|[^\n]+\Z", log):
        text, pattern = shown(line.removesuffix(b"\n")), wanted.pattern
        if wanted.needle.casefold() in text.casefold() and (pattern is None or pattern.search(text)):
            spans.append((at, at + len(line)))
        at += len(line)
    return spans


async def fill(matches: Matches, log: bytes) -> int:
    added: list[int] = []
    await matches.fill(reading(log), added.append, lambda share: None)
    return sum(added)


@given(
    log=LOGS,
    step=st.sampled_from([1, -1]),
    wanted=st.sampled_from([WANTED, Wanted("A"), Wanted("A", expression("a$"))]),
)
@settings(deadline=None)
def test_either_way_every_line_is_tested_once(log: bytes, step: int, wanted: Wanted) -> None:
    blocks = list(scan(reading(log), 0, len(log), step, wanted))
    assert [span for spans, _ in blocks for span in spans] == passing(log, wanted)[::step]
    assert sum(length for _, length in blocks) == len(log)


@given(log=LOGS, share=st.floats(0, 1), cuts=st.lists(st.integers(1, 40), max_size=8))
@settings(deadline=None)
def test_a_filter_set_in_the_middle_ends_with_all_matches(log: bytes, share: float, cuts: list[int]) -> None:
    size = int(len(log) * share)
    matches = Matches(WANTED, log.rfind(b"\n", 0, size) + 1)
    for cut in [0, *cuts]:
        size = min(len(log), size + cut)
        matches.advance(reading(log), size)
    assert asyncio.run(fill(matches, log)) <= len(matches)
    size = len(log)
    while True:
        before = matches.seen_to
        matches.advance(reading(log), size)
        if matches.seen_to == before:
            break
    found = [matches.span(row) for row in range(len(matches))]
    assert found == passing(log)
    assert [matches.row_at(start) for start, _ in found] == list(range(len(found)))


def test_a_last_line_is_tested_again_when_it_has_grown() -> None:
    log = bytearray(b"a\nb")
    matches = Matches(WANTED, 0)
    matches.advance(reading(log), len(log))
    assert len(matches) == 1
    log += b"a and more"
    matches.advance(reading(log), len(log))
    assert [matches.span(row) for row in range(len(matches))] == [(0, 2), (2, len(log))]


def test_of_many_matches_the_newest_are_kept() -> None:
    log = b"a\n" * 100
    matches = Matches(WANTED, 100, kept=20)
    asyncio.run(fill(matches, log))
    assert len(matches) >= 20
    dropped = sum(matches.advance(reading(log), len(log))[1] for _ in range(10))
    assert dropped
    assert len(matches) <= 20
    assert matches.span(len(matches) - 1) == (198, 200)
    rows = [matches.span(row)[0] for row in range(len(matches))]
    assert rows == list(range(200 - 2 * len(rows), 200, 2))


async def test_the_first_hit_ends_a_search_and_lets_others_work_before() -> None:
    log = b"b\n" * 1000 + b"a\n" + b"b\n" * 1000
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    working = asyncio.create_task(others())
    shares: list[float] = []
    found = await first_wanted(reading(log), [(0, len(log))], -1, WANTED, shares.append)
    working.cancel()
    assert found == (2000, 2002)
    assert turns >= len(shares) >= 100
    assert shares == sorted(shares)
    assert shares[-1] <= 0.5
