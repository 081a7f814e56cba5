"""A profile that is wrong is refused in words that name file, line, field and what was expected."""

from pathlib import Path

import pytest

from console.cli.files import shipped
from console.core.errors import InputError
from console.core.plan.matrix import effective_settings
from console.core.plan.profile import ModelSpec, parse_profile

EMBEDDED = (shipped("profiles") / "embedded.yaml").read_text(encoding="utf-8")


def line_of(text: str, words: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if words in line)


@pytest.mark.parametrize("name", ["embedded", "spark-pair"])
def test_shipped_profiles_are_read(name: str) -> None:
    text = (shipped("profiles") / f"{name}.yaml").read_text(encoding="utf-8")
    assert parse_profile(text, file=f"{name}.yaml").name == name


def test_spark_pair_avoids_the_known_traps() -> None:
    """What fails on two Sparks by the framework's defaults is set in the profile."""
    text = (shipped("profiles") / "spark-pair.yaml").read_text(encoding="utf-8")
    lab = parse_profile(text, file="spark-pair.yaml")
    assert lab.settings.global_batch % (lab.settings.micro_batch * 2) == 0
    assert lab.settings.ddp_timeout_seconds == 1800
    assert lab.policies.restoring_floor_bytes < lab.policies.floor_bytes


@pytest.mark.parametrize(
    ("wrong", "right", "field", "expected"),
    [
        ("gpu_per_node: 0", "gpus_per_node: 0", "gpu_per_node", "unknown key"),
        ("gpus_per_node: several", "gpus_per_node: 0", "gpus_per_node", "integer"),
        ("  kind: nfs", "  kind: none", "service.kind", "none"),
        ("  global_batch: 0", "  global_batch: 16", "settings.global_batch", "greater than or equal to 1"),
        ("  dtype: float8", "  dtype: float32", "settings.dtype", "bfloat16"),
    ],
)
def test_faults_name_file_line_and_field(wrong: str, right: str, field: str, expected: str) -> None:
    text = EMBEDDED.replace(right, wrong, 1)
    with pytest.raises(InputError) as caught:
        parse_profile(text, file="mine.yaml")
    message = caught.value.render()
    assert f"mine.yaml:{line_of(text, wrong.strip())}: " in message
    assert field in message
    assert expected in message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("right", "wrong", "field"),
    [
        ("window: {hours: 4}", "window: {hours: true}", "window.hours"),
        ("  copy_gbps: 10", "  copy_gbps: true", "baselines.copy_gbps"),
        ("shared:", "warmup_steps: false\nshared:", "warmup_steps"),
        ("  global_batch: 16", "  global_batch: true", "settings.global_batch"),
        ("  master_port: auto", "  master_port: true", "network.master_port"),
    ],
)
def test_true_is_no_number(right: str, wrong: str, field: str) -> None:
    assert right in EMBEDDED
    with pytest.raises(InputError, match=rf"mine\.yaml:\d+: {field}: expected a number, not true or false"):
        parse_profile(EMBEDDED.replace(right, wrong, 1), file="mine.yaml")


def test_a_true_setting_of_one_configuration_is_no_number() -> None:
    lab = parse_profile(EMBEDDED, file="embedded.yaml")
    config = lab.configurations[0].model_copy(update={"settings": {"global_batch": True}})
    with pytest.raises(InputError, match=r"settings\.global_batch: expected a number"):
        effective_settings(lab.settings, config)


def test_numbers_in_yaml_notation_stay_numbers() -> None:
    """PyYAML reads `1e-4` as a text."""
    text = EMBEDDED.replace("learning_rate: 1.0e-4", "learning_rate: 3e-4", 1)
    assert parse_profile(text, file="mine.yaml").settings.learning_rate == 3e-4


def test_two_nodes_of_one_name() -> None:
    with pytest.raises(InputError, match=r"two nodes of one name: node-a"):
        parse_profile(EMBEDDED.replace("name: node-b", "name: node-a"), file="mine.yaml")


def test_key_given_twice() -> None:
    text = EMBEDDED + "\nshared: /elsewhere\n"
    with pytest.raises(InputError, match=f"mine\\.yaml:{len(text.splitlines())}: shared: key given twice"):
        parse_profile(text, file="mine.yaml")


@pytest.mark.parametrize(
    "text", ["", "- a\n- b\n", "nodes: [", "\tname: x", "name: !!python/object:os.system x"]
)
def test_texts_that_are_no_profile(text: str) -> None:
    with pytest.raises(InputError, match=r"mine\.yaml"):
        parse_profile(text, file="mine.yaml")


def test_missing_keys_are_all_told() -> None:
    with pytest.raises(InputError) as caught:
        parse_profile("name: x\ntitle: y\n", file="mine.yaml")
    message = caught.value.render()
    for key in ("nodes", "environment", "shared", "service", "model", "dataset", "settings", "matrix"):
        assert f"{key}: missing" in message


def test_profile_file_that_is_not_there(tmp_path: Path) -> None:
    from console.cli.files import read_lab

    with pytest.raises(InputError, match="no profile"):
        read_lab(str(tmp_path / "absent.yaml"))


@pytest.mark.parametrize(
    ("model", "title"),
    [
        ({"path": "{shared}/tiny-qwen2"}, "tiny-qwen2"),
        ({"path": "~/models/mine/"}, "mine"),
        ({"path": "Qwen/Qwen2.5-7B-Instruct"}, "Qwen/Qwen2.5-7B-Instruct"),
        ({"path": "/mnt/weights", "name": "Qwen2.5-7B"}, "Qwen2.5-7B"),
    ],
)
def test_what_people_call_the_model(model: dict[str, str], title: str) -> None:
    assert ModelSpec.model_validate(model).title == title
