"""What /proc, nvidia-smi, docker and systemd say about a machine: parsers, and readers that use them.

A value that can't be read is None; `missing` then holds the reason. Sizes are bytes.
"""

import math
import os
import platform
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from console.nodes.probes.kit import Ran, bounded, read_text

GPU_FIELDS = (
    "name",
    "driver_version",
    "compute_cap",
    "pstate",
    "temperature.gpu",
    "power.draw",
    "clocks.sm",
    "clocks.max.sm",
    "utilization.gpu",
)
_MEMORY_FIELDS = {
    "total_bytes": "MemTotal",
    "available_bytes": "MemAvailable",
    "free_bytes": "MemFree",
    "cached_bytes": "Cached",
    "cma_free_bytes": "CmaFree",
    "swap_total_bytes": "SwapTotal",
    "swap_free_bytes": "SwapFree",
}
SMI_SECONDS = 10
BLOCK_BYTES = 32 << 20
"""Size of the free blocks by which fragmentation is told: large allocations of a device driver need them."""


def facts(missing: dict[str, str], images: Sequence[str] = ()) -> dict[str, Any]:
    """What the machine is and what state it is in; `images` are those whose digests matter (none: all)."""
    devices = gpus(missing)
    first = devices[0] if devices else {}
    return {
        "architecture": platform.machine(),
        "kernel": platform.release(),
        **releases(),
        "gpu_count": len(devices),
        "gpu_name": first.get("name"),
        "driver": first.get("driver"),
        "cuda": cuda_version(missing),
        **memory_now(missing),
        **clockwork(missing),
        **docker(missing, images),
        **pending_changes(missing),
        "gpus": devices,
    }


def number(text: str | None) -> float | None:
    """The number of an nvidia-smi field, without its unit; None for `[N/A]` and everything else."""
    found = re.match(r"\s*(-?\d+(?:\.\d+)?)(?:\s*[A-Za-z%]+)?\s*$", text or "")
    return float(found[1]) if found else None


def words(text: str | None) -> str | None:
    """A text field of nvidia-smi; None for the ways in which it says that there is none."""
    stripped = (text or "").strip()
    absent = stripped.strip("[]").lower() in ("", "n/a", "not supported", "unknown error", "gpu is lost")
    return None if absent else stripped


def parse_meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo as bytes (its kB are KiB); counts such as HugePages_Total stay counts."""
    values: dict[str, int] = {}
    for found in re.finditer(r"^(\w+(?:\(\w+\))?):\s+(\d+)( kB)?\s*$", text, re.MULTILINE):
        values[found[1]] = int(found[2]) * (1024 if found[3] else 1)
    return values


def memory(meminfo: dict[str, int]) -> dict[str, int | None]:
    """The memory figures of the console from a parsed /proc/meminfo."""
    return {name: meminfo.get(field) for name, field in _MEMORY_FIELDS.items()}


def parse_buddyinfo(text: str, page_bytes: int) -> dict[str, Any]:
    """Free blocks of zone Normal (of all nodes) from /proc/buddyinfo.

    `blocks_32mib` counts larger blocks as what they hold. It is None where the kernel's largest block is
    below 32 MiB: then `largest_block_bytes` and `free_in_largest_bytes` are all that can be told.
    """
    rows = [
        line.split("Normal", 1)[1].split() for line in text.splitlines() if re.search(r"zone\s+Normal", line)
    ]
    counts = [[int(part) for part in row] for row in rows if row and all(part.isdigit() for part in row)]
    if not counts:
        return {"blocks_32mib": None, "largest_block_bytes": None, "free_in_largest_bytes": None}
    orders = min(len(row) for row in counts)
    per_order = [sum(row[order] for row in counts) for order in range(orders)]
    largest = page_bytes << (orders - 1)
    needed = int(math.log2(BLOCK_BYTES // page_bytes))
    blocks = sum(count << (order - needed) for order, count in enumerate(per_order) if order >= needed)
    return {
        "blocks_32mib": blocks if orders > needed else None,
        "largest_block_bytes": largest,
        "free_in_largest_bytes": per_order[-1] * largest,
    }


def parse_assignments(text: str) -> dict[str, str]:
    """KEY="value" lines, as in os-release and dgx-release; the last one of a key counts."""
    return {
        found[1]: found[2].strip().strip("\"'")
        for found in re.finditer(r"^\s*([A-Z_][A-Z0-9_]*)=(.*)$", text, re.MULTILINE)
    }


def parse_gpu_rows(text: str, fields: Sequence[str]) -> list[dict[str, str | None]]:
    """Rows of `nvidia-smi --query-gpu=… --format=csv,noheader`; lines of another shape are left out."""
    rows = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == len(fields):
            rows.append({field: words(part) for field, part in zip(fields, parts, strict=True)})
    return rows


def parse_cuda_version(table: str) -> str | None:
    """The CUDA version that the driver offers, from the head of nvidia-smi's table."""
    found = re.search(r"CUDA(?: UMD)? Version\s*:\s*(\d+(?:\.\d+)*)", table)
    return found[1] if found else None


def smi(*args: str) -> Ran:
    """nvidia-smi, bounded: with a wedged driver it blocks for minutes."""
    return bounded(["timeout", "-k", "2", str(SMI_SECONDS), "nvidia-smi", *args], SMI_SECONDS + 4)


def gpus(missing: dict[str, str]) -> list[dict[str, Any]]:
    """Every GPU that the driver lists; none without an nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        missing["gpus"] = "no nvidia-smi on this machine"
        return []
    ran = smi(f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader")
    rows = parse_gpu_rows(ran.out, GPU_FIELDS)
    if not ran.ok or not rows:
        missing["gpus"] = ran.error if not ran.ok else f"unexpected answer: {ran.out.strip()[:400]}"
        return []
    return [
        {
            "name": row["name"],
            "driver": row["driver_version"],
            "compute_capability": row["compute_cap"],
            "pstate": row["pstate"],
            "temperature_celsius": number(row["temperature.gpu"]),
            "power_watts": number(row["power.draw"]),
            "sm_clock_mhz": number(row["clocks.sm"]),
            "sm_clock_max_mhz": number(row["clocks.max.sm"]),
            "utilization_percent": number(row["utilization.gpu"]),
        }
        for row in rows
    ]


def cuda_version(missing: dict[str, str]) -> str | None:
    """The driver's CUDA version; not asked for when `gpus` found that the driver does not answer."""
    if "gpus" in missing:
        missing["cuda"] = missing["gpus"]
        return None
    ran = smi()
    version = parse_cuda_version(ran.out)
    if version is None:
        missing["cuda"] = ran.error if not ran.ok else "nvidia-smi names no CUDA version"
    return version


def releases() -> dict[str, str | None]:
    """Name of the operating system, and of the DGX release: there the last OTA version counts."""
    system = parse_assignments(read_text("/etc/os-release") or "")
    dgx = parse_assignments(read_text("/etc/dgx-release") or "")
    return {
        "os_release": system.get("PRETTY_NAME"),
        "dgx_release": dgx.get("DGX_OTA_VERSION") or dgx.get("DGX_SWBUILD_VERSION"),
        "dgx_platform": dgx.get("DGX_PLATFORM") or dgx.get("DGX_NAME"),
    }


def clockwork(missing: dict[str, str]) -> dict[str, Any]:
    """Boot id, uptime, load and whether the clock is kept by NTP."""
    uptime = (read_text("/proc/uptime") or "").split()
    synchronized = ntp_synchronized(missing)
    return {
        "boot_id": (read_text("/proc/sys/kernel/random/boot_id") or "").strip() or None,
        "uptime_seconds": float(uptime[0]) if uptime else None,
        "load_1min": os.getloadavg()[0],
        "cpu_count": os.cpu_count(),
        "ntp_synchronized": synchronized,
    }


def ntp_synchronized(missing: dict[str, str]) -> bool | None:
    """Whether systemd or chrony says that the clock follows a server; None when neither can tell."""
    said = bounded(["timedatectl", "show", "-p", "NTPSynchronized", "--value"], 5)
    if said.ok and said.out.strip() in ("yes", "no"):
        return said.out.strip() == "yes"
    chrony = bounded(["chronyc", "-c", "tracking"], 5)
    if chrony.ok:
        leap = chrony.out.strip().rsplit(",", 1)[-1]
        return leap not in ("Not synchronised", "")
    missing["ntp_synchronized"] = f"timedatectl: {said.error}; chronyc: {chrony.error}"
    return None


def memory_now(missing: dict[str, str]) -> dict[str, Any]:
    """/proc/meminfo now, with how fragmented free memory is."""
    meminfo = parse_meminfo(read_text("/proc/meminfo") or "")
    if not meminfo:
        missing["memory"] = "/proc/meminfo can't be read"
    buddies = read_text("/proc/buddyinfo")
    fragmentation = parse_buddyinfo(buddies or "", os.sysconf("SC_PAGE_SIZE"))
    if fragmentation["blocks_32mib"] is None:
        largest = fragmentation["largest_block_bytes"]
        missing["fragmentation.blocks_32mib"] = (
            "/proc/buddyinfo has no readable zone Normal"
            if largest is None
            else f"this kernel keeps no free blocks above {largest >> 20} MiB"
        )
    return {"memory": memory(meminfo), "fragmentation": fragmentation}


def docker(missing: dict[str, str], images: Sequence[str] = ()) -> dict[str, Any]:
    """The docker engine's version and the digests of its images (of `images`, or of all that have one)."""
    if shutil.which("docker") is None:
        missing["docker"] = "no docker on this machine"
        return {"docker": None, "image_digests": {}}
    version = bounded(["docker", "version", "--format", "{{.Server.Version}}"], 10)
    if not version.ok:
        missing["docker"] = version.error
        return {"docker": None, "image_digests": {}}
    listed = bounded(
        ["docker", "images", "--digests", "--format", "{{.Repository}}:{{.Tag}} {{.Digest}}"], 15
    )
    digests: dict[str, str] = {}
    for line in listed.out.splitlines():
        name, _, digest = line.partition(" ")
        if digest.startswith("sha256:") and (not images or name in images):
            digests[name] = digest
    if not listed.ok:
        missing["image_digests"] = listed.error
    return {"docker": version.out.strip() or None, "image_digests": digests}


def pending_changes(missing: dict[str, str]) -> dict[str, Any]:
    """Whether the machine waits for a reboot, and whether an unattended upgrade is at work."""
    packages = read_text("/var/run/reboot-required.pkgs") or ""
    return {
        "reboot_required": Path("/var/run/reboot-required").exists(),
        "reboot_packages": sorted(set(packages.split())),
        "upgrade_running": upgrade_running(missing),
    }


def upgrade_running(missing: dict[str, str]) -> bool | None:
    """Whether a package manager is at work: one that runs in the window can change the driver."""
    names = ("unattended-upgr", "apt-get", "apt", "dpkg", "aptd", "packagekitd")
    try:
        pids = [entry.name for entry in os.scandir("/proc") if entry.name.isdigit()]
    except OSError as error:
        missing["upgrade_running"] = str(error)
        return None
    for pid in pids:
        name = (read_text(f"/proc/{pid}/comm") or "").strip()
        if name not in names:
            continue
        # The service that waits for a shutdown always runs and upgrades nothing.
        if "--wait-for-signal" not in (read_text(f"/proc/{pid}/cmdline") or ""):
            return True
    return False
