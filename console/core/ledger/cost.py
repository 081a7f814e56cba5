"""Wall-clock, training days and cost."""

from math import ceil

from console.core.ledger.mixers import Shape
from console.core.ledger.numbers import require_positive

SECONDS_PER_HOUR = 3600
SECONDS_PER_DAY = 86_400


class WallClock(Shape):
    """The parts of one run, in seconds."""

    start_seconds: float
    training_seconds: float
    evaluation_seconds: float
    saving_seconds: float

    @property
    def seconds(self) -> float:
        return self.start_seconds + self.training_seconds + self.evaluation_seconds + self.saving_seconds


class Cost(Shape):
    """What a window costs. The service being away is a cost in hours, not in money."""

    device_hours: float
    money: float | None
    service_away_hours: float


def training_flops(parameters: float, tokens: float) -> float:
    """6 x parameters x tokens; for MoE, the parameters active per token."""
    require_positive(parameters=parameters, tokens=tokens)
    return 6 * parameters * tokens


def training_seconds(parameters: float, tokens: float, sustained_tflops: float) -> float:
    """Time under 6N at a sustained rate of all devices together."""
    require_positive(sustained_tflops=sustained_tflops)
    return training_flops(parameters, tokens) / (sustained_tflops * 1e12)


def converted_days(
    days: float,
    *,
    machines: float,
    parallel_efficiency: float,
    utilisation_before: float,
    utilisation_after: float,
) -> float:
    """Days on one machine carried over to several: days / machines / efficiency x before / after."""
    require_positive(
        days=days,
        machines=machines,
        parallel_efficiency=parallel_efficiency,
        utilisation_before=utilisation_before,
        utilisation_after=utilisation_after,
    )
    return days / machines / parallel_efficiency * (utilisation_before / utilisation_after)


def steps_of(
    total_tokens: float, sequence: int, global_batch: int, epochs: float = 1, packing: float = 0.995
) -> int:
    """Optimizer steps of packed data: epochs x packs / global batch; packs = tokens / sequence / packing."""
    require_positive(
        tokens=total_tokens,
        sequence=sequence,
        global_batch=global_batch,
        epochs=epochs,
        packing_efficiency=packing,
    )
    return ceil(epochs * ceil(total_tokens / sequence / packing) / global_batch)


def wall_clock(
    step_seconds: float,
    steps: int,
    *,
    start_seconds: float = 0,
    evaluations: int = 0,
    evaluation_seconds: float = 0,
    saves: int = 0,
    save_seconds: float = 0,
) -> WallClock:
    """Start-up and compilation, then steps, evaluations and saves, one after another."""
    require_positive(step_seconds=step_seconds, steps=steps)
    return WallClock(
        start_seconds=start_seconds,
        training_seconds=step_seconds * steps,
        evaluation_seconds=evaluations * evaluation_seconds,
        saving_seconds=saves * save_seconds,
    )


def cost(
    seconds: float,
    devices: int,
    *,
    price_per_device_hour: float | None = None,
    service_away_seconds: float = 0,
) -> Cost:
    """Device hours, money if a price is known, and the hours the service is away.

    The service is not assumed to be away for the run: a window may stop nothing.
    """
    require_positive(seconds=seconds, devices=devices)
    hours = devices * seconds / SECONDS_PER_HOUR
    return Cost(
        device_hours=hours,
        money=None if price_per_device_hour is None else hours * price_per_device_hour,
        service_away_hours=service_away_seconds / SECONDS_PER_HOUR,
    )
