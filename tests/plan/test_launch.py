"""From a configuration to commands: both modes, rank order, and the traps of their flags."""

import pytest

from console.cli.files import shipped
from console.core.errors import InputError
from console.core.plan.launch import Launch, check_fit, check_matrices, fill, kept_by, plan_launches
from console.core.plan.matrix import Configuration, Mode, Settings
from console.core.plan.profile import Profile, parse_profile


def lab(name: str) -> Profile:
    return parse_profile((shipped("profiles") / f"{name}.yaml").read_text(encoding="utf-8"), file=name)


def launches(name: str, config_id: str) -> tuple[Launch, ...]:
    profile = lab(name)
    places = {
        node.name: {
            "home": f"/home/{node.name}",
            "shared": "/shared",
            "run": "/run",
            "python": "/py",
            "embedded": "/e",
        }
        for node in profile.nodes
    }
    return plan_launches(profile, profile.configuration(config_id), master_port=4711, places=places)


def flag(launch: Launch, name: str) -> list[str]:
    """Values of a flag; empty when it is absent."""
    if f"--{name}" not in launch.argv:
        return []
    rest = launch.argv[launch.argv.index(f"--{name}") + 1 :]
    ends = next((i for i, word in enumerate(rest) if word.startswith("--")), len(rest))
    return list(rest[:ends])


def test_one_node_still_gets_a_rendezvous() -> None:
    """`megatron sft` without NPROC_PER_NODE fails for a missing RANK."""
    (only,) = launches("spark-pair", "E0")
    assert only.env["NPROC_PER_NODE"] == "1"
    assert only.env["NNODES"] == "1"
    assert only.shows_log


def test_two_nodes_share_master_and_cache() -> None:
    first, second = launches("spark-pair", "E1")
    assert (first.env["NODE_RANK"], second.env["NODE_RANK"]) == ("0", "1")
    assert first.env["MASTER_ADDR"] == second.env["MASTER_ADDR"] == "spark-a.local"
    assert first.env["MODELSCOPE_CACHE"] == second.env["MODELSCOPE_CACHE"] == "/shared/modelscope"
    assert first.env["NCCL_IB_HCA"] == "rocep1s0f1,roceP2p1s0f1"


def test_megatron_logs_on_the_last_rank_and_swift_on_the_first() -> None:
    assert [launch.shows_log for launch in launches("spark-pair", "E2")] == [False, True]
    assert [launch.shows_log for launch in launches("embedded", "E1")] == [True, False]


def test_megatron_flags() -> None:
    (launch,) = launches("spark-pair", "E0")
    assert launch.argv[:4] == ("/py", "-m", "swift.cli._megatron.main", "sft")
    assert flag(launch, "tuner_type") == ["lora"]
    assert flag(launch, "merge_lora") == ["false"]
    assert flag(launch, "ddp_timeout") == ["1800"]
    assert flag(launch, "recompute_method") == ["uniform"]
    assert flag(launch, "num_train_epochs") == ["1"]
    assert flag(launch, "torch_dtype") == ["bfloat16"]
    assert len(flag(launch, "dataset")) == 3
    assert "--report_to" not in launch.argv
    assert "--learning_rate" not in launch.argv


def test_tensor_and_pipeline_flags() -> None:
    tensor, pipeline = launches("spark-pair", "E2")[0], launches("spark-pair", "E3")[0]
    assert flag(tensor, "tensor_model_parallel_size") == ["2"]
    assert flag(tensor, "sequence_parallel") == ["true"]
    assert flag(pipeline, "pipeline_model_parallel_size") == ["2"]
    assert flag(pipeline, "sequence_parallel") == []


def test_accumulation_keeps_the_global_batch() -> None:
    one, (two, _) = launches("embedded", "E0")[0], launches("embedded", "E1")
    assert flag(one, "gradient_accumulation_steps") == ["16"]
    assert flag(two, "gradient_accumulation_steps") == ["8"]
    assert flag(launches("embedded", "G1")[0], "gradient_accumulation_steps") == ["8"]
    assert flag(launches("embedded", "R1")[0], "gradient_checkpointing") == ["false"]


def test_two_cpu_processes_make_a_real_group() -> None:
    """Without --use_cpu each rank would train alone and the run would still end with 0."""
    assert all(flag(launch, "use_cpu") == ["true"] for launch in launches("embedded", "E1"))


def test_batch_that_does_not_divide() -> None:
    config = Configuration(id="E1", title="x", mode="megatron", varies="data parallel", nodes=2)
    with pytest.raises(InputError, match="global batch 16"):
        check_fit(config, Settings(epochs=1, micro_batch=16, global_batch=16))


def test_world_that_does_not_divide() -> None:
    config = Configuration(id="E2", title="x", mode="megatron", varies="tensor parallel", tensor_parallel=2)
    with pytest.raises(InputError, match="world 1"):
        check_fit(config, Settings(epochs=1))


@pytest.mark.parametrize(
    ("mode", "settings", "words"),
    [
        ("megatron", Settings(epochs=0.5), "0.5 epochs"),
        ("megatron", Settings(epochs=1, dtype="float32"), "float32"),
        ("swift", Settings(epochs=1, recompute="selective"), "selective"),
    ],
)
def test_a_setting_that_the_mode_cannot_keep(mode: Mode, settings: Settings, words: str) -> None:
    config = Configuration(id="E0", title="x", mode=mode, varies="nothing")
    with pytest.raises(InputError, match=words):
        check_fit(config, settings)


def test_a_short_run_takes_the_nearest_that_its_mode_can_keep() -> None:
    odd = Settings(epochs=0.5, dtype="float32", recompute="selective")
    megatron, swift = kept_by("megatron", odd), kept_by("swift", odd)
    assert (megatron.epochs, megatron.dtype, megatron.recompute) == (1, "bfloat16", "selective")
    assert (swift.epochs, swift.dtype, swift.recompute) == (0.5, "float32", "full")


def test_the_degraded_path_is_looked_at_before_anything_runs() -> None:
    profile = lab("spark-pair")
    assert profile.degraded_matrix is not None
    check_matrices(profile)
    selective = profile.model_copy(
        update={"settings": profile.settings.model_copy(update={"recompute": "selective"})}
    )
    with pytest.raises(InputError, match="D0: recompute selective"):
        check_matrices(selective)


def test_placeholder_without_a_value() -> None:
    with pytest.raises(InputError, match="embedded"):
        fill("{embedded}/x", {"home": "/h"})
