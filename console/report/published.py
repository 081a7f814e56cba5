"""MFU of the rows beside ms-swift's published A800 table, and why they differ; without words."""

from dataclasses import dataclass
from typing import Literal

from console.core.ledger.mfu import mfu_6n
from console.core.ledger.of_lab import architecture_of
from console.core.record.computers import one_computer
from console.core.record.experiment import Experiment
from console.core.record.figures import Row
from console.core.record.gaps import complete_rows, rows_in_order
from console.report.environment import on_cpu


@dataclass(frozen=True, slots=True)
class Published:
    """A row of ms-swift's benchmark on A800; its MFU follows from the script's global batch of 16 × 8192."""

    name: str
    devices: int
    step_seconds: float
    memory: str
    active_parameters: float
    tokens_per_step: int = 16 * 8192
    peak_tflops: float = 312

    @property
    def mfu(self) -> float:
        rate = self.tokens_per_step / self.step_seconds
        return mfu_6n(self.active_parameters, rate, self.devices, self.peak_tflops)


_DENSE, _SPARSE = 14_770_033_664, 3_353_032_704

PUBLISHED: tuple[Published, ...] = (
    Published("Qwen2.5-14B · Megatron", 8, 9.04, "64 GB", _DENSE),
    Published("Qwen2.5-14B · ZeRO-2", 8, 10.32, "80 GB", _DENSE),
    Published("Qwen2.5-14B · ZeRO-3", 8, 10.56, "58 GB", _DENSE),
    Published("Qwen3-30B-A3B · Megatron", 16, 9.6, "60 GiB", _SPARSE),
    Published("Qwen3-30B-A3B · ZeRO-3", 16, 91.2, "80 GiB", _SPARSE),
)
"""ms-swift "Megatron-SWIFT quick start", benchmark on A800 clusters: full training, 8K context, packed."""

Reason = Literal[
    "cpu",
    "one computer",
    "small model",
    "short rows",
    "lora",
    "measured peak",
    "other dtype",
    "link",
    "recompute",
]


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Rows with MFU, and the reasons that apply why they differ from the published table."""

    rows: tuple[Row, ...]
    best: Row | None
    reasons: tuple[Reason, ...]
    row_tokens: float | None
    """Tokens per sample of the best row."""
    peaks: tuple[str, ...]


def utilisation(experiment: Experiment) -> Utilisation:
    rows = tuple(row for row in rows_in_order(experiment) if row.mfu_6n is not None)
    complete = [row for row in complete_rows(experiment) if row.mfu_6n is not None]
    best = max(complete or rows, key=lambda row: row.mfu_6n or 0, default=None)
    tokens = _row_tokens(experiment, best)
    peaks = tuple(dict.fromkeys(row.peak_source for row in rows))
    return Utilisation(rows, best, _reasons(experiment, rows, best, tokens), tokens, peaks)


def _row_tokens(experiment: Experiment, row: Row | None) -> float | None:
    run = experiment.runs.get(row.run) if row else None
    batch = run.settings.get("global_batch") if run else None
    batch = batch or experiment.profile.settings.global_batch
    return row.tokens_per_step / batch if row and row.tokens_per_step else None


def _reasons(
    experiment: Experiment, rows: tuple[Row, ...], best: Row | None, row_tokens: float | None
) -> tuple[Reason, ...]:
    if best is None:
        return ()
    settings = experiment.profile.settings
    shapes = architecture_of(experiment.profile.model)
    together = one_computer(experiment, experiment.nodes)
    measured = best.peak_source.startswith("measured")
    wide = [row.mfu_6n or 0 for row in rows if len(row.peak_memory_bytes) > 1]
    narrow = [row.mfu_6n or 0 for row in rows if len(row.peak_memory_bytes) == 1]
    applies: dict[Reason, bool] = {
        "cpu": on_cpu(experiment),
        "one computer": on_cpu(experiment) and together,
        "small model": shapes is not None and shapes.parameters.total < 3e9,
        "short rows": row_tokens is not None and row_tokens < 4096,
        "lora": settings.tuner == "lora",
        "recompute": settings.recompute == "full",
        "link": not together and bool(wide and narrow) and max(wide) < max(narrow),
        "measured peak": measured and not on_cpu(experiment),
        "other dtype": measured and settings.dtype not in best.peak_source.split(" matrix product")[0],
    }
    return tuple(reason for reason, holds in applies.items() if holds)
