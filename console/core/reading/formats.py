"""Metric records: dict lines and JSON lines of ms-swift 2.x to 4.x, text lines of Megatron 3.x.

The order of the keys differs between releases and is never relied on. A dict counts as a metric record only
if it carries the step under one of the known keys, since logs hold other dicts too.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from console.core.reading.facts import Framework
from console.core.reading.lines import clean
from console.core.reading.numbers import duration, half_unit, number, whole

_ENTRY = re.compile(
    r"""(?P<kq>['"])(?P<key>[^'"]+)(?P=kq)\s*:\s*"""
    r"""(?:(?P<vq>['"])(?P<quoted>.*?)(?P=vq)|(?P<plain>\[[^\]]*\]|[\w.]*\([^)]*\)|[^,}]+))"""
)
_STEP = re.compile(r"(\d{1,15})(?:\s*/\s*(-?\d{1,15}))?")
_TEXT_LINE = re.compile(r"iteration\s+(\d{1,15})\s*/\s*(\d{1,15})\s*\|")
_VALIDATION = re.compile(
    r"validation loss at iteration\s{1,9}(\d{1,15}).{0,200}?\|\s*(?:lm )?loss value:\s*([^\s|]+)"
)

RECORD_MARKS = (b"global_step", b"'iteration'", b'"iteration"')
"""Literals, one of which is in every dict record."""

TEXT_RECORD_MARKS = (b"consumed samples:", b"validation loss at iteration")

LONGEST_RECORD_BYTES = 1 << 13
"""On either side of the step's key."""

LEAST_SPEED, MOST_SPEED = 1e-6, 1e6
"""A printed speed outside these bounds is damage, not a measurement."""

_STEP_KEYS = ("global_step/max_steps", "iteration", "global_step")
_TEXT_KEYS = {
    "consumed samples": "consumed_samples",
    "elapsed time": "elapsed_time",
    "learning rate": "learning_rate",
    "lm loss": "loss",
    "grad norm": "grad_norm",
    "throughput per gpu (tflop/s/gpu)": "throughput",
}


@dataclass(frozen=True, slots=True)
class Record:
    """The entries of one metric record as printed; `start` and `end` within the bytes searched.

    `plain_speed` is False when the speed was printed as a quoted `%.4g` text.
    """

    start: int
    end: int
    step: int
    total: int | None
    values: Mapping[str, str]
    quoted: bool
    step_key: str

    def number(self, key: str) -> float | None:
        return number(self.values.get(key))


def dict_records(data: bytes) -> Iterator[Record]:
    """Every metric record written as a Python dict or as JSON in one line of bytes."""
    for start, end in _dicts(data):
        values: dict[str, str] = {}
        quoted = False
        for entry in _ENTRY.finditer(clean(data[start:end])):
            text = entry["quoted"] if entry["vq"] else entry["plain"].strip()
            values[entry["key"]] = text
            quoted = quoted or bool(entry["vq"] and entry["key"].startswith("train_speed"))
        key = next((key for key in _STEP_KEYS if key in values), None)
        step = _STEP.fullmatch(values[key]) if key else None
        if key and step and _is_metric(values, bare=step[2] is None):
            yield Record(start, end, int(step[1]), _total(step[2]), values, quoted, key)


def _dicts(data: bytes) -> Iterator[tuple[int, int]]:
    """Bounds of the innermost braces around each step key."""
    done = 0
    for position in sorted(_positions(data)):
        if position < done:
            continue
        start = data.rfind(b"{", max(done, position - LONGEST_RECORD_BYTES), position)
        end = data.find(b"}", position, position + LONGEST_RECORD_BYTES)
        if start < 0 or end < 0 or data.find(b"{", position, end) >= 0:
            continue
        if data.find(b"}", start, position) < 0:
            done = end + 1
            yield start, done


def _positions(data: bytes) -> Iterator[int]:
    for literal in RECORD_MARKS:
        position = data.find(literal)
        while position >= 0:
            yield position
            position = data.find(literal, position + len(literal))


def text_record(text: str) -> Record | None:
    """A Megatron 3.x line of `name: value` fields between bars."""
    head = _TEXT_LINE.search(text)
    if head is None:
        return None
    values: dict[str, str] = {}
    for field in text[head.end() :].split("|"):
        name, colon, value = field.rpartition(":")
        name = name.strip().lower()
        if not colon or not name:
            continue
        if name == "elapsed time per iteration (ms)":
            milliseconds = number(value.strip())
            if milliseconds is not None:
                values["elapsed_time_per_iteration"] = repr(milliseconds / 1000)
            continue
        name = "memory(GiB)" if name == "memory(gib)" else name
        values[_TEXT_KEYS.get(name, name.replace(" ", "_"))] = value.strip()
    return Record(0, len(text), int(head[1]), _total(head[2]), values, False, "text")


def validation_record(text: str) -> Record | None:
    """The validation line of Megatron 3.x."""
    match = _VALIDATION.search(text)
    if match is None:
        return None
    return Record(0, len(text), int(match[1]), None, {"eval_loss": match[2]}, False, "text")


def speed(record: Record) -> tuple[float, float] | tuple[None, None]:
    """Printed cumulative mean in s/it and half of its last digit; 3.x prints the inverse."""
    value = record.number("train_speed(s/it)")
    if value is not None and LEAST_SPEED <= value <= MOST_SPEED:
        return value, half_unit(value, quoted=record.quoted)
    inverse = record.number("train_speed(iter/s)")
    if inverse is None or not LEAST_SPEED <= inverse <= MOST_SPEED:
        return None, None
    return 1 / inverse, half_unit(inverse, quoted=record.quoted) / inverse**2


def printed_elapsed(record: Record) -> float | None:
    return duration(record.values.get("elapsed_time"))


def tokens_seen(record: Record) -> int | None:
    return whole(record.values.get("num_input_tokens_seen"))


def framework(record: Record) -> Framework:
    """Megatron-SWIFT 4.x counts iterations; 3.x has the window's own step time."""
    if record.step_key in ("iteration", "text") or "elapsed_time_per_iteration" in record.values:
        return "megatron"
    return "swift"


def family(record: Record) -> str | None:
    """Family of releases that prints records in this way."""
    if record.step_key == "global_step":
        return "2.x"
    if record.step_key == "iteration":
        return "4.x"
    if record.step_key == "text" or record.values.keys() & {
        "percentage", "train_speed(iter/s)", "elapsed_time_per_iteration"
    }:  # fmt: skip
        return "3.x"
    return "4.x" if "train_speed(s/it)" in record.values else None


def _total(text: str | None) -> int | None:
    return int(text) if text and int(text) > 0 else None


def _is_metric(values: Mapping[str, str], *, bare: bool) -> bool:
    """A step number without its total is no proof: settings and other records count steps too."""
    return not bare or any(key in values for key in ("loss", "eval_loss", "train_runtime"))
