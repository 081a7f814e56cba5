"""The newest checkpoint of a run, in the folders of both modes."""

import json
import os
from pathlib import Path

from .conftest import Ask


def write_checkpoint(
    folder: Path, step: int, *, at: int, weights: str | None = "adapter_model.safetensors"
) -> Path:
    place = folder / f"checkpoint-{step}"
    place.mkdir(parents=True)
    if weights:
        (place / weights).write_bytes(b"w" * 100)
        (place / "adapter_config.json").write_text("{}")
    os.utime(place, (at, at))
    return place


def test_the_last_written_one_counts_over_all_versions(ask: Ask, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "v0-20260101-000000", 90, at=1000)
    newest = write_checkpoint(tmp_path / "v1-20260101-010000", 10, at=2000)
    write_checkpoint(tmp_path / "v1-20260101-010000", 20, at=3000, weights=None)
    (newest / "trainer_state.json").write_text(json.dumps({"global_step": 10}))
    os.utime(newest, (2000, 2000))
    (tmp_path / "v1-20260101-010000" / "last-checkpoint").symlink_to("checkpoint-20")
    answer = ask("checkpoint", {"output_dir": str(tmp_path)})
    assert answer["checkpoint"] == str(newest)
    assert (answer["step"], answer["trainer_state_step"]) == (10, 10)
    assert (answer["kind"], answer["adapter_bytes"]) == ("adapter", 100)
    assert answer["files"]["adapter_config.json"] == 2


def test_megatrons_own_mark_gives_the_step(ask: Ask, tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path, 93, at=1000, weights="model-00001-of-00002.safetensors")
    (place / "latest_checkpointed_iteration.txt").write_text("93\n")
    answer = ask("checkpoint", {"output_dir": str(tmp_path)})
    assert (answer["kind"], answer["trainer_state_step"], answer["adapter_bytes"]) == ("full", 93, None)


def test_distributed_shards_are_weights_too(ask: Ask, tmp_path: Path) -> None:
    place = write_checkpoint(tmp_path / "v0-x", 4, at=1000, weights=None)
    (place / "iter_0000004").mkdir()
    (place / "iter_0000004" / "__0_0.distcp").write_bytes(b"x" * 7)
    answer = ask("checkpoint", {"output_dir": str(tmp_path)})
    assert answer["files"] == {"iter_0000004/__0_0.distcp": 7}


def test_a_run_that_left_nothing_is_told(ask: Ask, tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "v0-x", 4, at=1000, weights=None)
    for folder in (tmp_path, tmp_path / "absent"):
        answer = ask("checkpoint", {"output_dir": str(folder)})
        assert (answer["ok"], answer["kind"], answer["checkpoint"]) == (False, "missing", None)
