"""How many parameters a token meets, how many of them are adapters, and over how many tokens it attends."""

from collections.abc import Mapping
from math import isfinite

from console.core.errors import InputError
from console.core.ledger.architecture import Architecture
from console.core.ledger.flops import lora_parameters
from console.core.ledger.of_lab import architecture_of
from console.core.plan.matrix import Configuration, Settings
from console.core.plan.profile import Profile
from console.core.reading.facts import DatasetLength
from console.core.record.cells import Cell, LoggedRun
from console.core.record.experiment import Experiment
from console.core.record.figures import Source
from console.core.record.views import RunView

__all__ = ["adapters", "attention_span", "parameters", "whole_model"]


def parameters(run: RunView, logs: Mapping[str, LoggedRun], profile: Profile, config: Configuration) -> Cell:
    """Parameters that a token meets.

    A rank of a model cut by tensor or pipeline parallelism prints its own share, and a mixture of experts
    prints all experts; both take the catalogue's count.
    """
    shapes = architecture_of(profile.model)
    cut = config.tensor_parallel * config.pipeline_parallel > 1
    sparse = shapes is not None and shapes.moe is not None
    if not cut and not sparse:
        printed = _printed(run, logs)
        if printed is not None:
            return printed
    if shapes is not None:
        why = (
            "each rank prints its own share"
            if cut
            else "all experts are printed"
            if sparse
            else "not in the log"
        )
        return Cell.of(
            shapes.parameters.active,
            Source(words=f"{shapes.parameters.active:,} parameters by the shapes of {shapes.name} ({why})"),
        )
    if cut:
        return Cell.blank("each rank prints its own share of the model, and the profile names no known model")
    return Cell.blank("the log prints no parameter count, and the profile names no known model")


def whole_model(experiment: Experiment) -> tuple[float, float] | None:
    """Total and trainable parameters of the model that the matrix trains, adapters included in both.

    As a run that doesn't cut the model printed them, else by the shapes; None when neither is known. The
    checklist's runs may be of another model.
    """
    profile, settings = experiment.profile, experiment.profile.settings
    for config in experiment.configurations:
        layout = profile.configuration(config)
        if layout.tensor_parallel * layout.pipeline_parallel == 1:
            for run in reversed(experiment.runs_of(config)):
                if run.parameters is not None:
                    return run.parameters.total, run.parameters.trainable
    shapes = architecture_of(profile.model)
    if shapes is None:
        return None
    if settings.tuner == "full":
        return shapes.parameters.total, shapes.parameters.total
    try:
        trained = lora_parameters(shapes, settings.lora_rank, tuple(settings.target_modules)).total
    except InputError:
        return None
    return shapes.parameters.total + trained, trained


def _printed(run: RunView, logs: Mapping[str, LoggedRun]) -> Cell | None:
    for node in (run.log_node, *run.nodes):
        counted = logs[node].log.parameters if node in logs else None
        if counted is not None and counted.total > 0:
            words = f"{counted.total:,} parameters as the framework printed them, adapters included"
            return Cell.of(counted.total, logs[node].source(node, counted, words))
    if run.parameters is not None and run.parameters.total > 0:
        return Cell.of(run.parameters.total, run.parameters.source)
    return None


def adapters(
    run: RunView,
    logs: Mapping[str, LoggedRun],
    config: Configuration,
    settings: Settings,
    shapes: Architecture,
) -> Cell:
    """Adapter parameters that one token meets.

    By the shapes, which are Megatron's with its fused layers; ordinary mode puts adapters on unfused ones, so
    there, and where the shapes have no such modules, as printed. A printed count says nothing of a model that
    is cut, nor of the active part of one with experts.
    """
    if settings.tuner == "full":
        return Cell.blank("everything is trained")
    cut = config.tensor_parallel * config.pipeline_parallel > 1
    printed = None if cut or shapes.moe is not None else _trainable(run, logs)
    if printed is not None and config.mode == "swift":
        return printed
    try:
        active = lora_parameters(shapes, settings.lora_rank, tuple(settings.target_modules)).active
    except InputError as error:
        return printed or Cell.blank(f"the adapters can't be counted: {error.what}: {error.why}")
    words = (
        f"{active:,} adapter parameters: rank {settings.lora_rank} on {', '.join(settings.target_modules)}"
    )
    return Cell.of(active, Source(words=words))


def _trainable(run: RunView, logs: Mapping[str, LoggedRun]) -> Cell | None:
    for node in (run.log_node, *run.nodes):
        counted = logs[node].log.parameters if node in logs else None
        if counted is not None:
            words = f"{counted.trainable:,} trainable, as printed"
            return Cell.of(counted.trainable, logs[node].source(node, counted, words))
    return None


def attention_span(run: RunView, logs: Mapping[str, LoggedRun], settings: Settings) -> Cell:
    """Tokens a token attends over, sum(L²) ÷ sum(L) = mean + variance ÷ mean of the row lengths."""
    for node in (run.log_node, *run.nodes):
        length = logs[node].log.dataset if node in logs else None
        if length is not None and length.mean > 0:
            return Cell.of(_span_of(length), logs[node].source(node, length, _span_words(settings)))
    if run.dataset is not None and run.dataset.mean_tokens > 0:
        return Cell.of(run.dataset.mean_tokens, run.dataset.source)
    return Cell.blank("the log does not print the lengths of the rows, which attention depends on")


def _span_of(length: DatasetLength) -> float:
    deviation = length.std if isfinite(length.std) else 0.0
    return length.mean + deviation**2 / length.mean


def _span_words(settings: Settings) -> str:
    if settings.packing:
        return "attention span from the lengths of the packs: an upper bound, the rows in them are shorter"
    return "attention span: mean + variance ÷ mean of the row lengths"
