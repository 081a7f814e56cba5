"""Figures that can be traced: a number, or a blank with its reason, and where each came from."""

from math import sqrt

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")


class Source(Frozen):
    """Where a number was read: a file of the experiment's folder, and the bytes or line in it.

    `sha256` is that of the whole file when it was complete; `words` says how the number came about when it
    was computed or taken from a profile instead of read.
    """

    words: str
    file: str | None = None
    node: str | None = None
    start_byte: int | None = None
    end_byte: int | None = None
    line: int | None = None
    sha256: str | None = None


class Spread(Frozen):
    """Of the step times that a steady step time is the median of: their count and quartiles."""

    count: int
    lower_seconds: float
    upper_seconds: float

    @property
    def median_error_seconds(self) -> float:
        """Standard error of the median: 1.25 / 1.35 = 0.93 interquartile ranges over √n, from McGill, Tukey
        and Larsen, "Variations of Box Plots" (1978).

        Steps count as independent of each other; where they drift the error is larger.
        """
        return 0.93 * (self.upper_seconds - self.lower_seconds) / sqrt(self.count)


class Row(Frozen):
    """One line of the record sheet. None is a blank; `blanks` says why."""

    id: str
    title: str
    run: str
    parallel: str
    steady_step_seconds: float | None = None
    step_spread: Spread | None = None
    """None where too few steps were logged, and in rows of older journals."""
    tokens_per_second: float | None = None
    tokens_per_step: float | None = None
    peak_memory_bytes: dict[str, int | None] = {}
    mfu_6n: float | None = None
    mfu_lora: float | None = None
    peak_tflops: float | None = None
    """Sum over the devices of this run, dense, of the dtype that `peak_source` names."""
    peak_source: str = ""
    power_watts: dict[str, float] = {}
    """Mean power of each node's device while steps were made; nodes without a reading are left out."""
    final_loss: float | None = None
    steps: int = 0
    unread_metric_lines: int | None = None
    """Lines of the run's logs that look like metrics and were not read; None where nobody counted."""
    notes: tuple[str, ...] = ()
    sources: dict[str, tuple[Source, ...]] = {}
    blanks: dict[str, str] = {}

    @property
    def step_error(self) -> float | None:
        """Standard error of the steady step time, relative to it; also that of the tokens/s."""
        if self.step_spread is None or not self.steady_step_seconds:
            return None
        return self.step_spread.median_error_seconds / self.steady_step_seconds

    @property
    def full(self) -> bool:
        """No blank cell in the sheet's columns."""
        cells = [
            self.steady_step_seconds,
            self.tokens_per_second,
            self.tokens_per_step,
            self.mfu_6n,
            self.mfu_lora,
        ]
        memory = self.peak_memory_bytes
        return all(cell is not None for cell in cells) and bool(memory) and None not in memory.values()
