"""Memory of the node, from /proc. Sizes in bytes; a missing figure is None."""

from __future__ import annotations

import os

from .answers import Doc

# Every kernel category a page of system memory can be booked under. On a unified-memory GPU the driver's
# pages are in none of them, so what is left of MemTotal is what the driver holds.
_CATEGORIES = (
    "MemFree", "Buffers", "Cached", "SwapCached", "AnonPages", "KReclaimable", "SUnreclaim", "KernelStack",
    "PageTables", "SecPageTables", "Percpu",
)  # fmt: skip
_ESSENTIAL = ("MemTotal", "MemFree", "Cached", "AnonPages", "SUnreclaim")


def parse_meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo as bytes by name (counts of huge pages stay counts)."""
    values: dict[str, int] = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and words and words[0].isdigit():
            values[name.strip()] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    return values


def driver_held(values: dict[str, int]) -> int | None:
    """MemTotal less every category; None when too few categories are listed."""
    if any(name not in values for name in _ESSENTIAL):
        return None
    return max(0, values["MemTotal"] - sum(values.get(name, 0) for name in _CATEGORIES))


def available(values: dict[str, int]) -> int:
    """MemAvailable; where huge pages are reserved it means nothing, so their free pages count instead."""
    if values.get("HugePages_Total", 0) > 0 and values.get("Hugepagesize", 0) > 0:
        return values.get("HugePages_Free", 0) * values["Hugepagesize"]
    return values.get("MemAvailable", values.get("MemFree", 0))


def parse_pressure(text: str) -> dict[str, float]:
    """`avg10` of the some and full lines of /proc/pressure/memory, in percent."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        words = line.split()
        for word in words[1:]:
            if word.startswith("avg10="):
                found[words[0]] = float(word[6:])
    return found


def parse_compact_stall(text: str) -> int | None:
    _, found, rest = text.partition("compact_stall ")
    return int(rest[: rest.index("\n")]) if found else None


def read_text(path: str) -> str:
    """A file of /proc or a small one; empty when it can't be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        parts: list[bytes] = []
        while True:
            part = os.read(handle, 65536)
            if not part:
                return b"".join(parts).decode("utf-8", "replace")
            parts.append(part)
    except OSError:
        return ""
    finally:
        os.close(handle)


def reading() -> Doc:
    """One memory reading."""
    values = parse_meminfo(read_text("/proc/meminfo"))
    pressure = parse_pressure(read_text("/proc/pressure/memory"))
    return {
        "total_bytes": values.get("MemTotal", 0),
        "available_bytes": available(values),
        "free_bytes": values.get("MemFree", 0),
        "cached_bytes": values.get("Cached"),
        "swap_free_bytes": values.get("SwapFree"),
        "swap_total_bytes": values.get("SwapTotal"),
        "cma_free_bytes": values.get("CmaFree"),
        "driver_held_bytes": driver_held(values),
        "pressure_some_avg10": pressure.get("some"),
        "pressure_full_avg10": pressure.get("full"),
    }


class AvailableMeter:
    """MemAvailable through one file kept open: one system call per reading."""

    def __init__(self) -> None:
        self._file = os.open("/proc/meminfo", os.O_RDONLY | os.O_CLOEXEC)
        self._huge_pages = parse_meminfo(read_text("/proc/meminfo")).get("HugePages_Total", 0) > 0

    def read(self) -> int:
        text = os.pread(self._file, 8192, 0)
        if self._huge_pages:
            return available(parse_meminfo(text.decode("ascii", "replace")))
        start = text.index(b"MemAvailable:") + 13
        return int(text[start : text.index(b"kB", start)]) * 1024
