"""How large the model of the matrix is: never a rank's share, never the checklist's smaller model."""

from pathlib import Path

import pytest

from console.core.record import events as ev
from console.core.record.folding import fold
from console.core.record.parameters import whole_model
from console.journal import read_journal

EXAMPLE = Path(__file__).parents[2] / "examples" / "h200-pair"


@pytest.fixture(scope="module")
def events() -> list[ev.Event]:
    return read_journal(EXAMPLE)


def test_the_share_of_a_rank_is_not_taken_for_the_model(events: list[ev.Event]) -> None:
    experiment = fold(events)
    newest = experiment.runs["E3-1"].parameters
    assert newest is not None
    assert newest.total < 4e9, "a pipeline stage prints its own layers"
    assert whole_model(experiment) == pytest.approx((7_633_393_256, 17_776_640), rel=1e-5), (
        "printed to a hundred"
    )


def test_before_a_run_of_the_matrix_counted_it_the_shapes_do(events: list[ev.Event]) -> None:
    begun = next(
        n for n, event in enumerate(events) if isinstance(event, ev.RunPlanned) and event.run == "E0-1"
    )
    experiment = fold(events[:begun])
    assert experiment.runs["smoke-megatron-1"].parameters is not None, "of the model of half a billion"
    assert whole_model(experiment) == (7_615_616_512 + 17_776_640, 17_776_640)
