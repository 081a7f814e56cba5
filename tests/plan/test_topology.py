"""World equations, divisibility, stages and layout strings."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.core.errors import InputError
from console.core.plan.placement import advise, groups
from console.core.plan.topology import (
    ModelShape,
    ParallelSizes,
    derive,
    micro_batches,
    parse_layout,
    require_fit,
    require_sequence,
    stage_layers,
)

DEEPSEEK_V4 = 43
LETTERS = "EtmL|*(),0123456789 x\n"


@pytest.mark.parametrize(
    ("world", "sizes", "dp"), [(8, {"ep": 8}, 8), (16, {"ep": 8, "pp": 2}, 8), (16, {"ep": 16}, 16)]
)
def test_the_deepseek_runs_have_these_data_parallel_sizes(world: int, sizes: dict[str, int], dp: int) -> None:
    topology = derive(world, ParallelSizes(**sizes))

    assert (topology.dp, topology.edp) == (dp, 1)


def test_a_card_that_prints_dp_1_on_64_devices_quotes_the_expert_dp() -> None:
    topology = derive(64, ParallelSizes(tp=1, pp=8, ep=8, cp=1))

    assert (topology.dp, topology.edp) == (8, 1)


sizes_up_to_4 = st.integers(1, 4)


@given(st.integers(1, 256), sizes_up_to_4, sizes_up_to_4, sizes_up_to_4, sizes_up_to_4, sizes_up_to_4)
def test_both_world_equations_hold_for_every_accepted_topology(
    world: int, tp: int, pp: int, cp: int, ep: int, etp: int
) -> None:
    try:
        topology = derive(world, ParallelSizes(tp=tp, pp=pp, cp=cp, ep=ep, etp=etp))
    except InputError:
        assert world % (tp * pp * cp) or world % (etp * ep * pp)
        return

    assert tp * pp * cp * topology.dp == world
    assert etp * ep * pp * topology.edp == world


@pytest.mark.parametrize("world", [0, -8, 10**7])
def test_an_impossible_world_is_refused(world: int) -> None:
    with pytest.raises(InputError, match="world"):
        derive(world, ParallelSizes())


def test_a_refusal_names_the_rule_with_its_numbers_and_the_nearest_world() -> None:
    with pytest.raises(InputError) as refusal:
        derive(15, ParallelSizes(tp=2, pp=2))

    assert refusal.value.why == "tp 2 x pp 2 x cp 1 = 4 does not divide 15"
    assert refusal.value.next_step == "world 16, or smaller sizes"


@pytest.mark.parametrize("field", ["tp", "pp", "cp", "ep", "etp", "vpp"])
def test_sizes_below_one_are_refused(field: str) -> None:
    with pytest.raises(InputError, match=f"{field} 0"):
        ParallelSizes.checked(**{field: 0})


def test_micro_batches_of_a_step() -> None:
    assert micro_batches(16, 1, 2) == 8
    with pytest.raises(InputError) as refusal:
        micro_batches(16, 16, 2)
    assert "micro batch 16 x DP 2 = 32" in refusal.value.why
    assert refusal.value.next_step == "global batch 32"


def test_sequences_divide_by_twice_cp_and_by_tp_under_sequence_parallelism() -> None:
    sizes = ParallelSizes(tp=4, cp=2, sequence_parallel=True)
    require_sequence(8192, sizes)
    with pytest.raises(InputError) as refusal:
        require_sequence(8200, sizes)
    assert refusal.value.next_step == "sequence 8192" or refusal.value.next_step == "sequence 8208"


SHAPE = ModelShape(layers=28, heads=28, kv_heads=4)


def test_heads_and_experts_must_divide() -> None:
    assert require_fit(ParallelSizes(tp=4, pp=2), SHAPE) == (14, 14)
    with pytest.raises(InputError, match="tp 8") as refusal:
        require_fit(ParallelSizes(tp=8), SHAPE)
    assert refusal.value.next_step == "tp 4"
    with pytest.raises(InputError, match="no experts"):
        require_fit(ParallelSizes(ep=2), SHAPE)
    with pytest.raises(InputError) as experts:
        require_fit(ParallelSizes(ep=6), SHAPE.model_copy(update={"experts": 128}))
    assert experts.value.next_step == "ep 4"


def test_a_layout_excludes_first_and_last_counts() -> None:
    with pytest.raises(InputError, match="one or the other"):
        require_fit(ParallelSizes(pp=2, first_layers=12, layout="Et*14|t*14L"), SHAPE)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pp": 4}, (12, 12, 12, 12)),
        ({"pp": 2, "first": 12}, (12, 36)),
        ({"pp": 4, "last": 3}, (15, 15, 15, 3)),
        ({"pp": 3, "first": 10, "last": 8}, (10, 30, 8)),
        ({"pp": 2, "first": 12, "last": 36}, (12, 36)),
    ],
)
def test_stages_with_uneven_ends(arguments: dict[str, int], expected: tuple[int, ...]) -> None:
    assert stage_layers(48, **arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        ({"pp": 5}, "pp 4, or give decoder_first_pipeline_num_layers"),
        ({"pp": 4, "first": 13}, "first 12"),
        ({"pp": 2, "first": 12, "last": 30}, "first 12, last 36"),
        ({"pp": 4, "first": 12, "last": 13}, "first 12, last 12"),
        ({"pp": 1, "first": 12}, "drop it, or use pp 2 or more"),
        ({"pp": 4, "vpp": 5}, "vpp 4, or another split"),
        ({"pp": 0}, "pp 1"),
    ],
)
def test_stages_that_do_not_divide(arguments: dict[str, int], nearest: str) -> None:
    with pytest.raises(InputError) as refusal:
        stage_layers(48, **arguments)
    assert refusal.value.next_step == nearest


def test_the_courses_layout_is_valid_without_mtp_and_refused_with_it() -> None:
    assert parse_layout("Et*22|t*21L", pp=2, layers=DEEPSEEK_V4).layers_per_rank == (22, 21)
    with pytest.raises(InputError, match="has 1 m") as refusal:
        parse_layout("Et*22|t*21mL", pp=2, layers=DEEPSEEK_V4)
    assert refusal.value.why == "mtp_num_layers is 0"
    with pytest.raises(InputError, match="has 0 m"):
        parse_layout("Et*22|t*21L", pp=2, layers=DEEPSEEK_V4, mtp=1)
    assert parse_layout("Et*22|t*21mL", pp=2, layers=DEEPSEEK_V4, mtp=1).rank_of("m") == 1


def test_the_64_device_layout_sums_to_43_layers() -> None:
    layout = parse_layout("Et*5|t*5|t*6|t*6|t*6|t*5|t*5|t*5mL", pp=8, layers=DEEPSEEK_V4, mtp=1)

    assert layout.layers_per_rank == (5, 5, 6, 6, 6, 5, 5, 5)


def test_virtual_stages_go_round_the_ranks() -> None:
    layout = parse_layout("Et*4|(tttt|)*14tmL", pp=8, layers=61, mtp=1)

    assert layout.vpp == 2
    assert layout.of_rank(0) == ("Etttt", "tttt")
    assert layout.of_rank(7) == ("tttt", "tmL")
    assert layout.draw().splitlines()[7] == "rank 7: 4 layers  |  layer + MTP + loss"


def test_an_empty_stage_is_legal() -> None:
    assert parse_layout("Ett||tL|", pp=4, layers=3).layers_per_rank == (2, 0, 1, 0)


@pytest.mark.parametrize(
    ("text", "pp", "layers", "mtp", "complaint"),
    [
        ("", 1, 1, 0, "does not run from E to L"),
        ("ttL", 1, 2, 0, "does not run from E to L"),
        ("EttLL", 1, 2, 0, "does not run from E to L"),
        ("Et|tL", 4, 2, 0, "has 2 stages"),
        ("EtmtL", 1, 2, 1, "a layer after an MTP layer"),
        ("Et*2L", 1, 3, 0, "has 2 t"),
        ("Et?L", 1, 1, 0, "has '?'"),
        ("E((t)*2)*2L", 1, 4, 0, "has '('"),
        ("Et|t|m|L", 2, 2, 1, None),
        ("Et|m|t|L", 2, 2, 1, "a layer after an MTP layer"),
        ("Et|tm||L", 2, 2, 1, "last virtual stage"),
        ("Et||tm|mL", 2, 2, 2, "spreads MTP"),
        ("Et*99999999L", 1, 1, 0, "expands to more than"),
        ("E(t|)*4095tL", 1, 4096, 0, "expands to more than"),
    ],
)
def test_layouts_megatron_would_refuse(
    text: str, pp: int, layers: int, mtp: int, complaint: str | None
) -> None:
    if complaint is None:
        assert parse_layout(text, pp=pp, layers=layers, mtp=mtp).rank_of("m") == 0
        return
    with pytest.raises(InputError) as refusal:
        parse_layout(text, pp=pp, layers=layers, mtp=mtp)
    assert complaint in str(refusal.value)


def test_random_layout_strings_never_crash() -> None:
    generator = random.Random(43)
    accepted = refused = 0
    for _ in range(100_000):
        text = "".join(generator.choices(LETTERS, k=generator.randrange(24)))
        if generator.random() < 0.3:
            text = f"E{text.replace('E', 't').replace('L', '')}L"
        try:
            parse_layout(text, pp=generator.randrange(1, 5), layers=generator.randrange(1, 50))
            accepted += 1
        except InputError:
            refused += 1
    assert accepted > 0
    assert accepted + refused == 100_000


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        layout = parse_layout(text, pp=1, layers=1)
    except InputError:
        return
    assert "".join(layout.stages) == "EtL"


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.integers(1, 6))
def test_groups_that_cross_nodes_agree_with_counting_ranks(
    tp: int, cp: int, dp: int, pp: int, per_node: int
) -> None:
    world = tp * cp * dp * pp
    topology = derive(world, ParallelSizes(tp=tp, cp=cp, pp=pp))
    found = {group.name: group.crosses_nodes for group in groups(topology, per_node)}

    stride = 1
    for name, size in (("TP", tp), ("CP", cp), ("DP", dp), ("PP", pp)):
        block = stride * size
        crosses = any(
            len({(start + offset + i * stride) // per_node for i in range(size)}) > 1
            for start in range(0, world, block)
            for offset in range(stride)
        )
        if size > 1:
            assert found[name] == crosses
        stride = block


def test_heavy_traffic_across_nodes_is_a_warning_with_a_reason() -> None:
    topology = derive(16, ParallelSizes(tp=2, pp=1, ep=16, cp=2, sequence_parallel=True))

    remarks = advise(topology, 8, sequence=2048, has_experts=True)

    warnings = [remark.what for remark in remarks if remark.level == "warning"]
    assert warnings == ["EP 16 crosses nodes", "CP 2 at sequence 2048"]
    assert any("expert DP is 1" in remark.what for remark in remarks)


def test_pipeline_across_nodes_is_the_right_way_round() -> None:
    remarks = advise(derive(16, ParallelSizes(pp=2, ep=8)), 8, sequence=8192, has_experts=True)

    assert not [remark for remark in remarks if remark.level == "warning"]
    assert any(remark.what == "PP crosses nodes" for remark in remarks)
