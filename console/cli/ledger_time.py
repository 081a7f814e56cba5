"""`lab ledger time`: seconds from a rate, from a paper band, from probes, or from measured steps."""

from typing import Annotated

import typer

from console.cli import ledger_text as text
from console.cli.ledger_answer import answer, answers
from console.cli.ledger_groups import Batching, PipelineCut, Subject, Training
from console.cli.ledger_options import DeviceName, Json, Params, Span
from console.core.errors import InputError
from console.core.ledger import catalogue
from console.core.ledger.cost import converted_days, training_flops, training_seconds, wall_clock
from console.core.ledger.paper import setup_step, tokens_per_step
from console.core.ledger.setup import Setup
from console.core.ledger.steptime import StepTime, probed_step


@answers
def time_command(
    subject: Subject,
    training: Training,
    cut: PipelineCut,
    batching: Batching,
    params: Params = None,
    tokens: Annotated[float | None, typer.Option(help="Tokens to train on.")] = None,
    sustained_tflops: Annotated[float | None, typer.Option(help="Sustained rate of all devices.")] = None,
    days: Annotated[float | None, typer.Option(help="Days on one machine, to carry over to several.")] = None,
    machines: Annotated[float, typer.Option()] = 2.0,
    efficiency: Annotated[float, typer.Option(help="Parallel efficiency.")] = 1.0,
    mfu_before: Annotated[float, typer.Option()] = 0.35,
    mfu_after: Annotated[float, typer.Option()] = 0.35,
    step_seconds: Annotated[float | None, typer.Option(help="Measured seconds per step.")] = None,
    steps: Annotated[int, typer.Option(help="Steps of the run.")] = 1,
    start_seconds: Annotated[float, typer.Option(help="Start-up and compilation.")] = 0.0,
    probe: Annotated[list[str] | None, typer.Option(help="MICRO_BATCHES:SECONDS, once or twice.")] = None,
    micro_batch_count: Annotated[int, typer.Option(help="Micro-batches to predict from probes.")] = 16,
    device: DeviceName = None,
    span: Span = None,
    as_json: Json = False,
) -> None:
    """Time from tokens and a rate, from a paper band, from probes, or from measured steps."""
    if days is not None:
        carried = converted_days(
            days,
            machines=machines,
            parallel_efficiency=efficiency,
            utilisation_before=mfu_before,
            utilisation_after=mfu_after,
        )
        rule = f"{days:g} / {machines:g} / {efficiency:g} x {mfu_before:g} / {mfu_after:g}"
        answer(
            {"days": carried, "seconds": carried * 86_400},
            text.row("wall-clock", f"{carried:.1f} days", rule),
            as_json=as_json,
        )
    elif sustained_tflops is not None or tokens is not None or params is not None:
        _from_rate(params, tokens, sustained_tflops, as_json)
    elif probe:
        probed = probed_step(tuple(map(_probe, probe)), micro_batch_count, cut.sizes())
        _show_step(probed, steps, start_seconds, as_json)
    elif step_seconds is not None:
        measured = StepTime(
            seconds=step_seconds,
            low_seconds=step_seconds,
            high_seconds=step_seconds,
            basis="measured",
            reason="as given",
        )
        _show_step(measured, steps, start_seconds, as_json)
    elif device is not None:
        topology, batch = batching.over(cut.sizes())
        setup = Setup(
            architecture=subject.chosen().architecture,
            topology=topology,
            batch=batch,
            method=training.chosen(),
            recompute=training.chosen_recompute(),
        )
        step = setup_step(setup, catalogue.device(device), span=span)
        _show_step(step, steps, start_seconds, as_json, tokens=tokens_per_step(setup))
    else:
        raise InputError(
            "nothing to compute a time from",
            why="a rate, probes, a step time or a device is needed",
            next_step="--params 7e9 --tokens 1e9 --sustained-tflops 31",
        )


def _from_rate(params: float | None, tokens: float | None, sustained: float | None, as_json: bool) -> None:
    if params is None or tokens is None or sustained is None:
        raise InputError(
            "params, tokens and sustained TFLOPS belong together",
            why="one of them is missing",
            next_step="--params 7e9 --tokens 1e9 --sustained-tflops 31",
        )
    flops, seconds = training_flops(params, tokens), training_seconds(params, tokens, sustained)
    rule = f"6 x {params:g} x {tokens:g} = {flops:.2g} FLOP at {sustained:g} TFLOPS"
    answer(
        {"seconds": seconds, "days": seconds / 86_400, "flops": flops, "convention": "6N"},
        text.row("wall-clock", text.duration(seconds), rule),
        as_json=as_json,
    )


def _show_step(
    step: StepTime, steps: int, start_seconds: float, as_json: bool, *, tokens: int | None = None
) -> None:
    total = wall_clock(step.seconds, steps, start_seconds=start_seconds)
    lines = [text.step_text(step)]
    if tokens is not None:
        lines.append(
            text.row("tokens", f"{tokens / step.seconds:,.0f} /s", f"{tokens:,} token slots per step")
        )
    if steps > 1:
        lines.append(
            text.row("wall-clock", text.duration(total.seconds), f"{steps} steps + {start_seconds:g} s start")
        )
    payload = {"step": step.model_dump(), "tokens_per_step": tokens, "steps": steps, "seconds": total.seconds}
    answer(payload, "\n".join(lines), as_json=as_json)


def _probe(given: str) -> tuple[int, float]:
    count, _, took = given.partition(":")
    try:
        return int(count), float(took)
    except ValueError:
        raise InputError(
            f"probe {given!r}", why="not MICRO_BATCHES:SECONDS", next_step="--probe 4:1.2"
        ) from None
