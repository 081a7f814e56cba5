"""What nodes print, read: texts are modelled on recorded ones of GB10 machines."""

import os
from pathlib import Path

import pytest

from console.nodes.agent.program import gpu, masking, memory, processes, protection, samples, web

GIB = 1 << 30
AFTER_STOP_POOL = """\
MemTotal:       127600816 kB
MemFree:         3139656 kB
MemAvailable:   40174336 kB
Buffers:           13252 kB
Cached:         37694160 kB
AnonPages:       1712244 kB
KReclaimable:     477572 kB
SUnreclaim:       520360 kB
Percpu:            27520 kB
CmaFree:           69320 kB
HugePages_Total:       0
"""
IDLE = """\
MemTotal:       127535084 kB
MemFree:        102000000 kB
MemAvailable:   120000000 kB
Buffers:           10000 kB
Cached:         17000000 kB
SwapCached:        50000 kB
AnonPages:       4000000 kB
KReclaimable:    1500000 kB
SUnreclaim:      1400000 kB
KernelStack:       40000 kB
PageTables:       100000 kB
SecPageTables:         0 kB
Percpu:            20000 kB
"""


@pytest.mark.parametrize(("text", "gibibytes"), [(IDLE, 1.35), (AFTER_STOP_POOL, 80.1)])
def test_what_no_category_holds_is_the_drivers(text: str, gibibytes: float) -> None:
    held = memory.driver_held(memory.parse_meminfo(text))
    assert held is not None
    assert held / GIB == pytest.approx(gibibytes, abs=0.05)


def test_a_partial_meminfo_gives_no_driver_figure() -> None:
    values = memory.parse_meminfo("MemTotal: 127506432 kB\nMemFree: 9437184 kB\nCmaFree: 8912896 kB\n")
    assert memory.driver_held(values) is None
    assert values["CmaFree"] == 8912896 * 1024


def test_with_huge_pages_available_memory_is_their_free_part() -> None:
    values = memory.parse_meminfo(
        "MemAvailable: 1000 kB\nHugePages_Total: 10\nHugePages_Free: 4\nHugepagesize: 2048 kB\n"
    )
    assert memory.available(values) == 4 * 2048 * 1024


def test_the_meter_agrees_with_the_whole_reading() -> None:
    whole = memory.parse_meminfo(memory.read_text("/proc/meminfo"))["MemAvailable"]
    assert memory.AvailableMeter().read() == pytest.approx(whole, rel=0.2)


def test_pressure_and_compaction() -> None:
    text = "some avg10=1.25 avg60=0.10 avg300=0.00 total=12\nfull avg10=0.75 avg60=0.00 avg300=0.00 total=3\n"
    assert memory.parse_pressure(text) == {"some": 1.25, "full": 0.75}
    assert memory.parse_compact_stall("pgalloc 3\ncompact_stall 41\n") == 41
    assert memory.parse_compact_stall("") is None


def test_a_gpu_row_with_absent_fields() -> None:
    full = gpu.parse_row("0 %, 10.58 W, 2411 MHz, 46")
    assert [full[name] for name in gpu.NAMES] == [0.0, 10.58, 2411.0, 46.0]
    assert full["gpu_missing"] is None
    partial = gpu.parse_row("2 %, N/A, [N/A], 43")
    assert partial["gpu_power_watts"] is None
    assert partial["gpu_temperature_celsius"] == 43
    assert "gpu_sm_clock_mhz" in partial["gpu_missing"]
    broken = gpu.parse_row("NVIDIA-SMI has failed because it couldn't communicate with the driver")
    assert all(broken[name] is None for name in gpu.NAMES)
    assert "has failed" in broken["gpu_missing"]


def test_compute_apps_with_commas_and_without_figures() -> None:
    text = (
        "4910, VLLM::EngineCore, 12763 MiB\n777, python, 512\n12, x, [N/A]\n"
        "13, a, b, c, 7\nNo running processes found\n"
    )
    assert gpu.parse_compute_apps(text) == {4910: 12763 << 20, 777: 512 << 20, 12: None, 13: 7 << 20}


def test_counters_are_summed_over_labels_and_absent_ones_are_none() -> None:
    text = (
        "# HELP vllm:num_requests_running running\n"
        'vllm:num_requests_running{engine="0",model_name="m"} 2.0\n'
        'vllm:num_requests_running{engine="1",model_name="m"} 1.0\n'
        'vllm:generation_tokens_total{engine="0"} 1.5e+03\n'
    )
    counters = web.parse_counters(text)
    assert counters == {"running": 3.0, "waiting": None, "generated_tokens_total": 1500.0}
    assert web.in_flight(counters) == 3
    assert web.in_flight(web.parse_counters("other 1\n")) is None


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["vllm", "serve", "m", "--api-key", "abc123"], ["vllm", "serve", "m", "--api-key", "•••"]),
        (["--api-key=abc123", "--max-num-batched-tokens", "4096"], None),
        (["HF_TOKEN=hf_x", "PATH=/bin"], ["HF_TOKEN=•••", "PATH=/bin"]),
        (["https://me:pass@host/x"], ["https://•••@host/x"]),
        (["sh", "-c", "vllm serve m --api-key abc"], ["sh", "-c", "vllm serve m --api-key •••"]),
        (["--admin-token", "abc", "--max-token", "9"], ["--admin-token", "•••", "--max-token", "9"]),
    ],
)
def test_secrets_in_command_lines_are_hidden(words: list[str], shown: list[str] | None) -> None:
    expected = shown or ["--api-key=•••", "--max-num-batched-tokens", "4096"]
    assert masking.masked(words) == expected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("docker run -e VLLM_API_KEY=abc --name vllm", "docker run -e VLLM_API_KEY=••• --name vllm"),
        ("env HF_TOKEN='a b' vllm serve m", "env HF_TOKEN=••• vllm serve m"),
        ('bash -c "vllm serve --api-key=abc --port 1"', 'bash -c "vllm serve --api-key=••• --port 1"'),
        ("--api-key 'a b' --port 1", "--api-key ••• --port 1"),
        ("--api-key \\\n  abc --port 1", "--api-key \\\n  ••• --port 1"),
        ('["--api-key", "abc", "m"]', '["--api-key", •••, "m"]'),
        ("-H 'Authorization: Bearer abcdefgh'", "-H 'Authorization: •••'"),
        ("--max-num-batched-tokens 4096 max_tokens=4096", None),
    ],
)
def test_secrets_in_a_command_of_one_piece_are_hidden(text: str, shown: str | None) -> None:
    assert masking.mask_text(text) == (shown or text)
    assert masking.mask_document({"Cmd": [text]}) == {"Cmd": [shown or text]}


def test_secrets_in_log_lines_and_documents_are_hidden() -> None:
    token = "hf_" + "a1" * 17
    assert masking.mask_text(f"using {token} now") == "using ••• now"
    assert masking.mask_text("api_key='s3cr3tvalue' x") == "api_key='•••' x"
    assert masking.mask_text("args: {'api_key': ['abcd1234'], 'port': 8000}") == (
        "args: {'api_key': ['•••'], 'port': 8000}"
    )
    document = {"Config": {"Env": ["API_KEY=1"], "Labels": {"token": "t"}}, "Id": "abc"}
    assert masking.mask_document(document) == {
        "Config": {"Env": ["API_KEY=•••"], "Labels": {"token": "•••"}},
        "Id": "abc",
    }


def test_a_run_folders_pid_file() -> None:
    assert processes.parse_pid_file("pid=12\nstart_ticks=99\nboot_id=ab-c\n") == {
        "pid": 12,
        "start_ticks": 99,
    }
    assert processes.parse_pid_file("nonsense") == {}


@pytest.mark.skipif(os.getuid() == 0, reason="logind spares root")
def test_logind_may_end_the_guard_as_a_user() -> None:
    assert "enable-linger" in protection.logout_risk(["KillUserProcesses=yes"], lingers=False)


def test_logind_spares_the_guard_otherwise() -> None:
    assert protection.logout_risk(["KillUserProcesses=yes"], lingers=True) == ""
    assert protection.logout_risk(["#KillUserProcesses=yes\n", "KillUserProcesses=no"], lingers=False) == ""


def test_samples_are_read_from_the_end_of_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "samples.jsonl")
    file = samples.SampleFile(path, 1 << 20)
    for _ in range(4000):
        file.append({"padding": "x" * 150})
    assert file.number == 4000
    assert [one["n"] for one in samples.since(path, 3998, 100)] == [3999, 4000]
    everything = [one["n"] for one in samples.since(path, 0, 10_000)]
    assert everything == list(range(everything[0], 4001))
    assert [one["n"] for one in samples.since(path, 4000, 100)] == []
    across = [one["n"] for one in samples.since(path, everything[0] + 10, 10_000)]
    assert across == everything[11:]
