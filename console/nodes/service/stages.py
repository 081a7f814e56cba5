"""How far a starting vLLM has come, read from its log, and how long the rest will take.

A cold start is silent for minutes, so each stage is named and its length is compared with the ones of earlier
starts. Patterns are those of vLLM 0.20's own log; lines carry prefixes, so nothing is anchored.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

StageName = Literal["starting", "weights", "compile", "graphs", "serving", "ready"]

ORDER: tuple[StageName, ...] = ("starting", "weights", "compile", "graphs", "serving", "ready")
WORDS: Mapping[StageName, str] = {
    "starting": "process starts",
    "weights": "weights are loaded",
    "compile": "model is compiled",
    "graphs": "memory is profiled and graphs are captured",
    "serving": "server opens",
    "ready": "ready",
}
# One recorded cold start of a 48 GiB model on a GB10: used until this service has a history of its own.
FIRST_GUESS_SECONDS: Mapping[StageName, float] = {
    "starting": 26.0,
    "weights": 456.0,
    "compile": 25.0,
    "graphs": 40.0,
    "serving": 10.0,
}

# What the log says when a stage begins; the text of the last match decides.
_BEGINS: tuple[tuple[re.Pattern[str], StageName], ...] = (
    (re.compile(r"Starting to load model|Loading safetensors checkpoint shards"), "weights"),
    (re.compile(r"Model loading took"), "compile"),
    (re.compile(r"torch\.compile took|Capturing CUDA graphs|GPU KV cache size"), "graphs"),
    (re.compile(r"init engine .*took|Starting vLLM API server|Started server process"), "serving"),
    (re.compile(r"Application startup complete"), "ready"),
)
_SHARDS = re.compile(r"Loading safetensors checkpoint shards:\s*(\d+)%")
_TROUBLE = re.compile(r"(?:ValueError|RuntimeError|torch\.OutOfMemoryError|OSError|Exception): .*")


@dataclass(frozen=True)
class Start:
    """A start as its log shows it."""

    stage: StageName
    percent: float | None
    """Share of the weights that is loaded, where the log tells."""
    trouble: str | None
    """The last error line, if there is one."""


def read_start(log: str) -> Start:
    """The stage that the log has reached; `starting` for an empty one."""
    stage: StageName = "starting"
    for pattern, name in _BEGINS:
        if pattern.search(log) and ORDER.index(name) > ORDER.index(stage):
            stage = name
    shards = _SHARDS.findall(log)
    errors = _TROUBLE.findall(log)
    return Start(
        stage=stage,
        percent=float(shards[-1]) if shards and stage == "weights" else None,
        trouble=errors[-1][:500] if errors and stage != "ready" else None,
    )


def eta_seconds(
    start: Start, in_stage_seconds: float, history: Sequence[Mapping[str, float]]
) -> tuple[float, str]:
    """Seconds until ready, and what that figure rests on.

    Each stage is expected to take its median over the earlier starts; a stage that takes longer than that is
    expected to end now.
    """
    if start.stage == "ready":
        return 0.0, "ready"
    expected = {name: _expected(name, history) for name in ORDER[:-1]}
    left = max(0.0, expected[start.stage] - in_stage_seconds)
    if start.percent is not None and 0 < start.percent < 100 and in_stage_seconds > 0:
        left = in_stage_seconds * (100 - start.percent) / start.percent
    later = ORDER[ORDER.index(start.stage) + 1 : -1]
    source = f"median of {len(history)} earlier starts" if history else "a recorded start of a 48 GiB model"
    return left + sum(expected[name] for name in later), source


def _expected(name: StageName, history: Sequence[Mapping[str, float]]) -> float:
    seen = sorted(times[name] for times in history if name in times)
    if not seen:
        return FIRST_GUESS_SECONDS[name]
    middle = len(seen) // 2
    return seen[middle] if len(seen) % 2 else (seen[middle - 1] + seen[middle]) / 2


class StageClock:
    """Times the stages of one start from what is read now and then; `times` is the history to keep."""

    def __init__(self, began_at: float) -> None:
        self._stage: StageName = "starting"
        self._entered_at = began_at
        self.times: dict[str, float] = {}

    def saw(self, start: Start, now: float) -> float:
        """Take in one reading; seconds spent in the present stage. A stage never goes back."""
        if ORDER.index(start.stage) > ORDER.index(self._stage):
            self.times[self._stage] = now - self._entered_at
            self._stage, self._entered_at = start.stage, now
        return now - self._entered_at
