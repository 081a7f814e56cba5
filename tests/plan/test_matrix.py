"""The guard lets one variable differ, and no more."""

import pytest

from console.core.errors import InputError
from console.core.plan.matrix import (
    ALLOWED,
    Configuration,
    Matrix,
    Settings,
    effective_settings,
    guard,
    hypothesis_hash,
)

FIXED = Settings(epochs=1)
BASE = Configuration(id="E0", title="baseline", mode="megatron", varies="nothing")


def matrix(**fields: object) -> Matrix:
    other = Configuration.model_validate({"id": "E1", "title": "other", "mode": "megatron"} | fields)
    return Matrix(configurations=[BASE, other])


@pytest.mark.parametrize(
    "fields",
    [
        {"varies": "data parallel", "nodes": 2},
        {"varies": "tensor parallel", "nodes": 2, "tensor_parallel": 2, "sequence_parallel": True},
        {"varies": "pipeline parallel", "nodes": 2, "pipeline_parallel": 2},
        {"varies": "recompute", "settings": {"recompute": "none"}},
        {"varies": "accumulation", "settings": {"global_batch": 8}},
    ],
)
def test_declared_variable_passes(fields: dict[str, object]) -> None:
    guard(matrix(**fields), FIXED)


@pytest.mark.parametrize(
    ("fields", "culprit"),
    [
        ({"varies": "data parallel", "nodes": 2, "settings": {"max_length": 4096}}, "max_length"),
        ({"varies": "data parallel", "nodes": 2, "settings": {"seed": 1}}, "seed"),
        ({"varies": "recompute", "settings": {"recompute": "none"}, "nodes": 2}, "nodes"),
        ({"varies": "nothing", "tensor_parallel": 2}, "tensor_parallel"),
        ({"varies": "data parallel", "nodes": 2, "mode": "swift"}, "mode"),
        ({"varies": "data parallel", "nodes": 2, "env": {"NCCL_IB_DISABLE": "1"}}, "env"),
    ],
)
def test_second_difference_is_refused_by_name(fields: dict[str, object], culprit: str) -> None:
    with pytest.raises(InputError) as caught:
        guard(matrix(**fields), FIXED)
    assert f"E1 differs from E0 in {culprit}" in caught.value.what


def test_every_variable_is_known_to_the_guard() -> None:
    fields = set(Configuration.model_fields) | set(Settings.model_fields)
    assert all(allowed <= fields for allowed in ALLOWED.values())


def test_override_of_an_unknown_setting() -> None:
    config = Configuration(
        id="E1", title="x", mode="swift", varies="recompute", settings={"recompte": "none"}
    )
    with pytest.raises(InputError, match=r"configuration E1: settings\.recompte"):
        effective_settings(FIXED, config)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "TP1"),
        ({"nodes": 2}, "DP2"),
        ({"nodes": 2, "tensor_parallel": 2, "sequence_parallel": True}, "TP2+SP"),
        ({"nodes": 2, "pipeline_parallel": 2}, "PP2"),
        ({"nodes": 4, "tensor_parallel": 2}, "TP2 DP2"),
    ],
)
def test_parallel_sizes_in_the_sheets_words(fields: dict[str, object], words: str) -> None:
    config = Configuration.model_validate(
        {"id": "X", "title": "x", "mode": "swift", "varies": "nothing"} | fields
    )
    assert config.parallel == words


def test_hash_depends_on_every_text_and_not_on_order() -> None:
    texts = {"E0": "a", "E1": "b"}
    assert hypothesis_hash(texts) == hypothesis_hash({"E1": "b", "E0": "a"})
    assert hypothesis_hash(texts) != hypothesis_hash({"E0": "a", "E1": "c"})
