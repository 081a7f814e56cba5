"""What only a real run can show: the built model trains, its checkpoint is found, loads and answers."""

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from console.core.plan.infer import infer_argv, read_infer_result
from console.core.plan.profile import ModelSpec, TinyModel

from .conftest import Ask, ask_locally

pytestmark = [
    pytest.mark.training,
    pytest.mark.skipif(importlib.util.find_spec("swift") is None, reason="the 'node' extra is not installed"),
]

TINY = TinyModel(layers=2, hidden=64, heads=4, kv_heads=2, ffn=128, vocab=512, rows=32)


@dataclass(frozen=True)
class Trained:
    model: ModelSpec
    data: Path
    out: Path
    env: dict[str, str]


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A tiny model after two optimizer steps of real LoRA training on the CPU."""
    folder = tmp_path_factory.mktemp("trained")
    model, data, out = folder / "model", folder / "data.jsonl", folder / "out"
    built = ask_locally(
        "tiny_model", TINY.model_dump() | {"model_path": str(model), "data_sources": [str(data)]}
    )
    assert built["ok"], built
    env = {**os.environ, "MODELSCOPE_CACHE": str(folder / "cache"), "CUDA_VISIBLE_DEVICES": ""}
    spec = ModelSpec(path=str(model), model_type="qwen2", template="qwen2_5")
    flags = (
        f"--model {model} --model_type qwen2 --template qwen2_5 --dataset {data} --split_dataset_ratio 0 "
        f"--output_dir {out} --tuner_type lora --target_modules all-linear --use_cpu true "
        "--torch_dtype float32 --max_length 256 --per_device_train_batch_size 1 "
        "--gradient_accumulation_steps 16 --max_steps 2 "
        "--logging_steps 1 --report_to none"
    )
    done = subprocess.run(
        [sys.executable, "-m", "swift.cli.main", "sft", *flags.split()],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return Trained(spec, data, out, env)


def newest(ask: Ask, trained: Trained) -> dict[str, Any]:
    answer = ask("checkpoint", {"output_dir": str(trained.out)})
    assert answer["ok"], answer
    return answer


def test_the_built_model_trains_and_leaves_an_adapter(ask: Ask, trained: Trained) -> None:
    answer = newest(ask, trained)
    assert (answer["step"], answer["trainer_state_step"], answer["kind"]) == (2, 2, "adapter")
    assert answer["adapter_bytes"] > 10_000
    assert {"adapter_config.json", "args.json"} <= answer["files"].keys()


def test_the_checkpoint_loads_and_answers(ask: Ask, trained: Trained, tmp_path: Path) -> None:
    result = tmp_path / "infer.jsonl"
    argv = infer_argv(
        checkpoint=newest(ask, trained)["checkpoint"],
        model=trained.model,
        prompt_source=f"{trained.data}#32",
        result_path=str(result),
        dtype="float32",
        python=sys.executable,
    )
    # As in a run's environment: torchrun must stay out of it all the same.
    env = trained.env | {"NPROC_PER_NODE": "1", "MASTER_PORT": "1"}
    done = subprocess.run(
        argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "torch.distributed.run" not in done.stdout
    lines = result.read_text().splitlines()
    assert len(lines) == 1
    assert read_infer_result(lines).response is not None


def test_the_microbench_measures_this_device(ask: Ask) -> None:
    answer = ask("microbench", {"seconds": 0.3})
    assert answer["ok"], answer
    assert answer["copy_gbps"] > 0.1
    assert answer["matmul_tflops"] > 0.001
    assert answer["matmul_finite"] is True
    if answer["device"] == "cpu":
        assert (answer["matmul_dtype"], answer["sm_clock_mhz"]) == ("float32", None)


def test_a_dtype_that_no_peak_has_is_refused(ask: Ask) -> None:
    assert ask("microbench", {"dtype": "int8"})["kind"] == "bad arguments"


def test_swift_and_torch_import(ask: Ask) -> None:
    answer = ask("imports")
    assert answer["ok"], answer
    assert answer["swift"]["version"].startswith("4.")
    assert answer["device_works"] is True
    assert answer["versions"]["transformers"]
