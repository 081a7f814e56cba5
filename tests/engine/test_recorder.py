"""What the recorder notes of an error."""

from pathlib import Path

import pytest

from console.cli.files import read_lab
from console.core.errors import Unreachable
from console.engine.opening import open_recorder


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("", "the job could not be stopped: no contact"),
        ("timed out", "the job could not be stopped: no contact; timed out"),
    ],
)
def test_a_trouble_is_noted_with_its_cause_where_one_is_known(tmp_path: Path, why: str, words: str) -> None:
    with open_recorder(tmp_path, read_lab("embedded")) as recorder:
        error = Unreachable("node-a", "no contact", why=why)
        recorder.trouble("the job could not be stopped", error, node="node-a", run="E0-1")
        line = recorder.experiment.timeline[-1]
    assert (line.node, line.run, line.words) == ("node-a", "E0-1", words)
