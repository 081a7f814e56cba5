"""What a run's devices drew while it made steps, from the samples."""

from statistics import fmean

from console.core.record.cells import Cell
from console.core.record.figures import Source
from console.core.record.views import RunView
from console.engine.recorder import Recorder

LEAST_READINGS = 5


def mean_power(recorder: Recorder, run: RunView) -> dict[str, Cell]:
    """Watts per node, from the first step after warm-up to the last; nodes without readings are left out."""
    warmup = recorder.experiment.profile.warmup_steps or 0
    steps = [step for step in run.steps if step.step > warmup]
    if len(steps) < 2:
        return {}
    began, ended = steps[0].at, steps[-1].at
    found: dict[str, Cell] = {}
    for node in run.nodes:
        watts = [
            sample.gpu_power_watts
            for _, sample in recorder.journal.samples(node, began, ended)
            if sample.gpu_power_watts is not None
        ]
        if len(watts) >= LEAST_READINGS:
            words = f"mean power of {len(watts)} readings at 1 Hz, steps {steps[0].step} to {steps[-1].step}"
            found[node] = Cell.of(
                fmean(watts), Source(words=words, file="experiment.sqlite3#samples", node=node)
            )
    return found
