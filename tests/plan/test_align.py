"""Nodes compared and judged before a window."""

from typing import Any

import pytest

from console.core.plan.align import CHECKS, Prerequisite, align, blocking, check_prerequisites

GIB = 2**30


def facts(**change: Any) -> dict[str, Any]:
    return {
        "architecture": "aarch64",
        "kernel": "6.17.0-1029-nvidia",
        "os_release": "Ubuntu 24.04",
        "dgx_release": "7.5.0",
        "gpu_name": "NVIDIA GB10",
        "gpu_count": 1,
        "driver": "580.173.02",
        "cuda": "13.0",
        "docker": "29.2.1",
        "image_digests": {"vllm:26.05": "sha256:aa"},
        "disk": {"checkpoints": {"path": "~/.lab", "free_bytes": 900 * GIB, "writable": True}},
        "fragmentation": {"blocks_32mib": 3000},
        "uptime_seconds": 86400.0,
        "ntp_synchronized": True,
        "reboot_required": False,
        "reboot_packages": [],
        "upgrade_running": False,
        "missing": {},
    } | change


def check(a: dict[str, Any], b: dict[str, Any], **more: Any) -> dict[tuple[str, str | None], Prerequisite]:
    found = check_prerequisites({"a": a, "b": b}, clock_skew_seconds=0.01, **more)
    return {(part.name, part.node): part for part in found}


def test_equal_values_are_merged_and_differences_shown_once() -> None:
    found = align({"a": facts(), "b": facts(kernel="6.17.0-1008-nvidia")})
    assert found.equal["driver"] == "580.173.02"
    assert found.equal["gpu_count"] == "1"
    (difference,) = found.differences
    assert (difference.fact, difference.values) == (
        "kernel",
        {"a": "6.17.0-1029-nvidia", "b": "6.17.0-1008-nvidia"},
    )
    assert not found.aligned


def test_an_image_that_one_node_lacks_is_a_difference() -> None:
    found = align({"a": facts(), "b": facts(image_digests={})})
    assert [difference.values for difference in found.differences] == [{"a": "sha256:aa", "b": None}]


def test_what_no_node_has_is_no_difference() -> None:
    found = align({"a": facts(driver=None, cuda=None), "b": facts(driver=None, cuda=None)})
    assert found.aligned
    assert found.unknown == ("driver", "cuda")


def test_fit_nodes_pass_every_check() -> None:
    found = check(facts(), facts(), needed_disk_bytes=100 * GIB)
    assert {part.passed for part in found.values()} == {True}
    assert {name for name, _ in found} == CHECKS.keys() - {"reachable"}
    assert all(part.remedy == "" for part in found.values())


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"driver": "595.1"}, ("alignment", None), "driver: a 580.173.02, b 595.1"),
        ({"driver": None}, ("alignment", None), "b unknown"),
        ({"ntp_synchronized": False}, ("clocks", "b"), "follows no time server"),
        ({"fragmentation": {"blocks_32mib": 0}}, ("fragmentation", "b"), "0 free blocks of 32 MiB"),
        (
            {"reboot_required": True, "reboot_packages": ["linux-image"]},
            ("reboot", "b"),
            "pending for linux-image",
        ),
        ({"upgrade_running": True}, ("upgrade", "b"), "being changed"),
        (
            {"disk": {"checkpoints": {"path": "~/.lab", "free_bytes": GIB, "writable": True}}},
            ("disk", "b"),
            "1.0 GiB free, 100.0 GiB needed",
        ),
        (
            {"disk": {"checkpoints": {"path": "~/.lab", "free_bytes": 900 * GIB, "writable": False}}},
            ("disk", "b"),
            "can't be written",
        ),
    ],
)
def test_what_is_not_fit_is_told_with_a_remedy(
    change: dict[str, Any], key: tuple[str, str | None], words: str
) -> None:
    found = check(facts(), facts(**change), needed_disk_bytes=100 * GIB)
    assert found[key].passed is False
    assert words in found[key].words
    assert found[key].remedy
    assert [part for part in found.values() if part.passed is False] == [found[key]]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"ntp_synchronized": None}, "clocks"),
        ({"fragmentation": {"blocks_32mib": None}}, "fragmentation"),
        ({"upgrade_running": None}, "upgrade"),
        ({"reboot_required": None}, "reboot"),
        ({"disk": {"checkpoints": {"path": "x", "free_bytes": None}}}, "disk"),
        ({"disk": {}}, "disk"),
    ],
)
def test_what_is_not_known_is_not_judged(change: dict[str, Any], name: str) -> None:
    found = check(facts(), facts(**change), needed_disk_bytes=1)
    assert found[(name, "b")].passed is None
    assert found[(name, "b")].words


def test_the_reason_for_not_knowing_is_the_nodes() -> None:
    missing = {"fragmentation.blocks_32mib": "this kernel keeps no free blocks above 4 MiB"}
    found = check(facts(), facts(fragmentation={"blocks_32mib": None}, missing=missing))
    assert "no free blocks above 4 MiB" in found[("fragmentation", "b")].words


def test_clock_skew_is_judged_only_between_nodes() -> None:
    late = check_prerequisites(
        {"a": facts(), "b": facts()}, clock_skew_seconds=1.25, clock_skew_uncertainty_seconds=0.002
    )
    between = next(part for part in late if part.name == "clocks" and part.node is None)
    assert (between.passed, "1.250 s apart (± 0.002 s)" in between.words) == (False, True)
    unmeasured = check_prerequisites({"a": facts(), "b": facts()})
    assert next(part for part in unmeasured if part.name == "clocks").passed is None
    alone = check_prerequisites({"a": facts()})
    assert [part.node for part in alone if part.name == "clocks"] == ["a"]


def test_only_what_the_policy_names_blocks() -> None:
    found = check_prerequisites({"a": facts(), "b": facts(reboot_required=True, upgrade_running=True)})
    assert [part.name for part in blocking(found, ["reboot", "disk"])] == ["reboot"]
