"""Options of `lab ledger`, and what they read into."""

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import ceil, isfinite
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer

from console.cli.files import read_input
from console.core.errors import InputError
from console.core.ledger import catalogue
from console.core.ledger.architecture import Architecture
from console.core.ledger.flops import RecomputeKind
from console.core.ledger.hf_config import read_config
from console.core.ledger.methods import Batch, Method, MethodKind, Recompute
from console.core.ledger.numbers import GIB
from console.core.plan.topology import ParallelSizes, Topology, micro_batches

Json = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]
Model = Annotated[str | None, typer.Option("--model", help="A model of the catalogue.")]
Config = Annotated[Path | None, typer.Option("--config", help="A Hugging Face config.json instead.")]
DeviceName = Annotated[str | None, typer.Option("--device", help="A device of the catalogue.")]
MethodName = Annotated[str, typer.Option("--method", help="full, lora or qlora.")]
Rank = Annotated[int, typer.Option("--rank", help="LoRA rank.")]
Targets = Annotated[str, typer.Option("--targets", help="LoRA target modules, separated by commas.")]
Tp = Annotated[int, typer.Option("--tp", help="Tensor parallel size.")]
Pp = Annotated[int, typer.Option("--pp", help="Pipeline parallel size.")]
Cp = Annotated[int, typer.Option("--cp", help="Context parallel size.")]
Ep = Annotated[int, typer.Option("--ep", help="Expert parallel size.")]
Etp = Annotated[int, typer.Option("--etp", help="Expert tensor parallel size.")]
Vpp = Annotated[int, typer.Option("--vpp", help="Virtual stages per pipeline rank.")]
Dp = Annotated[int, typer.Option("--dp", help="Data parallel size.")]
Micro = Annotated[int, typer.Option("--micro", help="Samples per micro-batch.")]
Global = Annotated[
    int | None, typer.Option("--global", help="Samples per step; else the pipeline is kept full.")
]
Sequence = Annotated[int, typer.Option("--seq", help="Tokens per sample.")]
RecomputeName = Annotated[str, typer.Option("--recompute", help="none, selective or full.")]
SequenceParallel = Annotated[
    bool | None, typer.Option("--sp/--no-sp", help="Sequence parallelism; on with tp > 1 unless given.")
]
First = Annotated[int | None, typer.Option("--first", help="decoder_first_pipeline_num_layers.")]
Last = Annotated[int | None, typer.Option("--last", help="decoder_last_pipeline_num_layers.")]
Layout = Annotated[str | None, typer.Option("--layout", help="pipeline_model_parallel_layout.")]
Mtp = Annotated[int, typer.Option("--mtp", help="mtp_num_layers.")]
ResidentGib = Annotated[
    float, typer.Option("--resident-gib", help="Memory a service keeps on the device, GiB.")
]
DevicesPerNode = Annotated[int | None, typer.Option("--devices-per-node", help="For placement advice.")]

Span = Annotated[
    float | None,
    typer.Option("--span", help="Attention span sum(L^2)/sum(L) of packed data; else the sequence."),
]
Params = Annotated[float | None, typer.Option("--params", help="Parameters, for MoE those active per token.")]
Devices = Annotated[int, typer.Option("--devices", help="Devices taking part.")]

Word = TypeVar("Word", bound=str)

MAY_BE_ZERO = frozenset({"first", "last", "mtp", "resident_gib", "start_seconds", "service_away_hours"})
"""Options of which there may be none; every other number is above 0."""
LARGEST_BATCH = 10**9
LARGEST_RANK = 1_000_000

METHODS: tuple[MethodKind, ...] = ("full", "lora", "qlora")
RECOMPUTE: tuple[RecomputeKind, ...] = ("none", "selective", "full")


class Chosen(NamedTuple):
    """The model a command speaks about, with remarks on how it was read."""

    architecture: Architecture
    notes: tuple[str, ...]


def chosen_architecture(model: str | None, config: Path | None) -> Chosen:
    """The architecture of --config or --model; raises InputError."""
    if config is not None:
        reading = read_config(read_json(config), config.parent.name or config.name)
        return Chosen(reading.architecture, reading.notes)
    if model is None:
        raise InputError("no model", why="the sum needs its shapes", next_step="--model Qwen2.5-7B")
    entry = catalogue.model(model)
    return Chosen(entry.architecture(), (entry.note,) if entry.note else ())


def read_text(path: Path) -> str:
    """A text file; raises InputError."""
    try:
        return read_input(path)
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}", why="it can't be read", next_step="an existing file"
        ) from None
    except ValueError:
        raise InputError(f"{path} is no text", why="it is not UTF-8", next_step="a JSON file") from None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; raises InputError."""
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError):
        raise InputError(f"{path} is no JSON", why="it can't be parsed", next_step="a config.json") from None
    if not isinstance(data, dict):
        raise InputError(
            f"{path} holds no JSON object", why="a config is a mapping", next_step="a config.json"
        )
    return data


def chosen_word(name: str, given: str, known: Iterable[Word]) -> Word:
    """`given` as one of the known words; raises InputError."""
    words = {word: word for word in known}
    for word in words:
        if word == given.lower():
            return word
    near = get_close_matches(given.lower(), words, n=1, cutoff=0)
    raise InputError(
        f"{name} {given!r}",
        why=f"known are {', '.join(words)}",
        next_step=f"{name} {near[0] if near else ''}",
    )


def chosen_method(name: str, rank: int, targets: str) -> Method:
    kind = chosen_word("method", name, METHODS)
    if rank > LARGEST_RANK:
        raise InputError(f"lora rank {rank:.3g}", why=f"above {LARGEST_RANK:,}", next_step="lora rank 8")
    names = tuple(targets.replace(",", " ").split())
    return Method(kind=kind, lora_rank=rank, targets=names or ("all-linear",))


def chosen_recompute(name: str) -> Recompute:
    return Recompute(kind=chosen_word("recompute", name, RECOMPUTE), layers=1)


def chosen_sizes(
    tp: int,
    pp: int,
    cp: int,
    ep: int,
    etp: int,
    vpp: int = 1,
    sp: bool | None = None,
    *,
    first: int | None = None,
    last: int | None = None,
    layout: str | None = None,
) -> ParallelSizes:
    """Parallel sizes; sequence parallelism is on with tp > 1 unless said otherwise."""
    return ParallelSizes.checked(
        tp=tp,
        pp=pp,
        cp=cp,
        ep=ep,
        etp=etp,
        vpp=vpp,
        sequence_parallel=tp > 1 if sp is None else sp,
        first_layers=first,
        last_layers=last,
        layout=layout,
    )


def chosen_batch(sequence: int, micro: int, global_batch: int | None, topology: Topology) -> Batch:
    """The batch; without a global one, as many micro-batches as keep the pipeline full."""
    for name, value in (("sequence", sequence), ("micro batch", micro), ("global batch", global_batch or 1)):
        if value > LARGEST_BATCH:
            raise InputError(
                f"{name} {value:.3g}", why=f"above {LARGEST_BATCH:,}", next_step="check the zeros"
            )
    sizes = topology.sizes
    if global_batch is None:
        count = max(sizes.pp, ceil((2 * (sizes.pp - 1) + 1) / sizes.vpp) + sizes.pp - 1)
    else:
        count = micro_batches(global_batch, micro, topology.dp)
    return Batch(sequence=sequence, micro_batch=micro, micro_batches=count)


def gib_to_bytes(value: float) -> int:
    return round(value * GIB)


def require_numbers(options: Mapping[str, Any]) -> None:
    """Raises `InputError` for the first number that is not finite, or too small for its option."""
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        least = 0 if name in MAY_BE_ZERO else 1
        if not isfinite(value) or value < 0 or (value == 0 and least):
            label = name.replace("_", " ")
            raise InputError(
                f"{label} {value}",
                why="must be a finite number" + (" above 0" if least else ", 0 or more"),
                next_step=f"{label} {least}",
            )
