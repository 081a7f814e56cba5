"""`lab ledger`: the JSON people build on, readable text, and one line for bad input."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from console.cli.ledger import app

RUNNER = CliRunner()
GIB = 2**30


def lab(line: str) -> Result:
    return RUNNER.invoke(app, line.split())


def answer(line: str) -> dict[str, Any]:
    result = lab(f"{line} --json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def test_the_classic_account() -> None:
    assert answer("memory --model Qwen2.5-7B --method full --classic")["static_bytes"] == 112 * 10**9


def test_memory_of_the_official_lora_script() -> None:
    found = answer(
        "memory --model Qwen2.5-7B --method lora --tp 2 --pp 1 --dp 1 --micro 1 --seq 2048"
        " --recompute full --device H200"
    )

    (stage,) = found["stages"]
    assert sum(term["bytes"] for term in stage["terms"]) == found["allocated_bytes"]
    assert found["allocated_bytes"] < found["reserved_bytes"]
    assert found["band"]["low_bytes"] < found["reserved_bytes"] < found["band"]["high_bytes"]
    assert found["band"]["reason"]
    assert 7 * GIB < found["allocated_bytes"] < 14 * GIB
    assert found["fit"] == "fits"


def test_exercise_two() -> None:
    found = answer(
        "mfu --params 14e9 --tokens-per-step 65536 --step-seconds 9.0 --devices 8 --peak-tflops 312"
    )

    assert round(found["mfu_6n"], 3) == 0.245


def test_lora_utilisation_names_the_peak() -> None:
    found = answer("mfu --model Qwen2.5-7B --method lora --tokens-per-second 750 --device GB10 --span 834")

    assert found["mfu_lora"] < 0.7 * found["mfu_6n"]
    assert found["peak_tflops"] == 125
    assert found["peak_dtype"] == "bf16"
    assert found["peak_origin"] == "derived for GB10"


def test_fifteen_days() -> None:
    assert answer("time --params 7e9 --tokens 1e9 --sustained-tflops 31")["seconds"] == pytest.approx(
        1.3548e6, rel=1e-4
    )


def test_days_carried_over() -> None:
    found = answer("time --days 15 --machines 2 --efficiency 0.85 --mfu-before 0.35 --mfu-after 0.45")

    assert round(found["days"], 1) == 6.9


def test_both_world_equations() -> None:
    found = answer("topology --world 16 --tp 1 --pp 1 --ep 16 --etp 1")

    assert (found["dp"], found["edp"]) == (16, 1)


def test_the_layout_with_and_without_mtp() -> None:
    assert answer("topology --layers 43 --pp 2 --layout Et*22|t*21L --mtp 0")["stage_layers"] == [22, 21]
    assert lab("topology --layers 43 --pp 2 --layout Et*22|t*21mL --mtp 0 --json").exit_code == 2


def test_a_layout_without_mtp_serves_a_model_that_declares_one() -> None:
    found = answer("memory --model DeepSeek-V4-Flash --method lora --pp 2 --ep 8 --dp 8 --layout Et*22|t*21L")

    assert [stage["layers"] for stage in found["stages"]] == [22, 21]
    assert (found["topology"]["dp"], found["topology"]["edp"]) == (8, 1)


def test_the_course_table() -> None:
    assert answer("choose --memory-gib 80 --seq 8192")["best"] == "table offload"


def test_cuts_of_two_sparks() -> None:
    found = answer("choose --model Qwen2.5-7B --device GB10 --devices 2 --devices-per-node 1")

    assert [(c["tp"], c["pp"], c["dp"]) for c in found["candidates"]] == [(1, 1, 2), (1, 2, 1), (2, 1, 1)]


def test_probed_and_paper_step_times() -> None:
    probed = answer("time --probe 4:0.7255 --probe 8:1.387 --micro-batch-count 32")
    paper = answer(
        "time --model Qwen2.5-7B --device GB10 --method lora --recompute full --dp 2 --global 16 --steps 93"
    )

    assert probed["step"]["basis"] == "probed"
    assert paper["step"]["low_seconds"] < paper["step"]["seconds"] < paper["step"]["high_seconds"]
    assert paper["seconds"] == pytest.approx(93 * paper["step"]["seconds"])


def test_cost_without_a_price_is_unknown_not_zero() -> None:
    assert answer("cost --devices 2 --hours 4")["money"] is None


def test_flops_name_both_conventions() -> None:
    found = answer("flops --model Qwen3-8B --seq 4096 --tokens 1000")

    assert found["flops_per_token"] == pytest.approx(512.7e12 / 10_456.348, rel=0.001)
    assert found["flops_per_token_6n"] == 6 * 8_190_735_360
    assert found["total_flops"] == pytest.approx(1000 * found["flops_per_token"])


def test_a_config_json_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    config = folder / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "qwen2",
                "hidden_size": 896,
                "num_hidden_layers": 24,
                "num_attention_heads": 14,
                "num_key_value_heads": 2,
                "intermediate_size": 4864,
                "vocab_size": 151936,
                "tie_word_embeddings": True,
            }
        )
    )

    assert answer(f"memory --config {config}")["parameters"] == 494_032_768


def test_the_text_marks_the_peak_and_gives_units_and_reasons() -> None:
    cut = "memory --model Qwen3-30B-A3B --pp 2 --ep 4 --dp 4 --seq 8192 --recompute full"
    text = lab(f"{cut} --device GB10 --resident-gib 20").stdout

    assert "stage 1, 24 layers  <- the peak" in text
    assert "GiB" in text
    assert "expected between" in text
    assert "uneven routing" in text
    assert "may fit" in text or "fits" in text


BAD = [
    "memory --model Qwen2.5-7BB",
    "memory --model Qwen2.5-7B --tp 0",
    "memory --model Qwen2.5-7B --tp -2",
    "memory --model Qwen2.5-7B --tp 3",
    "memory --model Qwen2.5-7B --pp 3",
    "memory --model Qwen2.5-7B --seq 0",
    "memory --model Qwen2.5-7B --micro -1",
    "memory --model Qwen2.5-7B --dp 0",
    "memory --model Qwen2.5-7B --method half",
    "memory --model Qwen2.5-7B --method lora --rank 0",
    "memory --model Qwen2.5-7B --method lora --targets in_proj",
    "memory --model Qwen2.5-7B --recompute some",
    "memory --model Qwen2.5-7B --optimizer sgd",
    "memory --model Qwen2.5-7B --device H2000",
    "memory --model Qwen2.5-7B --device GB10 --resident-gib nan",
    "memory --model Qwen2.5-7B --resident-gib nan",
    "memory --model Qwen2.5-7B --resident-gib -50",
    "memory --model Qwen2.5-7B --classic --tp 0",
    "memory --model Qwen2.5-7B --global 7 --dp 2",
    "memory --model Qwen3.8-Flash-Next",
    "memory --config nowhere/config.json",
    "memory",
    "mfu --params nan --tokens-per-second 1 --peak-tflops 1",
    "mfu --params -7e9 --tokens-per-second 1 --peak-tflops 1",
    "mfu --params 7e9 --tokens-per-second 1 --peak-tflops inf",
    "mfu --params 7e9 --peak-tflops 90",
    "mfu --params 7e9 --tokens-per-second 1",
    "mfu --params 7e9 --tokens-per-second 1 --device T4",
    "mfu --params 1e308 --tokens-per-second 1e308 --peak-tflops 1",
    "time --params 7e9 --tokens 0 --sustained-tflops 31",
    "time --params 7e9",
    "time --probe x:1",
    "time --step-seconds 9 --steps 100 --start-seconds -50",
    "time --step-seconds 9 --span inf",
    "time --days 3 --step-seconds nan",
    "time",
    "cost --hours -1",
    "cost --devices 2",
    "cost --hours 1 --service-away-hours -1",
    "topology --world 15 --tp 2",
    "topology --world 0",
    "topology",
    "topology --layers 43 --pp 2 --layout Et*22|t*20L",
    "topology --layers 43 --pp 0",
    "topology --world 8 --mtp -1",
    "topology --model Qwen2.5-7B --layers 0",
    f"topology --layers {'9' * 300}",
    "topology --world 16 --micro 3 --global 16",
    "choose",
    "choose --memory-gib -80",
    "choose --model Qwen2.5-7B --device GB10 --seq 0",
    "choose --model Qwen2.5-7B --device GB10 --devices-per-node 0",
    "choose --memory-gib 80 --seq 5",
    "choose --memory-gib 80 --table nowhere.json",
    f"memory --model Qwen2.5-7B --micro {'9' * 400}",
]


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_and_exit_2(line: str) -> None:
    result = lab(line)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "; try: " in result.stderr


def test_a_config_with_a_missing_field_names_it(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "qwen2", "hidden_size": 896}')

    result = lab(f"memory --config {config}")

    assert result.exit_code == 2
    assert "config.json has no num_hidden_layers" in result.stderr


@pytest.mark.parametrize(
    "content", ["", "[1]", "{", "\x00\xff", '{"hidden_size": NaN}', '{"text_config": 3}']
)
def test_a_broken_config_is_one_line(tmp_path: Path, content: str) -> None:
    config = tmp_path / "config.json"
    config.write_bytes(content.encode("latin-1"))

    result = lab(f"memory --config {config}")

    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
