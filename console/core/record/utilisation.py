"""What share of the devices' peak a run used, by the course's rule and by the honest one."""

from collections.abc import Mapping

from console.core.ledger import mfu
from console.core.ledger.flops import flops_per_token
from console.core.ledger.of_lab import architecture_of
from console.core.plan.matrix import Configuration, Settings
from console.core.record.cells import Cell, LoggedRun, computed
from console.core.record.experiment import Experiment
from console.core.record.parameters import adapters, attention_span
from console.core.record.views import RunView


def mfu_6n(count: Cell, tokens: Cell, peak_tflops: Cell) -> Cell:
    """The course's convention: 6 × parameters × tokens/s ÷ peak, frozen weights counted as if trained."""
    if missing := _missing(count, tokens, peak_tflops):
        return missing
    assert count.value
    assert tokens.value
    assert peak_tflops.value
    value = mfu.mfu_6n(count.value, tokens.value, 1, peak_tflops.value)
    words = (
        f"6 × {count.value:.6g} parameters × {tokens.value:.6g} tokens/s ÷ {peak_tflops.value:.4g} TFLOP/s"
    )
    return computed(words, value, count, tokens, peak_tflops)


def mfu_honest(
    experiment: Experiment,
    run: RunView,
    logs: Mapping[str, LoggedRun],
    config: Configuration,
    settings: Settings,
    tokens: Cell,
    peak_tflops: Cell,
) -> Cell:
    """What the training mathematics needs: 4 N_g + attention + 6 N_lora with frozen weights, else
    6 N_g + attention."""
    shapes = architecture_of(experiment.profile.model)
    if shapes is None:
        return Cell.blank("the model's shapes are not known: the profile names no model of the catalogue")
    if missing := _missing(tokens, peak_tflops):
        return missing
    span = attention_span(run, logs, settings)
    if span.value is None:
        return span
    trainable = adapters(run, logs, config, settings, shapes)
    if trainable.value is None and settings.tuner == "lora":
        return trainable
    trained = None if settings.tuner == "full" else round(trainable.value or 0)
    flops = flops_per_token(shapes, span.value, lora_active_parameters=trained)
    assert tokens.value
    assert peak_tflops.value
    value = mfu.hfu(flops.model, tokens.value, 1, peak_tflops.value)
    rule = (
        "6 N_g + attention" if trained is None else f"4 N_g + attention + 6 × {trained:,} adapter parameters"
    )
    words = (
        f"{rule} = {flops.model:.6g} FLOP per token (N_g {shapes.parameters.matmul:,}, attention span "
        f"{span.value:.4g}) × {tokens.value:.6g} tokens/s ÷ {peak_tflops.value:.4g} TFLOP/s"
    )
    inputs = (span, tokens, peak_tflops) if trained is None else (trainable, span, tokens, peak_tflops)
    return computed(words, value, *inputs)


def _missing(*cells: Cell) -> Cell | None:
    return next((Cell.blank(cell.reason) for cell in cells if not cell.value), None)
