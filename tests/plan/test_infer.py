"""The command that asks a checkpoint one thing, and what came back."""

import json

import pytest

from console.core.plan.infer import infer_argv, read_infer_result
from console.core.plan.profile import ModelSpec


def flags_of(argv: tuple[str, ...]) -> dict[str, str]:
    start = argv.index("infer") + 1
    return dict(zip(argv[start::2], argv[start + 1 :: 2], strict=True))


def test_an_adapter_is_loaded_beside_its_model() -> None:
    argv = infer_argv(
        checkpoint="/run/out/checkpoint-10",
        model=ModelSpec(path="{shared}/tiny", model_type="qwen2", template="qwen2_5"),
        prompt_source="{shared}/tiny.jsonl#160",
        result_path="{run}/infer.jsonl",
        dtype="float32",
    )
    flags = flags_of(argv)
    assert flags["--model"] == "{shared}/tiny"
    assert flags["--adapters"] == "/run/out/checkpoint-10"
    assert flags["--val_dataset"] == "{shared}/tiny.jsonl#1"
    assert (flags["--infer_backend"], flags["--max_new_tokens"]) == ("transformers", "8")
    assert (flags["--model_type"], flags["--template"]) == ("qwen2", "qwen2_5")


def test_a_whole_model_is_the_checkpoint() -> None:
    flags = flags_of(
        infer_argv(
            checkpoint="/ckpt",
            model=ModelSpec(path="id"),
            prompt_source="a/b",
            result_path="r",
            adapter=False,
        )
    )
    assert flags["--model"] == "/ckpt"
    assert not {"--adapters", "--model_type", "--template"} & flags.keys()


def test_torchrun_is_kept_out() -> None:
    argv = infer_argv(checkpoint="c", model=ModelSpec(path="m"), prompt_source="d", result_path="r")
    assert argv[0] == "env"
    assert "NPROC_PER_NODE" in argv[: argv.index("{python}")]
    assert argv[argv.index("{python}") :][:4] == ("{python}", "-m", "swift.cli.main", "infer")


@pytest.mark.parametrize(
    ("lines", "answered", "response"),
    [
        ([json.dumps({"response": "204"})], True, "204"),
        (["", "not json", json.dumps({"response": "a"}), json.dumps({"response": "b"})], True, "b"),
        ([json.dumps({"response": ""})], False, ""),
        ([json.dumps({"response": None})], False, None),
        (["[1]"], False, None),
        ([], False, None),
    ],
)
def test_the_last_response_counts(lines: list[str], answered: bool, response: str | None) -> None:
    found = read_infer_result(lines)
    assert (found.answered, found.response) == (answered, response)
