"""`lab ledger topology|choose`: how the model is cut, and which cut to take."""

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from console.cli import ledger_text as text
from console.cli.ledger_answer import answer, answers
from console.cli.ledger_groups import Cut, FrugalTraining, Subject
from console.cli.ledger_options import (
    DeviceName,
    DevicesPerNode,
    Json,
    Micro,
    Mtp,
    ResidentGib,
    gib_to_bytes,
    read_text,
)
from console.core.errors import InputError
from console.core.ledger import catalogue
from console.core.ledger.choose import TableRow, choose
from console.core.ledger.feasible import Candidate, Question, candidates
from console.core.ledger.scenario import Situation, suggest
from console.core.plan.placement import Advice, Group, advise, groups
from console.core.plan.topology import (
    ParallelSizes,
    derive,
    micro_batches,
    parse_layout,
    require_fit,
    require_sequence,
    stage_layers,
)

SHOWN_CANDIDATES = 8


@answers
def topology_command(
    subject: Subject,
    cut: Cut,
    world: Annotated[int | None, typer.Option(help="Ranks in all.")] = None,
    layers: Annotated[int | None, typer.Option(help="Transformer layers.")] = None,
    mtp: Mtp = 0,
    seq: Annotated[int | None, typer.Option(help="Tokens per sample.")] = None,
    micro: Micro = 1,
    global_batch: Annotated[int | None, typer.Option("--global", help="Samples per step.")] = None,
    devices_per_node: DevicesPerNode = None,
    as_json: Json = False,
) -> None:
    """Both world equations, divisibility, stages and placement."""
    sizes = cut.sizes()
    if world is None and layers is None and not subject.named:
        raise InputError(
            "neither world nor layers", why="nothing to check", next_step="--world 8, or --layers 43"
        )
    topology = derive(world, sizes) if world is not None else None
    architecture = subject.chosen().architecture if subject.named else None
    stages = drawn = None
    if architecture is not None:
        shape = architecture.shape.model_copy(
            update={"mtp_layers": mtp, "layers": layers or architecture.layers}
        )
        stages = require_fit(sizes, shape)
    elif layers is not None:
        stages = _stages(sizes, layers, mtp)
    if sizes.layout is not None and stages is not None:
        drawn = parse_layout(sizes.layout, pp=sizes.pp, layers=sum(stages), mtp=mtp)
    if seq is not None:
        require_sequence(seq, sizes)
    payload: dict[str, Any] = {**sizes.model_dump(), "world": world, "stage_layers": stages}
    reach: tuple[Group, ...] = ()
    advice: tuple[Advice, ...] = ()
    if topology is not None:
        payload |= {"dp": topology.dp, "edp": topology.edp}
        if global_batch is not None:
            payload["micro_batches"] = micro_batches(global_batch, micro, topology.dp)
        if devices_per_node is not None:
            reach = groups(topology, devices_per_node)
            has_experts = (
                sizes.ep > 1 or sizes.etp > 1 or (architecture is not None and architecture.moe is not None)
            )
            advice = advise(topology, devices_per_node, sequence=seq, has_experts=has_experts)
            payload["groups"] = [group._asdict() for group in reach]
            payload["advice"] = [remark._asdict() for remark in advice]
    if drawn is not None:
        payload |= {"stages": drawn.stages, "vpp": drawn.vpp}
    answer(payload, text.topology_text(topology, stages, drawn, reach, advice), as_json=as_json)


@answers
def choose_command(
    subject: Subject,
    training: FrugalTraining,
    memory_gib: Annotated[float | None, typer.Option(help="Memory per device, GiB.")] = None,
    seq: Annotated[int | None, typer.Option(help="Tokens per sample.")] = None,
    table: Annotated[Path | None, typer.Option(help="JSON list of rows; else the course's table.")] = None,
    device: DeviceName = None,
    devices: Annotated[int, typer.Option(help="Devices in all, with --model.")] = 1,
    devices_per_node: DevicesPerNode = None,
    micro: Micro = 1,
    global_batch: Annotated[int, typer.Option("--global", help="Samples per step.")] = 16,
    resident_gib: ResidentGib = 0.0,
    as_json: Json = False,
) -> None:
    """Rank a table under a memory limit, or all cuts of a model over devices."""
    if not subject.named:
        _choose_row(memory_gib, seq, table, as_json)
        return
    if device is None:
        raise InputError("no device", why="cuts are judged against its memory", next_step="--device GB10")
    per_node = devices_per_node or devices
    question = Question(
        architecture=subject.chosen().architecture,
        device=catalogue.device(device),
        world_size=devices,
        devices_per_node=per_node,
        method=training.chosen(),
        recompute=training.chosen_recompute(),
        sequence=seq or 2048,
        micro_batch=micro,
        global_batch=global_batch,
        resident_bytes=gib_to_bytes(resident_gib),
    )
    found = candidates(question)
    uncut = [c for c in found if c.topology.sizes.dense_cut * c.topology.sizes.ep == 1]
    suggestions = suggest(
        Situation(
            fits_one_device=bool(uncut) and uncut[0].fit == "fits",
            devices_per_node=per_node,
            nodes=-(-devices // per_node),
            has_experts=question.architecture.moe is not None,
            sequence=question.sequence,
        )
    )
    payload = {
        "candidates": [_candidate(candidate) for candidate in found],
        "suggestions": [suggestion._asdict() for suggestion in suggestions],
    }
    answer(payload, text.candidates_text(found, suggestions, SHOWN_CANDIDATES), as_json=as_json)


def _stages(sizes: ParallelSizes, layers: int, mtp: int) -> tuple[int, ...]:
    if sizes.layout is not None:
        return parse_layout(sizes.layout, pp=sizes.pp, layers=layers, mtp=mtp).layers_per_rank
    return stage_layers(layers, pp=sizes.pp, vpp=sizes.vpp, first=sizes.first_layers, last=sizes.last_layers)


def _choose_row(memory_gib: float | None, seq: int | None, table: Path | None, as_json: bool) -> None:
    if memory_gib is None:
        raise InputError("no memory limit", why="rows are judged against it", next_step="--memory-gib 80")
    choice = choose(_rows(table), memory_gib=memory_gib, sequence=seq)
    best = choice.best
    payload = {**choice.model_dump(), "best": best.row.name if best else None}
    answer(payload, text.choice_text(choice), as_json=as_json)


def _rows(table: Path | None) -> tuple[TableRow, ...]:
    if table is None:
        return catalogue.course_table()
    try:
        return TypeAdapter(tuple[TableRow, ...]).validate_json(read_text(table))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{table}: {where}", why=first["msg"], next_step="see the fields of a table row"
        ) from None


def _candidate(candidate: Candidate) -> dict[str, Any]:
    sizes = candidate.topology.sizes
    return {
        "tp": sizes.tp,
        "pp": sizes.pp,
        "ep": sizes.ep,
        "dp": candidate.topology.dp,
        "edp": candidate.topology.edp,
        "reserved_bytes": candidate.memory.reserved_bytes,
        "fit": candidate.fit,
        "reason": candidate.reason,
        "warnings": [remark._asdict() for remark in candidate.warnings],
    }
