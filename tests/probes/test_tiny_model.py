"""The model and data set that a node builds for itself, and named ones that are found or missing."""

import importlib.util
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from console.core.plan.profile import TinyModel

from .conftest import Ask, ask_locally

TINY = TinyModel(layers=2, hidden=32, heads=4, kv_heads=2, ffn=64, vocab=384, rows=64, seed=7)

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None,
    reason="the 'node' extra is not installed",
)


def arguments(folder: Path, **change: Any) -> dict[str, Any]:
    places = {"model_path": str(folder / "model"), "data_sources": [str(folder / "data.jsonl")]}
    return TINY.model_dump() | places | change


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Both builders at once, as two nodes with a shared folder do it."""
    folder = tmp_path_factory.mktemp("tiny")
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: ask_locally("tiny_model", arguments(folder)), range(2)))
    assert [answer["ok"] for answer in answers] == [True, True], answers
    assert answers[0]["weights_sha256"] == answers[1]["weights_sha256"]
    return folder, answers[0]


@needs_torch
def test_two_builders_at_once_leave_one_whole_model(built: tuple[Path, dict[str, Any]]) -> None:
    folder, answer = built
    assert sorted(place.name for place in folder.iterdir()) == ["data.jsonl", "model"]
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
        place.name for place in (folder / "model").iterdir()
    }
    rows = [json.loads(line) for line in (folder / "data.jsonl").read_text().splitlines()]
    assert len(rows) == TINY.rows == answer["rows"]
    assert [message["role"] for message in rows[0]["messages"]] == ["user", "assistant"]


@needs_torch
def test_the_parameters_are_those_of_the_architecture(built: tuple[Path, dict[str, Any]]) -> None:
    head = TINY.hidden // TINY.heads
    attention = TINY.hidden * head * (2 * TINY.heads + 2 * TINY.kv_heads) + head * (
        TINY.heads + 2 * TINY.kv_heads
    )
    layer = attention + 3 * TINY.hidden * TINY.ffn + 2 * TINY.hidden
    assert built[1]["parameters"] == TINY.vocab * TINY.hidden + TINY.layers * layer + TINY.hidden


@needs_torch
def test_what_is_there_is_used_again_and_another_seed_is_another_model(
    built: tuple[Path, dict[str, Any]], ask: Ask, tmp_path: Path
) -> None:
    folder, first = built
    again = ask("tiny_model", arguments(folder))
    assert again == first | {"built": False}
    other = ask("tiny_model", arguments(tmp_path, seed=8))
    assert other["weights_sha256"] != first["weights_sha256"]
    assert other["data_sha256"] != first["data_sha256"]
    same = ask("tiny_model", arguments(tmp_path))
    assert (same["built"], same["weights_sha256"]) == (True, first["weights_sha256"])
    assert (same["data_sha256"], same["tokenizer_sha256"]) == (
        first["data_sha256"],
        first["tokenizer_sha256"],
    )
    (tmp_path / "model" / "model.safetensors").write_bytes(b"damaged")
    mended = ask("tiny_model", arguments(tmp_path))
    assert (mended["built"], mended["weights_sha256"]) == (True, first["weights_sha256"])
    assert sorted(place.name for place in tmp_path.iterdir()) == ["data.jsonl", "model"]


def test_a_folder_of_someone_else_is_left_alone(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_text("precious")
    answer = ask("tiny_model", arguments(tmp_path))
    assert (answer["ok"], answer["kind"]) == (False, "not ours")
    assert (tmp_path / "model" / "model.safetensors").read_text() == "precious"


@pytest.mark.parametrize(
    "change", [{"heads": 3}, {"kv_heads": 3}, {"hidden": 36}, {"rows": None}, {"model_path": ""}]
)
def test_sizes_that_do_not_fit_are_refused(ask: Ask, tmp_path: Path, change: dict[str, Any]) -> None:
    assert ask("tiny_model", arguments(tmp_path, **change))["kind"] == "bad arguments"
    assert list(tmp_path.iterdir()) == []


def test_a_named_model_and_data_set_that_are_there(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "data.jsonl").write_text("")
    sources = [f"{tmp_path}/data.jsonl#160", "swift/self-cognition#160"]
    answer = ask("tiny_model", {"model_path": str(tmp_path / "model"), "data_sources": sources})
    assert (answer["ok"], answer["model_ok"], answer["data_ok"]) == (True, True, True)
    assert answer["model_found_at"] == str(tmp_path / "model")


def test_paths_that_lead_nowhere_are_named(ask: Ask, tmp_path: Path) -> None:
    answer = ask(
        "tiny_model", {"model_path": f"{tmp_path}/model", "data_sources": [f"{tmp_path}/data.jsonl#160"]}
    )
    assert (answer["ok"], answer["kind"]) == (False, "missing")
    assert (answer["model_ok"], answer["data_ok"]) == (False, False)
    assert f"{tmp_path}/model" in answer["error"]
    assert f"{tmp_path}/data.jsonl" in answer["error"]


def test_a_model_id_is_looked_for_in_the_cache(ask: Ask, tmp_path: Path) -> None:
    args = {"model_path": "Qwen/Qwen2.5-7B-Instruct", "data_sources": ["a/b#500"], "cache": str(tmp_path)}
    env = {"HOME": str(tmp_path), "MODELSCOPE_CACHE": "", "HF_HOME": "", "HF_HUB_CACHE": ""}
    absent = ask("tiny_model", args, env=env)
    assert (absent["model_ok"], absent["model_found_at"], absent["model_download_needed"]) == (
        True,
        None,
        True,
    )
    place = tmp_path / "models" / "Qwen" / "Qwen2___5-7B-Instruct"
    place.mkdir(parents=True)
    there = ask("tiny_model", args, env=env)
    assert (there["model_found_at"], there["model_download_needed"]) == (str(place), False)
