"""Sources of a record that are not as recorded, told wherever an experiment is exported or replayed."""

import sys
from pathlib import Path

from console.core.record.experiment import Experiment
from console.report.sources import Unsound, unsound_sources


def told_unsound(experiment: Experiment, folder: Path) -> tuple[Unsound, ...]:
    """The unsound sources in `folder`; each is named on stderr."""
    unsound = unsound_sources(experiment, folder)
    for one in unsound:
        print(f"a source is not as recorded: {one.file}: {one.fault}", file=sys.stderr)
    return unsound
