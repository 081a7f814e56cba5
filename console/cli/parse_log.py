"""`lab parse-log`: what a training log says, as text or as one strict JSON document."""

import json
import math
import stat
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from console.cli.files import read_rules
from console.core.errors import InputError
from console.core.reading.diagnosis import Diagnosis, Expectation, Finding
from console.core.reading.facts import EvalMetrics, StepMetrics, Timed, Traceback
from console.core.reading.failure import failure_cause
from console.core.reading.lines import clean
from console.core.reading.steady import Steady, steady_step_seconds
from console.core.reading.trainlog import TrainLog, TrainLogBuilder, TrainLogReader

BLOCK_BYTES = 1 << 20
HEAD_BYTES = 1 << 13
MOST_BINARY = 0.3
SHOWN_STEPS = 12
NODE = "log"


def parse_log_command(
    file: Annotated[Path, typer.Argument(help="A log, or a logging.jsonl, of ms-swift.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Steps, steady step time, findings and the end of a training log."""
    log, findings = read_log(file)
    steady = steady_step_seconds(log.steps, evals=log.evals, checkpoints=log.checkpoints)
    if as_json:
        typer.echo(json.dumps(document(log, steady, findings), ensure_ascii=False, allow_nan=False))
    else:
        typer.echo("\n".join(_lines(log, steady, findings)))
    return 0


def read_log(file: Path) -> tuple[TrainLog, tuple[Finding, ...]]:
    """The log and the findings that hold at its end, read block by block. Raises `InputError`.

    A file carries no arrival times, so rules about silence are not asked.
    """
    rules = read_rules()
    reader = TrainLogReader(signatures=rules.signatures)
    builder = TrainLogBuilder()
    diagnosis = Diagnosis(rules, Expectation())
    for block in _blocks(file):
        facts = reader.feed(block)
        builder.add(facts)
        diagnosis.facts(NODE, facts, 0.0)
    facts = reader.finish()
    builder.add(facts)
    diagnosis.facts(NODE, facts, 0.0)
    return builder.build(reader), diagnosis.active


def document(log: TrainLog, steady: Steady, findings: Sequence[Finding]) -> dict[str, Any]:
    """The answer in numbers that strict JSON knows; what was NaN or infinite is null and named."""
    seconds = step_times(log)
    cause = log.first_cause()
    return {
        "training_log": is_training_log(log),
        "metrics_elsewhere": metrics_elsewhere(log),
        "framework": log.framework,
        "version": log.version,
        "ended": log.ended,
        "ended_by": log.ended_by,
        "steps": [_step(step, seconds.get(step.start_byte)) for step in log.steps],
        "evals": [_evaluation(seen) for seen in log.evals],
        "steady_step_seconds": steady.seconds,
        "steady": {
            "half_width_seconds": steady.half_width,
            "intervals": len(steady.used),
            "warmup_steps": steady.warmup,
            "reason": steady.reason,
        },
        "unread_metric_lines": log.unread_lines,
        "unread": [{"line": one.line, "text": one.text} for one in log.unread],
        "checkpoints": [{"step": one.step, "path": one.path, "line": one.line} for one in log.checkpoints],
        "cause": _exception(cause) if cause else None,
        "failed_workers": [asdict(one) for one in log.worker_failures],
        "tracebacks": [_exception(seen) for seen in log.tracebacks],
        "findings": [finding.model_dump(mode="json", exclude={"node", "since"}) for finding in findings],
    }


def is_training_log(log: TrainLog) -> bool:
    """Whether anything was read in it that a training run prints."""
    marks = (log.version, log.launch, log.world, log.output_dir, log.dataset, log.parameters, log.transport)
    lines = (log.steps, log.evals, log.checkpoints, log.worker_failures, log.tracebacks, log.symptoms)
    return log.framework != "unknown" or any(marks) or any(lines)


def metrics_elsewhere(log: TrainLog) -> bool:
    """The log is of a Megatron rank that prints no metrics: the last one of the world does."""
    world = log.world
    return (
        log.framework == "megatron"
        and not log.steps
        and world is not None
        and world.rank < world.world_size - 1
    )


def step_times(log: TrainLog) -> dict[int, float]:
    """Seconds per step since the line before, by the byte at which a step's line starts.

    Evaluations are taken out, checkpoints are not. A run's first line has the time since its start.
    """
    times: dict[int, float] = {}
    for run in _runs(log.steps):
        first = run[0]
        if first.elapsed_seconds is not None and first.step > first.start_step:
            times[first.start_byte] = first.elapsed_seconds / (first.step - first.start_step)
        for interval in steady_step_seconds(run, warmup=0, evals=log.evals).used:
            times[interval.start_byte] = interval.seconds
    return times


def _runs(steps: Sequence[StepMetrics]) -> list[list[StepMetrics]]:
    """A file that several runs were appended to, cut where the step falls back."""
    runs: list[list[StepMetrics]] = []
    for step in steps:
        if not runs or step.step < runs[-1][-1].step:
            runs.append([])
        runs[-1].append(step)
    return runs


def _blocks(file: Path) -> Iterator[bytes]:
    """The file's bytes. Raises `InputError` if it can't be read or is no text."""
    try:
        mode = file.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            kind = "a folder" if stat.S_ISDIR(mode) else "no ordinary file"
            raise InputError(f"{_name(file)} is {kind}", next_step="give the log file itself")
        with file.open("rb") as stream:
            unseen = True
            while block := stream.read(BLOCK_BYTES):
                head = block.lstrip(b"\0")[:HEAD_BYTES] if unseen else b""
                if head:
                    unseen = False
                    _require_text(head, file)
                yield block
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{_name(file)} can't be read", why=why, next_step="check the path") from None


def _require_text(head: bytes, file: Path) -> None:
    """A log may hold damaged bytes (a truncated one begins with NULs), but not mainly."""
    text = head.decode("utf-8", "replace")
    odd = sum(letter == "�" or (letter < " " and letter not in "\t\n\r\x1b\x08") for letter in text)
    if odd > MOST_BINARY * len(text):
        raise InputError(
            f"{_name(file)} is no text",
            why=f"{odd} of its first {len(text)} characters are none",
            next_step="give a log or a logging.jsonl; unpack it first if it is compressed",
        )


def _name(file: Path) -> str:
    return clean(str(file).encode("utf-8", "replace"))


def _step(step: StepMetrics, seconds: float | None) -> dict[str, Any]:
    return _strict(
        {
            "step": step.step,
            "total": step.total,
            "loss": step.loss,
            "grad_norm": step.grad_norm,
            "step_seconds": seconds,
            "memory_gib": step.memory_gib,
            "learning_rate": step.learning_rate,
            "token_acc": step.token_acc,
            "epoch": step.epoch,
            "tokens_seen": step.tokens_seen,
            "samples_seen": step.samples_seen,
            "mfu": step.mfu,
            "tflops_per_gpu": step.tflops_per_gpu,
        },
        step,
    )


def _evaluation(seen: EvalMetrics) -> dict[str, Any]:
    return _strict(
        {
            "step": seen.step,
            "loss": seen.loss,
            "token_acc": seen.token_acc,
            "runtime_seconds": seen.runtime_seconds,
        },
        seen,
    )


def _strict(values: dict[str, Any], fact: Timed) -> dict[str, Any]:
    everything = {
        **values,
        "elapsed_seconds": fact.elapsed_seconds,
        "printed_speed_seconds": fact.printed_speed_seconds,
        **{f"extra.{name}": value for name, value in fact.extras.items()},
    }
    odd = [
        name for name, value in everything.items() if isinstance(value, float) and not math.isfinite(value)
    ]
    numbers = {name: None if name in odd else value for name, value in everything.items()}
    return {**numbers, "nonfinite": odd, "line": fact.line, "start_byte": fact.start_byte}


def _exception(seen: Traceback) -> dict[str, Any]:
    return {
        "kind": seen.kind,
        "message": seen.message,
        "rank": seen.rank,
        "line": seen.line,
        "wrapper": seen.wrapper,
        "secondary": seen.secondary,
    }


def _lines(log: TrainLog, steady: Steady, findings: Sequence[Finding]) -> Iterator[str]:
    yield f"framework   {log.framework} {log.version or ''}".rstrip()
    if not is_training_log(log):
        yield "no training log: it holds no line of ms-swift or Megatron"
    yield f"steps       {_extent(log)}"
    yield f"steady      {_steady(steady)}"
    yield f"end         {log.ended_by or 'not seen'}"
    if log.unread_lines:
        first = log.unread[0]
        yield f"unread      {log.unread_lines} lines that look like metrics; line {first.line}: {first.text}"
    cause = failure_cause({NODE: log})
    if cause is not None:
        yield f"cause       {cause.words} (line {cause.what.line})"
    if log.steps:
        yield ""
        yield from _table(log)
    for finding in findings:
        place = f" (line {finding.line})" if finding.line is not None else ""
        yield ""
        yield f"{finding.severity}: {finding.title}{place}"
        yield f"  seen      {finding.seen}"
        yield f"  suspects  {'; '.join(finding.suspects)}"
        yield f"  first     {finding.first_action}"
    if not findings and is_training_log(log):
        yield ""
        yield "no findings"


def _extent(log: TrainLog) -> str:
    if metrics_elsewhere(log) and log.world is not None:
        rank, size = log.world.rank, log.world.world_size
        return f"none logged by rank {rank}: the last rank prints them, see the log of rank {size - 1}"
    if not log.steps:
        return "none logged"
    last = log.steps[-1]
    of = f" of {last.total}" if last.total is not None else ""
    return f"{len(log.steps)} logged, up to step {last.step}{of}; {len(log.evals)} evaluations"


def _steady(steady: Steady) -> str:
    if steady.seconds is None:
        return f"unknown: {steady.reason}"
    remark = f" ({steady.reason})" if steady.reason else ""
    return f"{steady.seconds:.4g} s/it, median of {len(steady.used)} intervals{remark}"


def _table(log: TrainLog) -> Iterator[str]:
    seconds = step_times(log)
    yield f"{'step':>8} {'loss':>10} {'grad norm':>10} {'s/it':>9} {'GiB':>8}"
    left_out = len(log.steps) - SHOWN_STEPS
    if left_out > 0:
        yield f"     ... {left_out} earlier steps; --json has them all"
    for step in log.steps[-SHOWN_STEPS:]:
        numbers = (step.loss, step.grad_norm, seconds.get(step.start_byte), step.memory_gib)
        yield f"{step.step:>8} " + " ".join(
            _cell(value, width) for value, width in zip(numbers, (10, 10, 9, 8), strict=True)
        )


def _cell(value: float | None, width: int) -> str:
    return f"{'-' if value is None else format(value, '.5g'):>{width}}"
