"""Several logs as one stream: nothing lost, nothing invented, order within a log kept, doubt told."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from console.core.reading.line_heads import head_of
from console.core.reading.merge import Line, Merge, Row, line_up, order_known

TEXTS = st.sampled_from(
    [
        *"abcdefgh",
        "warn",
        "[rank0]: a",
        "[rank1]: a",
        "{'loss': 1.5, 'iteration': '3/9'}",
        "{'loss': 1.6, 'iteration': '3/9'}",
        "{'loss': 1.4, 'iteration': '4/9'}",
        "[2026-11-29 10:00:01] b",
        "[2026-11-29 10:00:09] c",
        "[2026-11-29 11:00:00] b",
    ]
)
ROUNDS = st.lists(st.lists(st.lists(TEXTS, max_size=12), min_size=3, max_size=3), max_size=6)


def merged(
    rounds: Sequence[Sequence[Sequence[str]]], merge: Merge | None = None
) -> tuple[Merge, list[list[Line]]]:
    """Rounds of texts per log, merged: the first is history, the others arrive a second apart."""
    merge = merge or Merge()
    logs: list[list[Line]] = [[] for _ in rounds[0]] if rounds else []
    for n, texts in enumerate(rounds):
        new = [
            [Line(len(log) + k, text) for k, text in enumerate(said)]
            for log, said in zip(logs, texts, strict=True)
        ]
        for log, lines in zip(logs, new, strict=True):
            log += lines
        merge.take(new, float(n), history=not n)
    return merge, logs


def shown(merge: Merge, logs: Sequence[Sequence[Line]]) -> list[str]:
    """Rows as `01 text`, the text as the first of them said it."""
    rows = []
    for row in merge.rows:
        log, place = row.said[0]
        rows.append(f"{''.join(str(log) for log, _ in row.said)} {logs[log][place].text}")
    return rows


def doubts(rows: Sequence[Row]) -> list[int]:
    return [n for n, (before, row) in enumerate(pairwise(rows), start=1) if not order_known(before, row)]


@given(ROUNDS)
def test_nothing_is_lost_or_invented_and_each_log_keeps_its_order(rounds: list[list[list[str]]]) -> None:
    merge, logs = merged(rounds)
    for log, lines in enumerate(logs):
        places = [place for row in merge.rows for which, place in row.said if which == log]
        assert places == [line.start_byte for line in lines]
    for row in merge.rows:
        bodies = {head_of(logs[log][place].text).body for log, place in row.said}
        assert len(bodies) == 1, "only the same text stands in one row"
        assert len({log for log, _ in row.said}) == len(row.said), "no log says a row twice"


@given(ROUNDS, st.integers(1, 30))
def test_a_change_names_the_first_row_that_is_not_as_before(rounds: list[list[list[str]]], kept: int) -> None:
    merge = Merge(rows_kept=kept)
    at = [0, 0, 0]
    for n, texts in enumerate(rounds):
        before = list(merge.rows)
        lines = [
            [Line(start + k, text) for k, text in enumerate(said)]
            for start, said in zip(at, texts, strict=True)
        ]
        change = merge.take(lines, float(n), history=not n)
        at = [start + len(said) for start, said in zip(at, texts, strict=True)]
        assert merge.rows[: change.first] == before[change.dropped : change.dropped + change.first]
        assert len(merge.rows) <= kept


@given(st.lists(TEXTS, max_size=30), st.lists(TEXTS, max_size=30))
def test_logs_are_lined_up_at_equal_places_in_ascending_order(older: list[str], fresh: list[str]) -> None:
    left, right = [("text", hash(text)) for text in older], [("text", hash(text)) for text in fresh]
    pairs = line_up(left, right)
    assert all(left[a] == right[b] for a, b in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))


@given(st.lists(TEXTS, max_size=30))
def test_equal_logs_become_one(texts: list[str]) -> None:
    merge, _ = merged([[texts, texts]])
    assert [len(row.said) for row in merge.rows] == [2] * len(texts)
    assert doubts(merge.rows) == []


def test_the_same_line_of_two_ranks_stands_once() -> None:
    merge, logs = merged([[["[rank0]: hello", "only 0"], ["only 1", "[rank1]: hello", "end"]]])
    assert shown(merge, logs) == ["1 only 1", "01 [rank0]: hello", "0 only 0", "1 end"]


def test_a_line_between_two_common_ones_stays_between_them() -> None:
    merge, logs = merged([[["a", "b"], ["a"]], [[], ["x", "b"]]])
    assert shown(merge, logs) == ["01 a", "1 x", "01 b"]


def test_records_of_one_step_stand_together_though_they_differ() -> None:
    one = [f"{{'loss': {n}.5, 'iteration': '{n}/3'}}" for n in (1, 2, 3)]
    other = [f"{{'loss': {n}.7, 'iteration': '{n}/3'}}" for n in (1, 2, 3)]
    merge, logs = merged([[one, other, one]])
    said = [line.split(" ")[0] for line in shown(merge, logs)]
    assert said == ["02", "1"] * 3


def test_later_arrivals_stand_after_earlier_ones_and_are_not_in_doubt() -> None:
    merge, logs = merged([[["0 old"], ["1 old"]], [[], ["1 step"]], [["0 error"], []]])
    assert shown(merge, logs) == ["0 0 old", "1 1 old", "1 1 step", "0 0 error"]
    assert doubts(merge.rows) == [1], "of the history nothing says which came first"


def test_time_stamps_order_history_and_unstamped_lines_follow_theirs() -> None:
    zero = ["2026-11-29 10:00:01 start", "loads", "2026-11-29 10:00:05 ready"]
    one = ["2026-11-29 10:00:03 hello", "waits", "2026-11-29 10:00:07 ends"]
    merge, logs = merged([[zero, one]])
    bodies = [text.split()[-1] for text in shown(merge, logs)]
    assert bodies == ["start", "loads", "hello", "waits", "ready", "ends"]
    assert doubts(merge.rows) == [2, 4], "when an unstamped line was written nobody knows"


def test_equal_lines_said_an_hour_apart_are_two() -> None:
    merge, logs = merged([[["[2026-11-29 10:00:00] lost peer"], ["[2026-11-29 11:00:00] lost peer"]]])
    assert [text[0] for text in shown(merge, logs)] == ["0", "1"]
    for history in (True, False):
        late = Merge()
        late.take([[Line(0, "lost peer")], []], 100.0, history=history)
        late.take([[], [Line(0, "lost peer")]], 160.0)
        assert len(late.rows) == 2, "what comes now is not hidden in what came long ago"


def test_memory_is_bounded() -> None:
    merge = Merge(rows_kept=100)
    for n in range(500):
        merge.take([[Line(n, f"line {n}")], [Line(n, f"other {n}")]], float(n))
    assert len(merge.rows) <= 100
    assert merge.rows[-1].said == ((1, 499),)


def test_heads_are_taken_off_and_only_they() -> None:
    for text, body in {
        "[rank0]: loss": "loss",
        "[default3]:[2026-11-29 10:00:01,123] [INFO] up": "[INFO] up",
        "W1129 19:53:12.123456 12345 torch/run.py:1] slow": "torch/run.py:1] slow",
        "[rank0]:[W1129 19:45:47.609631139 NCCL.cpp:7] leaks": "NCCL.cpp:7] leaks",
        "vm:6455:6460 [0] NCCL INFO ring": "NCCL INFO ring",
        "2026-11-29 10:00:01 - up": "up",
        "[INFO:swift] rank: 0, local_rank: 0": "[INFO:swift] rank: 0, local_rank: 0",
        "comm 0x1 rank 0": "comm 0x1 rank 0",
    }.items():
        assert head_of(text).body == body
    assert head_of("[INFO:swift] End time of running main: 2026-11-29 20:03:00.5").stamp is not None
    assert head_of("data of 2024-01-01 00:00:00 loaded").stamp is None, "a date inside is not a time stamp"
    assert head_of("2026-13-45 10:00:00 never").stamp is None
    assert head_of(" iteration        7/      93 | consumed samples: 1").step == 7
