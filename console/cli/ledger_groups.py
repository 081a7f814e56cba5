"""Options that belong together, as commands of `lab ledger` share them."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from console.cli import ledger_options as given
from console.core.ledger.methods import Batch, Method, Recompute
from console.core.plan.topology import ParallelSizes, Topology, derive

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def spread(command: Callable[Arguments, Answer]) -> Callable[..., Answer]:
    """A command in whose signature every group of options is replaced by its options."""
    signature = inspect.signature(command)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        parameters += _options(groups[name]) if name in groups else [_by_name(parameter)]

    @wraps(command)
    def run(**options: Any) -> Answer:
        for name, group in groups.items():
            options[name] = group(**{field.name: options.pop(field.name) for field in fields(group)})
        return command(**options)  # type: ignore[call-arg]

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _by_name(parameter: inspect.Parameter) -> inspect.Parameter:
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _options(group: Any) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for field in fields(group)
    ]


@dataclass(frozen=True)
class Subject:
    """The model that a command speaks about."""

    model: given.Model = None
    config: given.Config = None

    @property
    def named(self) -> bool:
        return self.model is not None or self.config is not None

    def chosen(self) -> given.Chosen:
        """Raises `InputError`."""
        return given.chosen_architecture(self.model, self.config)


@dataclass(frozen=True)
class Training:
    """What is trained, and what is computed again."""

    method: given.MethodName = "full"
    rank: given.Rank = 8
    targets: given.Targets = "all-linear"
    recompute: given.RecomputeName = "selective"

    def chosen(self) -> Method:
        """Raises `InputError`."""
        return given.chosen_method(self.method, self.rank, self.targets)

    def chosen_recompute(self) -> Recompute:
        """Raises `InputError`."""
        return given.chosen_recompute(self.recompute)


@dataclass(frozen=True)
class FrugalTraining(Training):
    """The same with the defaults of a model that has to fit."""

    method: given.MethodName = "lora"
    recompute: given.RecomputeName = "full"


@dataclass(frozen=True)
class PipelineCut:
    """The sizes that a step time depends on."""

    tp: given.Tp = 1
    pp: given.Pp = 1
    vpp: given.Vpp = 1

    def sizes(self) -> ParallelSizes:
        """Raises `InputError`."""
        return given.chosen_sizes(self.tp, self.pp, 1, 1, 1, self.vpp)


@dataclass(frozen=True)
class Cut(PipelineCut):
    """Every way to cut a model, and how its layers go to the stages."""

    cp: given.Cp = 1
    ep: given.Ep = 1
    etp: given.Etp = 1
    sp: given.SequenceParallel = None
    first: given.First = None
    last: given.Last = None
    layout: given.Layout = None

    def sizes(self) -> ParallelSizes:
        """Raises `InputError`."""
        return given.chosen_sizes(
            self.tp,
            self.pp,
            self.cp,
            self.ep,
            self.etp,
            self.vpp,
            self.sp,
            first=self.first,
            last=self.last,
            layout=self.layout,
        )


@dataclass(frozen=True)
class Batching:
    """Samples of a step, and over how many replicas they go."""

    dp: given.Dp = 1
    micro: given.Micro = 1
    global_batch: given.Global = None
    seq: given.Sequence = 2048

    def over(self, sizes: ParallelSizes) -> tuple[Topology, Batch]:
        """Raises `InputError`."""
        topology = derive(self.dp * sizes.dense_cut, sizes)
        return topology, given.chosen_batch(self.seq, self.micro, self.global_batch, topology)
