"""The recorded logs of these tests and what is true of them.

The swift logs share one clock: the first step takes 9 s and every other 0.5 s, evaluations after steps 10 and
20 take 4 s each and saving after step 20 takes 6 s. The Megatron 4 log: 31 s, then 2 s, evaluations of 7 s.
"""

from collections.abc import Iterable
from pathlib import Path

from console.core.reading.facts import LogFact
from console.core.reading.steady import Steady, steady_step_seconds
from console.core.reading.trainlog import TrainLog, TrainLogReader, read_whole

FIXTURES = Path(__file__).parent / "fixtures"
ALL = sorted(path.name for path in FIXTURES.iterdir())
HEALTHY = (
    "swift-4x.log",
    "swift-4x-quoted.log",
    "swift-3x-iter.log",
    "swift-logging.jsonl",
    "swift-resumed-quoted.log",
    "megatron-4x-last-rank.log",
    "megatron-logging.jsonl",
)
SWIFT_STEP_SECONDS, MEGATRON_STEP_SECONDS, MEGATRON_3X_STEP_SECONDS = 0.5, 2.0, 4.0


def raw(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def log(name: str) -> TrainLog:
    return read_whole(raw(name))


def steady(read: TrainLog) -> Steady:
    return steady_step_seconds(read.steps, evals=read.evals, checkpoints=read.checkpoints)


def facts(chunks: Iterable[bytes]) -> list[LogFact]:
    reader = TrainLogReader()
    return [*(fact for chunk in chunks for fact in reader.feed(chunk)), *reader.finish()]
