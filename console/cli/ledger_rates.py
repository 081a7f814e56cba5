"""`lab ledger flops|mfu|cost`: work, utilisation and money."""

from typing import Annotated, Any

import typer

from console.cli import ledger_text as text
from console.cli.ledger_answer import answer, answers
from console.cli.ledger_groups import Subject, Training
from console.cli.ledger_options import DeviceName, Devices, Json, Params, Sequence, Span, chosen_recompute
from console.core.errors import InputError
from console.core.ledger import catalogue
from console.core.ledger.architecture import Architecture
from console.core.ledger.cost import cost
from console.core.ledger.flops import TokenFlops, flops_per_token, lora_parameters
from console.core.ledger.methods import Method
from console.core.ledger.mfu import hfu, mfu_6n, mfu_lora, mfu_megatron, sustained_tflops_6n

SECONDS_PER_HOUR = 3600


@answers
def flops_command(
    subject: Subject,
    training: Training,
    seq: Sequence = 2048,
    span: Span = None,
    tokens: Annotated[float, typer.Option(help="Tokens to train on.")] = 1.0,
    as_json: Json = False,
) -> None:
    """FLOPs per token, under each convention by its name."""
    architecture, trained = subject.chosen().architecture, training.chosen()
    flops = _token_flops(architecture, trained, float(seq) if span is None else span, training.recompute)
    six = 6.0 * architecture.parameters.active
    payload = {
        "model": architecture.name,
        "method": trained.kind,
        "flops_per_token": flops.model,
        "hardware_flops_per_token": flops.hardware,
        "attention_flops_per_token": flops.attention,
        "flops_per_token_6n": six,
        "total_flops": flops.model * tokens,
        "convention": "Megatron: 6 N_g + causal half of attention; frozen weights 4 N_g",
    }
    lines = [
        f"{architecture.name} · {trained.kind} · attention span {seq if span is None else span:g} tokens",
        text.row(
            "model",
            f"{flops.model / 1e9:.2f} GFLOP",
            "per token: matrices + attention (Megatron's convention)",
        ),
        text.row("  of it attention", f"{flops.attention / 1e9:.2f} GFLOP", "causal half"),
        text.row("hardware", f"{flops.hardware / 1e9:.2f} GFLOP", f"with recompute {training.recompute}"),
        text.row("6N", f"{six / 1e9:.2f} GFLOP", "the course's convention, on active parameters"),
    ]
    if tokens != 1:
        lines.append(text.row("all tokens", f"{flops.model * tokens:.3g} FLOP"))
    answer(payload, "\n".join(lines), as_json=as_json)


@answers
def mfu_command(
    subject: Subject,
    training: Training,
    peak_tflops: Annotated[float | None, typer.Option(help="Dense peak of one device.")] = None,
    dtype: Annotated[str, typer.Option(help="Compute dtype, for the device's peak.")] = "bf16",
    params: Params = None,
    seq: Sequence = 2048,
    span: Span = None,
    tokens_per_step: Annotated[float | None, typer.Option(help="Real tokens of one step, not slots.")] = None,
    step_seconds: Annotated[float | None, typer.Option(help="Steady seconds per step.")] = None,
    tokens_per_second: Annotated[float | None, typer.Option(help="Instead of the two above.")] = None,
    devices: Devices = 1,
    device: DeviceName = None,
    as_json: Json = False,
) -> None:
    """Utilisation under each convention, with the peak it is divided by."""
    rate = _rate(tokens_per_step, step_seconds, tokens_per_second)
    peak, origin = _peak(peak_tflops, device, dtype)
    payload: dict[str, Any] = {
        "tokens_per_second": rate,
        "devices": devices,
        "peak_tflops": peak,
        "peak_dtype": dtype,
        "peak_origin": origin,
    }
    lines = []
    if params is None and not subject.named:
        raise InputError("no parameters", why="MFU needs a model or its size", next_step="--params 14e9")
    architecture = subject.chosen().architecture if subject.named else None
    counted = params if params is not None else float(architecture.parameters.active) if architecture else 0.0
    payload |= {
        "params": counted,
        "mfu_6n": mfu_6n(counted, rate, devices, peak),
        "sustained_tflops_6n": sustained_tflops_6n(counted, rate),
    }
    lines.append(
        text.row(
            "MFU, 6N",
            f"{payload['mfu_6n']:.1%}",
            f"{payload['sustained_tflops_6n']:.1f} TFLOPS of all devices",
        )
    )
    if architecture is not None:
        attention_span = float(seq) if span is None else span
        lines += _model_mfu(payload, architecture, training.chosen(), attention_span, training.recompute)
    lines.append(f"over {devices} x {peak:g} TFLOPS {dtype}, {origin}; {rate:,.1f} tokens/s")
    answer(payload, "\n".join(lines), as_json=as_json)


@answers
def cost_command(
    devices: Devices = 1,
    hours: Annotated[float | None, typer.Option(help="Wall-clock hours.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Instead of hours.")] = None,
    price: Annotated[float | None, typer.Option(help="Price of one device hour.")] = None,
    service_away_hours: Annotated[float, typer.Option(help="Hours the service is stopped.")] = 0.0,
    as_json: Json = False,
) -> None:
    """Device hours, money, and the hours the service is away."""
    if (hours is None) == (seconds is None):
        raise InputError(
            "no duration, or two", why="one of hours and seconds is needed", next_step="--hours 4"
        )
    lasted = seconds if seconds is not None else (hours or 0.0) * SECONDS_PER_HOUR
    total = cost(
        lasted,
        devices,
        price_per_device_hour=price,
        service_away_seconds=service_away_hours * SECONDS_PER_HOUR,
    )
    lines = [
        text.row(
            "device hours", f"{total.device_hours:.2f} h", f"{devices} devices x {text.duration(lasted)}"
        ),
        text.row(
            "money",
            "unknown" if total.money is None else f"{total.money:.2f}",
            "" if price else "no price given",
        ),
        text.row("service away", f"{total.service_away_hours:.2f} h"),
    ]
    answer(total.model_dump(), "\n".join(lines), as_json=as_json)


def _token_flops(architecture: Architecture, method: Method, span: float, recompute: str) -> TokenFlops:
    adapters = (
        lora_parameters(architecture, method.lora_rank, method.targets).active if method.frozen_base else None
    )
    return flops_per_token(
        architecture, span, lora_active_parameters=adapters, recompute=chosen_recompute(recompute).kind
    )


def _model_mfu(
    payload: dict[str, Any], architecture: Architecture, method: Method, span: float, recompute: str
) -> list[str]:
    """Adds the conventions that need shapes, and returns their lines."""
    rate, devices, peak = payload["tokens_per_second"], payload["devices"], payload["peak_tflops"]
    lines = []
    over = f"attention span {span:g} tokens"
    if method.frozen_base:
        payload["mfu_lora"] = mfu_lora(
            architecture, method.lora_rank, span, rate, devices, peak, method.targets
        )
        lines.append(text.row("MFU, LoRA", f"{payload['mfu_lora']:.1%}", f"4 N_g + C + 6 N_lora, {over}"))
    else:
        payload["mfu_megatron"] = mfu_megatron(architecture, span, rate, devices, peak)
        lines.append(text.row("MFU, Megatron", f"{payload['mfu_megatron']:.1%}", f"6 N_g + C, {over}"))
    hardware = _token_flops(architecture, method, span, recompute).hardware
    payload["hfu"] = hfu(hardware, rate, devices, peak)
    lines.append(text.row("HFU", f"{payload['hfu']:.1%}", f"with recompute {recompute}"))
    return lines


def _rate(
    tokens_per_step: float | None, step_seconds: float | None, tokens_per_second: float | None
) -> float:
    if tokens_per_second is not None:
        return tokens_per_second
    if tokens_per_step is None or step_seconds is None:
        raise InputError(
            "no token rate",
            why="tokens per step and seconds per step are needed",
            next_step="--tokens-per-step 65536 --step-seconds 9.0",
        )
    return tokens_per_step / step_seconds


def _peak(given: float | None, device: str | None, dtype: str) -> tuple[float, str]:
    if given is not None:
        return given, "as given"
    if device is None:
        raise InputError(
            "no peak", why="MFU is a share of it", next_step="--peak-tflops 312, or --device A100"
        )
    entry = catalogue.device(device)
    figure = entry.peak(dtype)
    return figure.value, f"{figure.origin} for {entry.name}"
