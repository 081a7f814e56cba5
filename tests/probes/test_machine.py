"""Parsers of what machines print, and the probes that stand on them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from console.nodes.probes import machine

from .conftest import Ask

MEMINFO = """\
MemTotal:       127535000 kB
MemFree:         2400000 kB
MemAvailable:   41700000 kB
Buffers:           10000 kB
Cached:         39000000 kB
SwapTotal:      16777212 kB
SwapFree:       16000000 kB
CmaTotal:        2097152 kB
CmaFree:         1900000 kB
HugePages_Total:       3
"""
TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
| N/A   36C    P8              3W /  N/A  | Not Supported          |      0%      Default |
"""
ROW = "NVIDIA GB10, 580.95.05, 12.1, P8, 36, 3.42 W, [N/A], 3003 MHz, 0 %"
DGX = """\
DGX_NAME="DGX Spark"
DGX_SWBUILD_VERSION="7.2.3"
DGX_PLATFORM="GX10"

DGX_OTA_VERSION="7.4.0"
DGX_OTA_DATE="Mon Feb  2 10:00:00 CET 2026"

DGX_OTA_VERSION="7.6.0"
DGX_OTA_DATE="mer. 16 sept. 2026 10:00:00 CEST"
"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2411 MHz", 2411.0),
        ("10.58 W", 10.58),
        ("0 %", 0.0),
        ("36", 36.0),
        ("[N/A]", None),
        ("N/A", None),
        ("Not Supported", None),
        ("", None),
        (None, None),
        ("12.1.3", None),
    ],
)
def test_a_number_is_a_number_or_nothing(text: str | None, value: float | None) -> None:
    assert machine.number(text) == value


def test_meminfo_is_bytes_and_counts_stay_counts() -> None:
    values = machine.parse_meminfo(MEMINFO)
    assert values["MemTotal"] == 127_535_000 * 1024
    assert values["HugePages_Total"] == 3
    figures = machine.memory(values)
    assert figures["available_bytes"] == 41_700_000 * 1024
    assert figures["cma_free_bytes"] == 1_900_000 * 1024


def test_memory_that_is_not_stated_is_none() -> None:
    assert machine.memory(machine.parse_meminfo("MemTotal: 10 kB\n")) == {
        "total_bytes": 10240,
        "available_bytes": None,
        "free_bytes": None,
        "cached_bytes": None,
        "cma_free_bytes": None,
        "swap_total_bytes": None,
        "swap_free_bytes": None,
    }


def test_free_blocks_of_zone_normal_are_counted_in_32_mib() -> None:
    orders = [9] * 13 + [5, 2]
    text = (
        "Node 0, zone      DMA      1      1\n"
        f"Node 0, zone   Normal  {'  '.join(map(str, orders))}\n"
        f"Node 1, zone   Normal  {'  '.join(map(str, orders))}\n"
    )
    found = machine.parse_buddyinfo(text, 4096)
    assert found["blocks_32mib"] == 2 * (5 + 2 * 2)
    assert found["largest_block_bytes"] == 64 << 20


def test_a_kernel_without_large_blocks_can_not_tell_them() -> None:
    found = machine.parse_buddyinfo("Node 0, zone   Normal " + " 3" * 11 + "\n", 4096)
    assert found == {
        "blocks_32mib": None,
        "largest_block_bytes": 4 << 20,
        "free_in_largest_bytes": 3 * (4 << 20),
    }
    assert machine.parse_buddyinfo("Node 0, zone DMA32 1 2\n", 4096)["largest_block_bytes"] is None


def test_the_last_ota_version_counts() -> None:
    found = machine.parse_assignments(DGX)
    assert (found["DGX_OTA_VERSION"], found["DGX_SWBUILD_VERSION"]) == ("7.6.0", "7.2.3")


def test_rows_of_another_shape_are_left_out() -> None:
    rows = machine.parse_gpu_rows(f"{ROW}\nNVIDIA-SMI has failed\n", machine.GPU_FIELDS)
    assert len(rows) == 1
    assert rows[0]["name"] == "NVIDIA GB10"
    assert rows[0]["clocks.sm"] is None


def test_the_cuda_version_is_in_the_head_of_the_table() -> None:
    assert machine.parse_cuda_version(TABLE) == "13.0"
    assert machine.parse_cuda_version("NVIDIA-SMI has failed") is None


def test_baseline_of_this_machine(ask: Ask) -> None:
    answer = ask("baseline")
    meminfo = machine.parse_meminfo(Path("/proc/meminfo").read_text())
    assert answer["ok"] is True
    assert answer["memory"]["total_bytes"] == meminfo["MemTotal"]
    assert answer["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert answer["uptime_seconds"] > 0
    assert answer["cpu_count"] >= 1
    assert answer["reboot_required"] == Path("/var/run/reboot-required").exists()


def test_baseline_of_a_gb10_has_no_clock_where_the_driver_gives_none(
    ask: Ask, programs: Callable[[str, str], dict[str, str]]
) -> None:
    script = f"""case "$*" in *query-gpu*) echo '{ROW}';; *) cat <<'END'\n{TABLE}END\n;; esac\n"""
    answer = ask("baseline", env=programs("nvidia-smi", script))
    assert (answer["gpu_count"], answer["gpu_name"]) == (1, "NVIDIA GB10")
    assert (answer["driver"], answer["cuda"]) == ("580.95.05", "13.0")
    assert answer["sm_clock_mhz"] is None
    assert answer["sm_clock_max_mhz"] == 3003
    assert answer["gpus"][0]["power_watts"] == 3.42


def test_a_driver_that_fails_keeps_its_raw_text(
    ask: Ask, programs: Callable[[str, str], dict[str, str]]
) -> None:
    answer = ask("baseline", env=programs("nvidia-smi", "echo 'Driver/library version mismatch'; exit 18\n"))
    assert answer["gpu_count"] == 0
    assert "version mismatch" in answer["missing"]["gpus"]
    assert answer["missing"]["cuda"] == answer["missing"]["gpus"]


def test_a_driver_that_hangs_is_given_up(
    programs: Callable[[str, str], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "SMI_SECONDS", 1)
    monkeypatch.setenv("PATH", programs("nvidia-smi", "exec sleep 300\n")["PATH"])
    missing: dict[str, str] = {}
    assert machine.gpus(missing) == []
    assert "no answer within 1 s" in missing["gpus"]


def test_docker_digests_are_listed_by_name(ask: Ask, programs: Callable[[str, str], dict[str, str]]) -> None:
    digest = "sha256:" + "ab" * 32
    env = programs(
        "docker",
        f"case $1 in version) echo 28.2.2;; images) echo 'lab/a:1 {digest}'; echo 'b:2 <none>';; esac\n",
    )
    answer = ask("prerequisites", {"images": ["lab/a:1"]}, env=env)
    assert answer["docker"] == "28.2.2"
    assert answer["image_digests"] == {"lab/a:1": digest}


def test_an_engine_that_does_not_answer_is_told(
    ask: Ask, programs: Callable[[str, str], dict[str, str]]
) -> None:
    answer = ask("baseline", env=programs("docker", "echo 'permission denied' >&2; exit 1\n"))
    assert answer["docker"] is None
    assert answer["missing"]["docker"] == "permission denied"


@pytest.mark.parametrize(("said", "state"), [("yes", True), ("no", False)])
def test_the_time_server_state_is_systemds(
    ask: Ask, programs: Callable[[str, str], dict[str, str]], said: str, state: bool
) -> None:
    assert ask("baseline", env=programs("timedatectl", f"echo {said}\n"))["ntp_synchronized"] is state


def test_room_is_measured_at_the_nearest_folder_that_exists(ask: Ask, tmp_path: Path) -> None:
    answer = ask("prerequisites", {"paths": {"checkpoints": str(tmp_path / "not" / "yet")}})
    room = answer["disk"]["checkpoints"]
    assert room["measured_at"] == str(tmp_path.resolve())
    assert 0 < room["free_bytes"] <= room["total_bytes"]
    assert room["writable"] is True
