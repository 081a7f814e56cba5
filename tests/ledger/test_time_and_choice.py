"""Step time from band and probes, cost, columns, devices, and choosing a cut."""

import pytest

from console.core.errors import InputError
from console.core.ledger import catalogue
from console.core.ledger.choose import TableRow, choose
from console.core.ledger.columns import Column, Comparison, Value
from console.core.ledger.cost import cost, steps_of, wall_clock
from console.core.ledger.feasible import Question, candidates
from console.core.ledger.methods import FULL_RECOMPUTE, Batch, Method
from console.core.ledger.paper import paper_column, tokens_per_step
from console.core.ledger.scenario import Situation, suggest
from console.core.ledger.setup import Setup
from console.core.ledger.steptime import affine_law, bubble_share, probed_step, utilisation_prior
from console.core.plan.topology import ParallelSizes, derive

GIB = 2**30
ONE = ParallelSizes()
LORA = Method(kind="lora")
QWEN_7B = catalogue.model("Qwen2.5-7B").architecture()


def pair(sizes: ParallelSizes = ONE) -> Setup:
    """The course's LoRA run on two machines."""
    topology = derive(2, sizes)
    return Setup(
        architecture=QWEN_7B,
        topology=topology,
        batch=Batch(sequence=2048, micro_batch=1, micro_batches=16 // topology.dp),
        method=LORA,
        recompute=FULL_RECOMPUTE,
    )


def test_two_probes_predict_a_longer_step() -> None:
    """Published: 4, 8 and 32 micro-batches took 0.7255, 1.387 and 5.3765 s."""
    step = probed_step(((4, 0.7255), (8, 1.387)), 32, ONE)

    assert step.basis == "probed"
    assert step.low_seconds < 5.3765 < step.high_seconds
    assert step.seconds == pytest.approx(5.3765, rel=0.01)


def test_one_probe_scales_with_the_slots() -> None:
    step = probed_step(((8, 1.387),), 32, ONE)

    assert step.seconds == pytest.approx(4 * 1.387)
    assert step.low_seconds < 5.3765 <= step.high_seconds


def test_the_bubble_is_part_of_the_law() -> None:
    sizes = ParallelSizes(pp=4)
    law = affine_law((4, 7.0), (8, 11.0), sizes)

    assert law.slot_seconds == pytest.approx(1.0)
    assert law.fixed_seconds == pytest.approx(0.0)
    assert bubble_share(8, sizes) == pytest.approx(3 / 8)


@pytest.mark.parametrize(
    "probes", [(), ((4, 1.0), (4, 2.0)), ((4, 2.0), (8, 1.0)), ((0, 1.0),), ((4, float("nan")),)]
)
def test_probes_that_say_nothing_are_refused(probes: tuple[tuple[int, float], ...]) -> None:
    with pytest.raises(InputError):
        probed_step(probes, 32, ONE)


def test_the_prior_depends_on_what_is_trained_and_on_what() -> None:
    h100, h20, spark = map(catalogue.device, ("H100", "H20", "GB10"))
    moe = catalogue.model("Qwen3-30B-A3B").architecture()

    assert (
        utilisation_prior(h100, QWEN_7B, LORA, ONE).high
        < utilisation_prior(h100, QWEN_7B, Method(), ONE).high
    )
    assert utilisation_prior(h20, QWEN_7B, Method(), ONE).low > 0.7
    assert utilisation_prior(h100, moe, Method(), ONE).low == 0.05
    assert utilisation_prior(spark, QWEN_7B, LORA, ONE).low < 0.2


def test_the_paper_column_is_whole_and_consistent() -> None:
    setup, spark = pair(), catalogue.device("GB10")
    column = paper_column(setup, spark)

    assert tokens_per_step(setup) == 16 * 2048
    for quantity in ("memory_bytes", "step_seconds", "tokens_per_second", "mfu"):
        value = getattr(column, quantity)
        assert value.low < value.number < value.high
        assert value.source
    rate, step = column.tokens_per_second.number, column.step_seconds.number
    assert rate is not None
    assert step is not None
    assert rate * step == pytest.approx(16 * 2048)
    assert "derived" in column.mfu.source


def test_a_finished_run_fills_its_column_and_the_gap_knows_its_band() -> None:
    paper = Column(
        memory_bytes=Value(number=38 * GIB, low=33 * GIB, high=43 * GIB),
        step_seconds=Value(number=2.0, low=1.5, high=2.5),
    )
    measured = Column(memory_bytes=Value(number=41.0 * GIB), step_seconds=Value(number=3.2))

    gaps = {
        gap.quantity: gap for gap in Comparison(configuration="E2", paper=paper).with_measured(measured).gaps
    }

    assert gaps["memory_bytes"].inside_band
    assert gaps["step_seconds"].relative == pytest.approx(0.6)
    assert gaps["step_seconds"].inside_band is False
    assert "mfu" not in gaps


def test_a_probe_is_compared_until_the_run_has_ended() -> None:
    paper, probe, run = (Column(step_seconds=Value(number=seconds)) for seconds in (2.0, 2.2, 2.4))
    probed = Comparison(configuration="E1", paper=paper).with_probed(probe)

    assert [(gap.against, round(gap.relative, 2)) for gap in probed.gaps] == [("paper", 0.1)]
    ended = probed.with_measured(run)
    assert [(gap.against, round(gap.relative, 2)) for gap in ended.gaps] == [("paper", 0.2), ("probed", 0.09)]


def test_wall_clock_and_cost() -> None:
    run = wall_clock(
        9.0, 100, start_seconds=300, evaluations=2, evaluation_seconds=30, saves=1, save_seconds=40
    )

    assert run.seconds == 300 + 900 + 60 + 40
    assert cost(3600, 8, price_per_device_hour=2.0, service_away_seconds=5400).model_dump() == {
        "device_hours": 8.0,
        "money": 16.0,
        "service_away_hours": 1.5,
    }
    assert cost(3600, 8).money is None
    assert steps_of(1e9, 8192, 16, packing=1.0) == 7630


def test_sparsity_figures_are_never_peaks() -> None:
    assert catalogue.device("H100").peak("bf16").value == 989
    assert catalogue.device("A100").peak("bf16").value == 312
    assert catalogue.device("GB10").peak("bf16").origin == "derived"
    assert catalogue.device("GB10").ceiling("bf16").value == pytest.approx(96.8)
    assert catalogue.device("GB10").ceiling("bf16").origin == "measured"


def test_h20_is_not_h200() -> None:
    assert catalogue.device("H20").peak("bf16").value == 148
    assert catalogue.device("NVIDIA H200").name == "H200"


def test_a_t4_has_no_bf16() -> None:
    with pytest.raises(InputError, match="bf16"):
        catalogue.device("T4").peak("bf16")


@pytest.mark.parametrize(
    ("name", "tokens"), [("GB10", 458), ("H100", 295), ("H200", 206), ("A100", 156), ("H20", 37)]
)
def test_ridge_points(name: str, tokens: int) -> None:
    assert round(catalogue.device(name).ridge_tokens("bf16")) == tokens


ROWS = tuple(
    TableRow(name=name, settings="", sequence=4096, memory_gib=memory, relative_step_time=time)
    for name, memory, time in (("a", 60, 1.0), ("b", 70, 0.8), ("c", 90, 0.5))
)


def test_memory_decides_first_then_speed() -> None:
    choice = choose(ROWS, memory_gib=80)

    assert [(verdict.row.name, verdict.rank) for verdict in choice.verdicts] == [
        ("b", 1),
        ("a", 2),
        ("c", None),
    ]
    assert "1.25 x the time of the first" in choice.verdicts[1].reason
    assert choose(ROWS, memory_gib=10).best is None


@pytest.mark.parametrize(("limit", "sequence"), [(0, None), (float("nan"), None), (80, 1)])
def test_choices_need_a_limit_and_a_sequence_of_the_table(limit: float, sequence: int | None) -> None:
    with pytest.raises(InputError):
        choose(ROWS, memory_gib=limit, sequence=sequence)


def question(**changes: object) -> Question:
    return Question(
        architecture=QWEN_7B,
        device=catalogue.device("GB10"),
        world_size=2,
        devices_per_node=1,
        method=LORA,
        recompute=FULL_RECOMPUTE,
        sequence=2048,
        micro_batch=1,
        global_batch=16,
    )._replace(**changes)  # type: ignore[arg-type]


def test_on_two_sparks_data_parallelism_comes_first_and_tensor_parallelism_last() -> None:
    found = candidates(question())

    assert [(c.topology.sizes.tp, c.topology.sizes.pp, c.topology.dp) for c in found] == [
        (1, 1, 2),
        (1, 2, 1),
        (2, 1, 1),
    ]
    assert found[0].fit == "fits"
    assert "crosses nodes" in found[-1].warnings[0].what


def test_full_training_of_32b_fits_no_cut_of_two_sparks() -> None:
    found = candidates(question(architecture=catalogue.model("Qwen3-32B").architecture(), method=Method()))

    assert {candidate.fit for candidate in found} == {"does not fit"}


def test_sizes_without_a_runnable_cut_are_refused() -> None:
    with pytest.raises(InputError):
        candidates(question(global_batch=1, micro_batch=3))
    with pytest.raises(InputError):
        candidates(question(world_size=128))


def test_two_machines_with_one_device_each_are_told_to_measure() -> None:
    advice = suggest(
        Situation(fits_one_device=True, devices_per_node=1, nodes=2, has_experts=False, sequence=2048)
    )

    assert advice[0].first.startswith("data parallelism")
    assert any(line.first.startswith("measure") for line in advice)


def test_experts_and_long_context_are_advised_on() -> None:
    advice = suggest(
        Situation(fits_one_device=False, devices_per_node=8, nodes=2, has_experts=True, sequence=131_072)
    )

    words = " ".join(line.first for line in advice)
    for word in ("tensor", "EP", "pipeline", "context"):
        assert word in words
