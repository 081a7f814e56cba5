"""Damage and malice: any bytes, cut anywhere, change nothing but what they say themselves."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.core.reading.facts import StepMetrics, UnreadMetric
from console.core.reading.lines import LONGEST_LINE_BYTES, clean
from console.core.reading.signatures import Signature
from console.core.reading.trainlog import TrainLogReader, read_whole
from tests.reading.samples import ALL, facts, raw

STEP = b"{'loss': 1.0, 'iteration': '4/8', 'train_speed(s/it)': 2.0}"
SLOW = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


@SLOW
@given(st.sampled_from(ALL), st.lists(st.integers(0, 1 << 20), max_size=40))
def test_facts_do_not_depend_on_the_chunks(name: str, places: list[int]) -> None:
    data = raw(name)
    assert repr(facts(cut(data, places))) == repr(facts([data]))


@pytest.mark.parametrize("name", ALL)
def test_byte_by_byte(name: str) -> None:
    data = raw(name)
    assert repr(facts(data[i : i + 1] for i in range(len(data)))) == repr(facts([data]))


@SLOW
@given(
    st.sampled_from(ALL),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.binary(max_size=12)), min_size=1, max_size=12),
    st.lists(st.integers(0, 1 << 20), max_size=8),
)
def test_mutated_logs_are_read_without_an_exception(
    name: str, edits: list[tuple[int, bytes]], places: list[int]
) -> None:
    data = bytearray(raw(name))
    for place, new in edits:
        at = place % len(data)
        data[at : at + len(new)] = new
    mutated = bytes(data)
    whole = facts([mutated])
    assert repr(facts(cut(mutated, places))) == repr(whole)
    assert all(0 <= fact.start_byte <= fact.end_byte <= len(mutated) for fact in whole)
    read_whole(mutated).first_cause()


@SLOW
@given(st.binary(max_size=400))
def test_no_control_character_survives_cleaning(data: bytes) -> None:
    assert not re.search(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e]", clean(data))


@pytest.mark.parametrize(
    "noise",
    [b"\x00\x00", b"\xff\xfe\xc3", b"\x1b[31m", b"\x1b]0;title\x07", b"\xe2\x80\xae", b"\xed\xa0\x80"],
)
def test_noise_beside_a_record_is_harmless(noise: bytes) -> None:
    found = [fact for fact in facts([noise + STEP + noise + b"\n"]) if isinstance(fact, StepMetrics)]
    assert [(step.step, step.loss) for step in found] == [(4, 1.0)]


def test_an_endless_line_is_bounded_and_what_follows_is_read() -> None:
    reader = TrainLogReader()
    for _ in range(8 * 16):
        assert reader.feed(b"x" * (1 << 16)) == ()
    found = [*reader.feed(b"\n" + STEP + b"\n"), *reader.finish()]
    assert [(fact.line, fact.start_byte) for fact in found] == [(2, 8 * (1 << 20) + 1)]


def test_an_overlong_line_is_cut_the_same_however_it_comes() -> None:
    data = b"y" * (LONGEST_LINE_BYTES + 5000) + STEP + b"z" * LONGEST_LINE_BYTES + b"\n" + STEP + b"\n"
    expected = repr(facts([data]))
    assert expected.count("StepMetrics(") == 2
    assert repr(facts(data[i : i + 70_001] for i in range(0, len(data), 70_001))) == expected


def test_a_line_of_braces_does_not_take_forever() -> None:
    """Quadratic matching of 1 MB would not end within the life of this test run."""
    data = (b"{" * 500_000) + b"'iteration'" + (b"{'iteration': '" * 30_000) + b"\n" + STEP + b"\n"
    assert [fact.step for fact in facts([data]) if isinstance(fact, StepMetrics)] == [4]


def test_absurd_numbers_are_no_measurements() -> None:
    line = (
        b"{'loss': 1e999, 'grad_norm': -inf, 'iteration': '5/8', 'elapsed_time': '999999999999999s', "
        b"'memory(GiB)': nan, 'train_speed(s/it)': 1e300}\n"
    )
    (step,) = [fact for fact in facts([line]) if isinstance(fact, StepMetrics)]
    assert step.printed_speed_seconds is None
    assert step.memory_bytes is None


def test_a_step_of_a_thousand_digits_is_damage() -> None:
    (unread,) = facts([b"{'loss': 1.0, 'iteration': '" + b"9" * 5000 + b"/8'}\n"])
    assert isinstance(unread, UnreadMetric)


def test_a_signature_is_found_with_its_groups_and_rank() -> None:
    signature = Signature(
        "oom", (b"CUDA out of memory",), re.compile(r"CUDA out of memory\. Tried to allocate ([\d.]+) (\w+)")
    )
    (symptom,) = read_whole(raw("failed-node-a.log"), signatures=[signature]).symptoms
    assert (symptom.signature, symptom.groups, symptom.rank) == ("oom", ("2.32", "GiB"), 0)
    assert read_whole(raw("swift-4x.log"), signatures=[signature]).symptoms == ()
