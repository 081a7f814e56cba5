"""What the record sheet still lacks, in words of both languages."""

from console.core.record.experiment import Experiment
from console.core.record.figures import Row

Both = tuple[str, str]
"""The same sentence in English and in Chinese."""

_ENDS: dict[str, Both] = {
    "done": ("ended well, its row is not recorded", "已正常结束，但没有记录行"),
    "failed": ("failed", "失败"),
    "stopped": ("was stopped", "被停止"),
    "timed out": ("ran out of time", "超时"),
}

CELLS: dict[str, Both] = {
    "steady_step_seconds": ("steady s/it", "稳态 s/it"),
    "tokens_per_second": ("tokens/s", "tokens/s"),
    "tokens_per_step": ("tokens per step", "每步 token 数"),
    "mfu_6n": ("MFU (6N)", "MFU（6N）"),
    "mfu_lora": ("MFU (LoRA)", "MFU（LoRA）"),
}
"""The cells that a row needs, apart from peak memory, by field name."""


def blank_cells(row: Row) -> tuple[tuple[Both, str], ...]:
    """Name and reason of every blank cell among the sheet's columns."""
    blanks = [
        (name, row.blanks.get(field, "")) for field, name in CELLS.items() if getattr(row, field) is None
    ]
    for node, size in row.peak_memory_bytes.items():
        if size is None:
            name = (f"peak memory of {node}", f"{node} 的峰值内存")
            blanks.append((name, row.blanks.get(f"peak_memory_bytes.{node}", "")))
    if not row.peak_memory_bytes:
        blanks.append((("peak memory", "峰值内存"), row.blanks.get("peak_memory_bytes", "")))
    return tuple(blanks)


def complete_rows(experiment: Experiment) -> tuple[Row, ...]:
    """Rows of runs that ended well, without a blank cell, in the matrix's order."""
    return tuple(row for row in rows_in_order(experiment) if row.full and ended_well(experiment, row))


def ended_well(experiment: Experiment, row: Row) -> bool:
    run = experiment.runs.get(row.run)
    return run is not None and run.outcome == "done"


def rows_in_order(experiment: Experiment) -> tuple[Row, ...]:
    """Recorded rows: those of the matrix that is being run first, in its order, then any other."""
    ids = [*experiment.configurations, *(i for i in experiment.rows if i not in experiment.configurations)]
    return tuple(experiment.rows[config] for config in ids if config in experiment.rows)


def without_row(experiment: Experiment) -> dict[str, Both]:
    """Configurations of this experiment that have no row, and why."""
    return {
        config: _why_no_row(experiment, config)
        for config in experiment.configurations
        if config not in experiment.rows
    }


def _why_no_row(experiment: Experiment, config: str) -> Both:
    runs = experiment.runs_of(config)
    if not runs:
        return "not run", "未运行"
    last = runs[-1]
    if last.outcome is None:
        return "still running", "仍在运行"
    words, words_zh = _ENDS[last.outcome]
    return (f"{words}: {last.cause}", f"{words_zh}：{last.cause}") if last.cause else (words, words_zh)


def degradation(experiment: Experiment) -> str | None:
    """Why the experiment runs along the degraded path; None when it does not."""
    return experiment.degraded or experiment.profile.degraded
