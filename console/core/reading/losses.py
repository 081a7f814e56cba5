"""What the metric lines alone tell: NaN, explosion, spike, flat loss, validation turning up, slow steps."""

import statistics
from collections.abc import Sequence
from math import isfinite

from console.core.reading.facts import EvalMetrics, StepMetrics
from console.core.reading.seen import Parameters, Seen
from console.core.reading.situation import Situation
from console.core.reading.steady import steady_step_seconds


def nan_filtered(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """A NaN loss that the trainer's filter shows as 0.0; only the gradient norm gives it away."""
    step = situation.last_step
    if step is None or step.loss != 0.0 or not _broken(step.grad_norm):
        return ()
    return (Seen({"step": step.step, "grad_norm": step.grad_norm}, situation.step_node, step),)


def nan_loss(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """Loss or gradient norm printed as NaN or infinity, in training or validation."""
    step, validation = situation.last_step, situation.last_eval
    if nan_filtered(situation, parameters, now):
        return ()
    if step is not None and (_broken(step.loss) or _broken(step.grad_norm)):
        values = {"step": step.step, "what": f"loss {step.loss}, grad_norm {step.grad_norm}"}
        return (Seen(values, situation.step_node, step),)
    if validation is not None and _broken(validation.loss):
        values = {"step": validation.step, "what": f"validation loss {validation.loss}"}
        return (Seen(values, situation.step_node, validation),)
    return ()


def loss_explodes(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """Within the first `lines` logged steps the loss has grown to `factor` times the first."""
    step = situation.last_step
    losses = [loss for loss in _finite(situation.first_losses) if loss > 0]
    if step is None or not losses or not _number(step.loss):
        return ()
    first, loss = losses[0], step.loss or 0.0
    early = situation.steps_logged <= parameters["lines"]
    grown = loss > first * parameters["factor"] and loss > first + parameters["least_rise"]
    if not grown or not (early or min(losses) >= first):
        return ()
    return (Seen({"step": step.step, "loss": loss, "first": first}, situation.step_node, step),)


def loss_spike(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """A jump in the loss that the following `lines` logged steps have not come back from."""
    after, before = int(parameters["lines"]), int(parameters["baseline_lines"])
    steps = [step for step in situation.steps if _number(step.loss)]
    losses = [step.loss or 0.0 for step in steps]
    for spike in range(len(losses) - after - 1, before - 1, -1):
        base, jump = losses[spike - before : spike], losses[spike]
        usual = statistics.median(base)
        limit = usual * parameters["factor"]
        if jump <= limit:
            continue
        spread = max(statistics.pstdev(base), parameters["least_spread"] * usual)
        limit = max(limit, usual + parameters["spreads"] * spread)
        if jump > limit and min(losses[-after:]) > usual + (limit - usual) / 2:
            values = {"step": steps[spike].step, "loss": jump, "usual": usual, "lines": after}
            return (Seen(values, situation.step_node, steps[spike]),)
    return ()


def loss_flat(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """The loss has not fallen by `least_drop` of itself since the first steps."""
    steps = [step for step in situation.steps if _number(step.loss)]
    first = _finite(situation.first_losses)[:3]
    if len(steps) < parameters["lines"] or len(first) < 3 or steps[-1].step < parameters["steps"]:
        return ()
    start = statistics.median(first)
    end = statistics.median(_finite(steps[-max(3, len(steps) // 4) :]))
    if start <= 0 or end > start * parameters["most_rise"] or start - end >= parameters["least_drop"] * start:
        return ()
    values = {"step": steps[-1].step, "start": start, "end": end}
    return (Seen(values, situation.step_node, steps[-1]),)


def validation_rises(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """The last two validations are both worse than the best one, and still rising."""
    evals = [one for one in situation.evals if _number(one.loss)]
    if len(evals) < 3:
        return ()
    best = min(evals, key=lambda one: one.loss or 0.0)
    limit = (best.loss or 0.0) * (1 + parameters["least_rise"])
    last, previous = evals[-1].loss or 0.0, evals[-2].loss or 0.0
    if evals[-2].step <= best.step or min(last, previous) <= limit or last < previous:
        return ()
    saved, saved_zh = _saved(situation, best)
    values = {
        "step": evals[-1].step,
        "loss": last,
        "best": best.loss,
        "best_step": best.step,
        "saved": saved,
        "saved_zh": saved_zh,
    }
    return (Seen(values, situation.step_node, evals[-1]),)


def slower_than_predicted(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """The steady step time is `factor` times what was predicted."""
    predicted = situation.expected.step_seconds
    if predicted is None or len(situation.steps) < parameters["lines"]:
        return ()
    steady = steady_step_seconds(tuple(situation.steps), evals=tuple(situation.evals))
    if steady.seconds is None or len(steady.used) < 3 or steady.seconds <= predicted * parameters["factor"]:
        return ()
    values = {"seconds": steady.seconds, "predicted": predicted, "factor": steady.seconds / predicted}
    return (Seen(values, situation.step_node, situation.last_step),)


def memory_climbs(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """Memory keeps growing long after the first steps: in the log's own peak, or on a node."""
    return (*_log_memory_climbs(situation, parameters), *_node_memory_climbs(situation, parameters, now))


def _log_memory_climbs(situation: Situation, parameters: Parameters) -> Sequence[Seen]:
    lines = int(parameters["lines"])
    steps = [step for step in situation.steps if _number(step.memory_gib)]
    if len(steps) < parameters["first_lines"] + lines:
        return ()
    values = [step.memory_gib or 0.0 for step in steps[-lines:]]
    rises = [index for index in range(1, lines) if values[index] > values[index - 1]]
    if len(rises) < parameters["rises"] or rises[-1] < lines - 3:
        return ()
    if values[-1] - values[0] < parameters["least_growth"] * values[0]:
        return ()
    first, last = f"{values[0]:.2f}", f"{values[-1]:.2f}"
    what = {
        "what": f"the training process went from {first} to {last} GiB over {lines} logged steps",
        "what_zh": f"训练进程在 {lines} 个已记录的步中从 {first} 增至 {last} GiB",
    }
    return (Seen(what, situation.step_node, steps[-1]),)


def _node_memory_climbs(situation: Situation, parameters: Parameters, now: float) -> Sequence[Seen]:
    """The highest use in each of three windows in a row rises, each time by a share of the total."""
    if situation.steps_logged < parameters["first_lines"] or not situation.stepping:
        return ()
    window = parameters["window_seconds"]
    seen = []
    for node in situation.nodes.values():
        peaks = []
        for back in (3, 2, 1):
            inside = [
                sample.memory_used_bytes
                for sample in node.samples
                if sample.memory_used_bytes is not None
                and now - back * window < sample.at <= now - (back - 1) * window
            ]
            if len(inside) >= parameters["window_samples"]:
                peaks.append(max(inside))
        total = node.samples[-1].memory_total_bytes if node.samples else None
        if len(peaks) < 3 or not total:
            continue
        least = parameters["window_growth"] * total
        if peaks[1] - peaks[0] >= least and peaks[2] - peaks[1] >= least:
            grown = " → ".join(f"{peak / 2**30:.1f}" for peak in peaks)
            left = (total - peaks[2]) / max(1.0, (peaks[2] - peaks[0]) / 2) * window
            minutes = f"{left / 60:.0f}"
            what = {
                "what": f"used memory rose {grown} GiB; at this pace it is full in {minutes} min",
                "what_zh": f"已用内存增长 {grown} GiB；照此速度 {minutes} 分钟后耗尽",
            }
            seen.append(Seen(what, node.name))
    return seen


def _saved(situation: Situation, best: EvalMetrics) -> tuple[str, str]:
    """In English and in Chinese."""
    if best.step in situation.saved_steps:
        return "it was saved", "它已保存"
    every = situation.expected.save_steps
    if not situation.saved_steps and every and best.step % every == 0:
        return "it should have been saved", "它应已保存"
    near = sorted(situation.saved_steps, key=lambda step: abs(step - best.step))
    if not near:
        return "it was not saved", "它没有保存"
    return (
        f"it was not saved; the nearest checkpoint is step {near[0]}",
        f"它没有保存；最近的检查点是第 {near[0]} 步",
    )


def _number(value: float | None) -> bool:
    return value is not None and isfinite(value)


def _broken(value: float | None) -> bool:
    return value is not None and not isfinite(value)


def _finite(steps: Sequence[StepMetrics]) -> list[float]:
    return [step.loss for step in steps if step.loss is not None and isfinite(step.loss)]
