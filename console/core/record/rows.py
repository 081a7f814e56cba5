"""A run's line of the record sheet, computed from its logs and the experiment's facts."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from console.core.plan.matrix import Configuration, Settings, effective_settings
from console.core.record.cells import Cell, LoggedRun
from console.core.record.experiment import Experiment
from console.core.record.figures import Row, Source
from console.core.record.pace import no_steps, pace
from console.core.record.parameters import parameters
from console.core.record.peak import peak
from console.core.record.remarks import remarks
from console.core.record.utilisation import mfu_6n, mfu_honest
from console.core.record.views import RunView

__all__ = ["LoggedRun", "PeakMemory", "build_row", "memory_key"]


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """Peak memory of one node during one run: a size with its source, or the reason why there is none."""

    size_bytes: int | None = None
    source: Source | None = None
    reason: str | None = None


def build_row(
    experiment: Experiment,
    run_id: str,
    *,
    logs: Mapping[str, LoggedRun],
    peaks_memory: Mapping[str, PeakMemory],
    power: Mapping[str, Cell] | None = None,
) -> Row:
    """The row of a run. `logs` and `peaks_memory` are by node; nodes left out become blanks with a reason.
    `power` is what each node's device drew, where that was read.

    Every number has at least one entry in `sources`, every blank its reason in `blanks`, both under the
    field's name; peak memory under `memory_key(node)`. Raises `KeyError` when the experiment has no such run.
    """
    run = experiment.runs[run_id]
    config = experiment.profile.configuration(run.config)
    settings = _settings(experiment, run, config)
    speed = pace(run, logs, settings, experiment.profile.warmup_steps)
    denominator = peak(experiment, run, settings)
    count = parameters(run, logs, experiment.profile, config)
    rate = speed.tokens_per_second
    cells = {
        "steady_step_seconds": speed.step_seconds,
        "tokens_per_step": speed.tokens_per_step,
        "tokens_per_second": rate,
        "peak_tflops": denominator.tflops,
        "mfu_6n": mfu_6n(count, rate, denominator.tflops),
        "mfu_lora": mfu_honest(experiment, run, logs, config, settings, rate, denominator.tflops),
        "final_loss": _final_loss(run, logs, speed.node),
    }
    memory = {memory_key(node): _memory(peaks_memory.get(node)) for node in run.nodes}
    drawn = {f"power_watts.{node}": cell for node, cell in (power or {}).items()}
    every = cells | memory | drawn
    return Row(
        id=run.config,
        title=config.title,
        run=run.id,
        parallel=config.parallel,
        step_spread=speed.spread,
        peak_memory_bytes={node: _size(memory[memory_key(node)]) for node in run.nodes},
        peak_source=denominator.words,
        power_watts={node: cell.value for node, cell in (power or {}).items() if cell.value is not None},
        steps=len(logs[speed.node].log.steps) if speed.node else 0,
        unread_metric_lines=sum(logged.log.unread_lines for logged in logs.values()) if logs else None,
        notes=(*remarks(experiment, run, logs, settings, speed.node), *speed.notes, *_over_peak(cells)),
        sources={name: cell.sources for name, cell in every.items() if cell.value is not None},
        blanks={name: cell.reason for name, cell in every.items() if cell.value is None},
        **{name: cell.value for name, cell in cells.items()},
    )


def memory_key(node: str) -> str:
    """The name under which a node's peak memory has its sources or its reason."""
    return f"peak_memory_bytes.{node}"


def _settings(experiment: Experiment, run: RunView, config: Configuration) -> Settings:
    """The settings as they were planned; those of the profile where the plan left them out."""
    known = {name: value for name, value in run.settings.items() if name in Settings.model_fields}
    planned = effective_settings(experiment.profile.settings, config).model_dump() | known
    return Settings.model_validate(planned)


def _final_loss(run: RunView, logs: Mapping[str, LoggedRun], node: str | None) -> Cell:
    steps = [step for step in logs[node].log.steps if step.loss is not None] if node else []
    if not steps or node is None:
        return Cell.blank("no loss was logged" if node else no_steps(run, logs))
    last = steps[-1]
    loss = last.loss
    assert loss is not None
    if not isfinite(loss):
        return Cell.blank(f"the loss of step {last.step}, the last one, is {loss}")
    if loss == 0 and last.grad_norm is not None and not isfinite(last.grad_norm):
        return Cell.blank(f"the loss of step {last.step}, the last one, is a NaN that the framework filtered")
    return Cell.of(loss, logs[node].source(node, last, f"loss of step {last.step}, the last one"))


def _memory(peak_memory: PeakMemory | None) -> Cell:
    if peak_memory is None:
        return Cell.blank("nothing was recorded on this node")
    if peak_memory.size_bytes is None or peak_memory.size_bytes <= 0:
        return Cell.blank(peak_memory.reason or "nothing was recorded on this node")
    if peak_memory.source is None:
        return Cell.blank("a figure came without its source, so it is not shown")
    return Cell.of(peak_memory.size_bytes, peak_memory.source)


def _size(cell: Cell) -> int | None:
    return None if cell.value is None else round(cell.value)


def _over_peak(cells: Mapping[str, Cell]) -> tuple[str, ...]:
    if any((cells[name].value or 0) > 1 for name in ("mfu_6n", "mfu_lora")):
        return (
            "MFU above 1: the peak is too low for what was run (another dtype, or a disturbed measurement)",
        )
    return ()
