"""Pipeline stages: layout strings, uneven first and last stages, interleaving.

Rules are those of Megatron-Core (`pipeline_parallel_layer_layout.py`, and `get_num_layers_to_build` in
`transformer_block.py`).
Every function raises InputError for what Megatron would refuse.
"""

import re
from collections.abc import Callable
from itertools import groupby

from pydantic import BaseModel, ConfigDict

from console.core.errors import InputError
from console.core.plan.nearest import nearest_divisor, nearest_multiple

LAYOUT_ELEMENTS_MAX = 4096
LAYOUT_TEXT_MAX = 4096

_GROUP = re.compile(r"\(([^)]+)\)\*([0-9]+)")
_SINGLE = re.compile(r"(.)\*([0-9]+)", re.DOTALL)
_NAMES = {"E": "embedding", "t": "layer", "m": "MTP", "L": "loss"}


class PipelineLayout(BaseModel):
    """A parsed layout: `stages[i]` is the elements of stage i, drawn from `E t m L`; it may be empty.

    Stage i belongs to pipeline rank `i % pp`, virtual rank `i // pp`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    pp: int
    stages: tuple[str, ...]

    @property
    def vpp(self) -> int:
        """Virtual stages per pipeline rank."""
        return len(self.stages) // self.pp

    @property
    def layers_per_rank(self) -> tuple[int, ...]:
        """Transformer layers on each pipeline rank, over all its virtual stages."""
        return tuple(sum(stage.count("t") for stage in self.of_rank(rank)) for rank in range(self.pp))

    def of_rank(self, rank: int) -> tuple[str, ...]:
        """The virtual stages of one pipeline rank, in order."""
        return self.stages[rank :: self.pp]

    def rank_of(self, element: str) -> int | None:
        """The pipeline rank that holds the first `element`, None if no stage does."""
        return next((i % self.pp for i, stage in enumerate(self.stages) if element in stage), None)

    def draw(self) -> str:
        """One line per pipeline rank, for a person."""
        return "\n".join(
            f"rank {rank}: " + "  |  ".join(_describe(stage) for stage in self.of_rank(rank))
            for rank in range(self.pp)
        )


def parse_layout(text: str, *, pp: int, layers: int, mtp: int = 0) -> PipelineLayout:
    """Parse a layout string such as `Et*22|t*21L` and validate it against layer and MTP counts.

    Commas are cosmetic; `(...)*n` expands first and does not nest; then `x*n` for any one character.
    """
    _check_positive(pp=pp, layers=layers)
    if mtp < 0:
        raise InputError(f"mtp {mtp}", why="must be 0 or more", next_step="mtp 0")
    stages = tuple(expand_layout(text).split("|"))
    _check_letters(stages, text)
    if len(stages) % pp:
        raise InputError(
            f"layout {_short(text)} has {len(stages)} stages",
            why=f"{len(stages)} is not a multiple of pp {pp}",
            next_step=f"{nearest_multiple(len(stages), pp)} stages, or pp {nearest_divisor(len(stages), pp)}",
        )
    layout = PipelineLayout(pp=pp, stages=stages)
    _check_order(layout, text)
    _check_counts(layout, text, layers, mtp)
    _check_mtp_place(layout, text, mtp)
    return layout


def stage_layers(
    layers: int, *, pp: int, vpp: int = 1, first: int | None = None, last: int | None = None
) -> tuple[int, ...]:
    """Layers on each pipeline rank without a layout string.

    `first` and `last` are `decoder_first_pipeline_num_layers` and `decoder_last_pipeline_num_layers`; the
    remaining layers must divide evenly over the remaining ranks, and every rank's count by `vpp`.
    """
    _check_positive(layers=layers, pp=pp, vpp=vpp)
    if pp == 1 and (first is not None or last is not None):
        raise InputError(
            "decoder_first/last_pipeline_num_layers with pp 1",
            why="there is only one stage",
            next_step="drop it, or use pp 2 or more",
        )
    given = [count for count in (first, last) if count is not None]
    if any(count < 0 for count in given):
        raise InputError(
            f"first {first}, last {last}", why="a layer count is negative", next_step="use 0 or more"
        )
    rest, ranks_left = layers - sum(given), pp - len(given)
    if rest < 0 or (ranks_left and rest % ranks_left) or (not ranks_left and rest):
        raise InputError(
            _uneven(layers, pp, first, last),
            why=f"{layers} - {sum(given)} = {rest} layers remain for {ranks_left} stages",
            next_step=_even_advice(layers, pp, first, last),
        )
    middle = [rest // ranks_left] * ranks_left if ranks_left else []
    counts = ([first] if first is not None else []) + middle + ([last] if last is not None else [])
    for rank, count in enumerate(counts):
        if count % vpp:
            raise InputError(
                f"stage {rank} has {count} layers with vpp {vpp}",
                why=f"{count} is not a multiple of {vpp}",
                next_step=f"vpp {nearest_divisor(count, vpp)}, or another split",
            )
    return tuple(counts)


def _check_positive(**counts: int) -> None:
    for name, value in counts.items():
        if not 1 <= value <= LAYOUT_ELEMENTS_MAX:
            raise InputError(
                f"{name} {value}",
                why=f"must be from 1 to {LAYOUT_ELEMENTS_MAX}",
                next_step=f"{name} {1 if value < 1 else LAYOUT_ELEMENTS_MAX}",
            )


def expand_layout(text: str) -> str:
    """A layout without commas and repeat counts: `E(t|)*2L` -> `Et|t|L`."""
    if len(text) > LAYOUT_TEXT_MAX:
        raise InputError(
            f"layout of {len(text)} characters",
            why=f"more than {LAYOUT_TEXT_MAX}",
            next_step="shorten it with x*n or (...)*n",
        )
    expanded = text.replace(",", "")
    for pattern in (_GROUP, _SINGLE):
        if _expanded_length(pattern, expanded) > LAYOUT_ELEMENTS_MAX:
            raise InputError(
                f"layout {_short(text)} expands to more than {LAYOUT_ELEMENTS_MAX} elements",
                why="no model has so many layers",
                next_step="check the repeat counts",
            )
        expanded = pattern.sub(lambda match: match[1] * int(match[2]), expanded)
    return expanded


def _expanded_length(pattern: re.Pattern[str], text: str) -> int:
    growth = 0
    for match in pattern.finditer(text):
        repeats = int(match[2]) if len(match[2]) < 6 else LAYOUT_ELEMENTS_MAX + 1
        growth += len(match[1]) * repeats - len(match[0])
    return len(text) + growth


def _check_letters(stages: tuple[str, ...], text: str) -> None:
    for stage in stages:
        for element in stage:
            if element not in _NAMES:
                raise InputError(
                    f"layout {_short(text)} has {element!r}",
                    why="elements are E (embedding), t (layer), m (MTP) and L (loss)",
                    next_step="write groups as (...)*n, repeats as x*n, stage ends as |",
                )


def _check_order(layout: PipelineLayout, text: str) -> None:
    flat = "".join(layout.stages)
    ordered = flat.startswith("E") and flat.endswith("L") and flat.count("E") == flat.count("L") == 1
    if not ordered:
        raise InputError(
            f"layout {_short(text)} does not run from E to L",
            why=f"it has {flat.count('E')} E and {flat.count('L')} L; one E must come first and one L last",
            next_step="start with E and end with L",
        )
    if "m" in flat and "t" in flat[flat.index("m") :]:
        raise InputError(
            f"layout {_short(text)} has a layer after an MTP layer",
            why="every t must come before every m",
            next_step="put m just before L",
        )


def _check_counts(layout: PipelineLayout, text: str, layers: int, mtp: int) -> None:
    flat = "".join(layout.stages)
    expected: tuple[tuple[str, int, str], ...] = (
        ("t", layers, "num_layers"),
        ("m", mtp, "mtp_num_layers"),
    )
    for element, count, flag in expected:
        found = flat.count(element)
        if found != count:
            verb = "remove" if found > count else "add"
            raise InputError(
                f"layout {_short(text)} has {found} {element}",
                why=f"{flag} is {count}",
                next_step=f"{verb} {abs(found - count)} {element}, or set {flag} {found}",
            )


def _check_mtp_place(layout: PipelineLayout, text: str, mtp: int) -> None:
    holders = [i for i, stage in enumerate(layout.stages) if "m" in stage]
    if not holders:
        return
    first_allowed = (layout.vpp - 1) * layout.pp
    if holders[0] < first_allowed:
        raise InputError(
            f"layout {_short(text)} has m in stage {holders[0]}",
            why="MTP must be in the last virtual stage of its rank",
            next_step=f"move m to stage {first_allowed} or later",
        )
    if layout.stages[holders[0]].count("m") != mtp:
        raise InputError(
            f"layout {_short(text)} spreads MTP over stages {', '.join(map(str, holders))}",
            why="all MTP layers must be in one stage",
            next_step=f"put all {mtp} m in stage {holders[-1]}",
        )


def _describe(stage: str) -> str:
    parts = []
    for element, run in groupby(stage):
        count = len(list(run))
        name = _NAMES[element]
        parts.append(f"{count} {name}s" if count > 1 else name)
    return " + ".join(parts) or "(empty)"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _uneven(layers: int, pp: int, first: int | None, last: int | None) -> str:
    given = [f"{name} {count}" for name, count in (("first", first), ("last", last)) if count is not None]
    return f"{layers} layers over pp {pp}" + (f" with {', '.join(given)}" if given else "")


def _even_advice(layers: int, pp: int, first: int | None, last: int | None) -> str:
    if first is not None and last is not None:
        if pp == 2:
            return f"first {min(first, layers)}, last {layers - min(first, layers)}"
        rest = layers - first
        return f"first {first}, last {_nearest(range(rest + 1), last, _fits(rest, pp - 2))}"
    if first is not None:
        return f"first {_nearest(range(layers + 1), first, _fits(layers, pp - 1))}"
    if last is not None:
        return f"last {_nearest(range(layers + 1), last, _fits(layers, pp - 1))}"
    return f"pp {nearest_divisor(layers, pp)}, or give decoder_first_pipeline_num_layers"


def _fits(layers: int, ranks: int) -> Callable[[int], bool]:
    return lambda count: (layers - count) % ranks == 0


def _nearest(candidates: range, wanted: int, fits: Callable[[int], bool]) -> int:
    return min((c for c in candidates if fits(c)), key=lambda c: abs(c - wanted), default=0)
