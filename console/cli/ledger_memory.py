"""`lab ledger memory`: what one device of every pipeline stage has to hold."""

from typing import Annotated, Any

import typer

from console.cli import ledger_text as text
from console.cli.ledger_answer import answer, answers
from console.cli.ledger_groups import Batching, Cut, Subject, Training
from console.cli.ledger_options import DeviceName, Json, ResidentGib, chosen_word, gib_to_bytes
from console.core.errors import InputError
from console.core.ledger import catalogue
from console.core.ledger.classic import classic_account, fits_sparks
from console.core.ledger.flops import lora_parameters
from console.core.ledger.memory import MemoryEstimate, estimate
from console.core.ledger.methods import LOGIT_BYTES, OPTIMIZER_BYTES, Method
from console.core.ledger.room import judge, room_on
from console.core.ledger.setup import Setup


@answers
def memory_command(
    subject: Subject,
    training: Training,
    cut: Cut,
    batching: Batching,
    optimizer: Annotated[str, typer.Option(help=f"One of {', '.join(OPTIMIZER_BYTES)}.")] = "distributed",
    loss: Annotated[str, typer.Option(help=f"One of {', '.join(LOGIT_BYTES)}.")] = "native",
    device: DeviceName = None,
    resident_gib: ResidentGib = 0.0,
    classic: Annotated[bool, typer.Option(help="The course's 16 bytes per parameter.")] = False,
    as_json: Json = False,
) -> None:
    """Device memory per pipeline stage, term by term, with a band."""
    if classic:
        _classic(subject, training.chosen(), as_json)
        return
    chosen = subject.chosen()
    topology, batch = batching.over(cut.sizes())
    setup = Setup(
        architecture=chosen.architecture,
        topology=topology,
        batch=batch,
        method=training.chosen(),
        recompute=training.chosen_recompute(),
        optimizer=chosen_word("optimizer", optimizer, OPTIMIZER_BYTES),
        loss=chosen_word("loss", loss, LOGIT_BYTES),
    )
    target = catalogue.device(device) if device else None
    memory = estimate(setup, target)
    payload, verdict = _payload(setup, memory), ""
    if target is not None:
        room = room_on(target, resident_bytes=gib_to_bytes(resident_gib))
        fit, reason = judge(memory, room)
        payload |= {"device": target.name, "free_bytes": room.free_bytes, "fit": fit, "fit_reason": reason}
        verdict = f"{target.name}: {fit}; {reason}"
    answer(
        {**payload, "notes": chosen.notes},
        text.memory_text(setup, memory, verdict, chosen.notes),
        as_json=as_json,
    )


def _payload(setup: Setup, memory: MemoryEstimate) -> dict[str, Any]:
    low, high = memory.band.around(memory.reserved_bytes)
    stages = [
        {
            **stage.model_dump(),
            "allocated_bytes": stage.allocated_bytes,
            "is_peak": stage.index == memory.peak_stage,
        }
        for stage in memory.stages
    ]
    sizes = setup.topology.sizes
    return {
        "model": setup.architecture.name,
        "parameters": setup.architecture.parameters.total,
        "method": setup.method.model_dump(),
        "topology": {
            "world": setup.topology.world_size,
            "dp": setup.topology.dp,
            "edp": setup.topology.edp,
            **sizes.model_dump(),
        },
        "batch": setup.batch.model_dump(),
        "recompute": setup.recompute.kind,
        "stages": stages,
        "peak_stage": memory.peak_stage,
        "allocated_bytes": memory.allocated_bytes,
        "reserved_bytes": memory.reserved_bytes,
        "shown_bytes": memory.shown_bytes,
        "shown_reason": memory.shown_reason,
        "band": {**memory.band.model_dump(), "low_bytes": round(low), "high_bytes": round(high)},
    }


def _classic(subject: Subject, method: Method, as_json: bool) -> None:
    """The course's account: a catalogue model by the round size in its name, a config.json exactly."""
    if subject.config is None and subject.model is not None:
        entry = catalogue.model(subject.model)
        name, nominal = entry.name, float(entry.nominal_parameters)
        exact = entry.architecture() if entry.config is not None else None
    else:
        exact = subject.chosen().architecture
        name, nominal = exact.name, float(exact.parameters.total)
    trained = None
    if method.frozen_base:
        if exact is None:
            raise InputError(
                f"LoRA on {name}", why="its shapes are not known", next_step="--method full, or --config"
            )
        trained = lora_parameters(exact, method.lora_rank, method.targets).total
    account = classic_account(nominal, trained=trained)
    payload = {
        "model": name,
        **account.model_dump(),
        "static_bytes": account.static_bytes,
        "exact_parameters": exact.parameters.total if exact else None,
        "one_spark": fits_sparks(account, 1),
        "two_sparks": fits_sparks(account, 2),
    }
    answer(payload, text.classic_text(name, account, payload["exact_parameters"]), as_json=as_json)
