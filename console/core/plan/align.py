"""Are the nodes alike, and fit for the window: facts of `probes/prerequisites` compared and judged.

Equal values are merged, differences are shown once. Judgements are warnings with a remedy; which of them
refuse the start is the profile's policy (`prerequisite_blocks`, by name).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from console.core.plan.part import Part

ALIGNED: Mapping[str, str] = {
    "architecture": "architecture",
    "kernel": "kernel",
    "os_release": "operating system",
    "dgx_release": "DGX release",
    "gpu_name": "GPU",
    "gpu_count": "number of GPUs",
    "driver": "driver",
    "cuda": "CUDA",
    "docker": "docker",
}
"""Facts that must agree, and what they are called; image digests are added one by one."""

CHECKS: Mapping[str, str] = {
    "alignment": "all nodes have the same kernel, driver, CUDA, docker and images",
    "clocks": "clocks agree and follow a time server",
    "disk": "there is room for checkpoints",
    "fragmentation": "free memory is in large blocks",
    "reboot": "no node waits for a reboot",
    "upgrade": "no package upgrade is at work",
    "reachable": "nodes reach each other on the rendezvous port",
}
"""Names of the checks, as `prerequisite_blocks` takes them."""

MIN_FREE_BLOCKS = 200
"""Free 32 MiB blocks below which a large load crawls or fails on GB10 (preflight of sparkring PR 202)."""


class Difference(Part):
    """One fact in which nodes differ; None where a node could not tell."""

    fact: str
    words: str
    values: dict[str, str | None]


class Alignment(Part):
    """Facts of several nodes, put together."""

    equal: dict[str, str]
    differences: tuple[Difference, ...]
    unknown: tuple[str, ...]
    """Facts that no node has, such as a driver where there is no GPU."""

    @property
    def aligned(self) -> bool:
        return not self.differences


class Prerequisite(Part):
    """One judgement. `passed` None: it could not be judged, and `words` say why."""

    name: str
    node: str | None
    passed: bool | None
    words: str
    remedy: str = ""


def align(facts: Mapping[str, Mapping[str, Any]]) -> Alignment:
    """Compare the nodes' facts (node -> answer of the probe)."""
    columns: dict[str, tuple[str, dict[str, str | None]]] = {
        fact: (words, {node: _text(known.get(fact)) for node, known in facts.items()})
        for fact, words in ALIGNED.items()
    }
    digests = {node: known.get("image_digests") or {} for node, known in facts.items()}
    for image in sorted({image for held in digests.values() for image in held}):
        columns[f"image {image}"] = (
            f"image {image}",
            {node: _text(held.get(image)) for node, held in digests.items()},
        )
    equal: dict[str, str] = {}
    differences: list[Difference] = []
    unknown: list[str] = []
    for fact, (words, values) in columns.items():
        seen = set(values.values())
        if seen <= {None}:
            unknown.append(fact)
        elif len(seen) == 1:
            equal[fact] = next(value for value in values.values() if value is not None)
        else:
            differences.append(Difference(fact=fact, words=words, values=values))
    return Alignment(equal=equal, differences=tuple(differences), unknown=tuple(unknown))


def check_prerequisites(
    facts: Mapping[str, Mapping[str, Any]],
    *,
    needed_disk_bytes: int | None = None,
    clock_skew_seconds: float | None = None,
    clock_skew_uncertainty_seconds: float | None = None,
    max_clock_skew_seconds: float = 0.5,
    min_free_blocks: int = MIN_FREE_BLOCKS,
) -> tuple[Prerequisite, ...]:
    """Judge the facts of all nodes; every check of `CHECKS` but `reachable` gives at least one line."""
    found = [
        *_alignment(align(facts)),
        *_skew(len(facts), clock_skew_seconds, clock_skew_uncertainty_seconds, max_clock_skew_seconds),
    ]
    for node, known in facts.items():
        found += [
            _ntp(node, known),
            *_disk(node, known, needed_disk_bytes),
            _fragmentation(node, known, min_free_blocks),
            _reboot(node, known),
            _upgrade(node, known),
        ]
    return tuple(found)


def _alignment(alignment: Alignment) -> list[Prerequisite]:
    if alignment.aligned:
        same = ", ".join(f"{ALIGNED.get(fact, fact)} {value}" for fact, value in alignment.equal.items())
        return [
            Prerequisite(name="alignment", node=None, passed=True, words=f"the same on all nodes: {same}")
        ]
    return [
        Prerequisite(
            name="alignment",
            node=None,
            passed=False,
            words=f"{difference.words}: "
            + ", ".join(f"{node} {value or 'unknown'}" for node, value in difference.values.items()),
            remedy=_alignment_remedy(difference.fact),
        )
        for difference in alignment.differences
    ]


def _alignment_remedy(fact: str) -> str:
    if fact.startswith("image "):
        return "pull the same digest on both nodes"
    return {
        "kernel": "bring both nodes to the same release, worker first, and reboot them before the window",
        "driver": "bring both nodes to the same driver and reboot them before the window",
        "architecture": "these machines can't share one environment; correct the profile's nodes",
        "gpu_name": "correct the profile's nodes; figures of unlike devices can't be compared",
        "gpu_count": "run nvidia-smi on both nodes; a GPU that is missing needs a reboot",
    }.get(fact, "bring both nodes to the same release before the window")


def _skew(nodes: int, skew: float | None, uncertainty: float | None, limit: float) -> list[Prerequisite]:
    if nodes < 2:
        return []
    if skew is None:
        return [Prerequisite(name="clocks", node=None, passed=None, words="clock skew was not measured")]
    give = f" (± {uncertainty:.3f} s)" if uncertainty is not None else ""
    return [
        Prerequisite(
            name="clocks",
            node=None,
            passed=skew <= limit,
            words=f"clocks are {skew:.3f} s apart{give}, at most {limit:g} s",
            remedy="" if skew <= limit else "turn on NTP on all nodes: timedatectl set-ntp true",
        )
    ]


def _ntp(node: str, known: Mapping[str, Any]) -> Prerequisite:
    state = known.get("ntp_synchronized")
    if state is None:
        return _unjudged("clocks", node, "whether the clock follows a time server", known, "ntp_synchronized")
    return Prerequisite(
        name="clocks",
        node=node,
        passed=bool(state),
        words="the clock follows a time server" if state else "the clock follows no time server",
        remedy="" if state else "timedatectl set-ntp true",
    )


def _disk(node: str, known: Mapping[str, Any], needed: int | None) -> list[Prerequisite]:
    found = []
    for name, room in (known.get("disk") or {}).items():
        free, place = room.get("free_bytes"), room.get("path")
        if free is None:
            found.append(_unjudged("disk", node, f"room for {name}", known, f"disk.{name}"))
            continue
        words = f"{name} at {place}: {_gib(free)} free"
        if room.get("writable") is False:
            found.append(
                Prerequisite(
                    name="disk",
                    node=node,
                    passed=False,
                    words=f"{words}, but it can't be written to",
                    remedy=f"give the lab's user write access to {room.get('measured_at') or place}",
                )
            )
        elif needed is None:
            found.append(Prerequisite(name="disk", node=node, passed=None, words=f"{words}; no need stated"))
        else:
            found.append(
                Prerequisite(
                    name="disk",
                    node=node,
                    passed=free >= needed,
                    words=f"{words}, {_gib(needed)} needed",
                    remedy=""
                    if free >= needed
                    else "remove old checkpoints, or point the runs to a larger disk",
                )
            )
    return found or [Prerequisite(name="disk", node=node, passed=None, words="no folder was measured")]


def _fragmentation(node: str, known: Mapping[str, Any], least: int) -> Prerequisite:
    blocks = (known.get("fragmentation") or {}).get("blocks_32mib")
    if blocks is None:
        return _unjudged(
            "fragmentation", node, "how fragmented memory is", known, "fragmentation.blocks_32mib"
        )
    uptime = known.get("uptime_seconds")
    up = f", up for {uptime / 86400:.1f} days" if uptime is not None else ""
    return Prerequisite(
        name="fragmentation",
        node=node,
        passed=blocks >= least,
        words=f"{blocks} free blocks of 32 MiB, at least {least}{up}",
        remedy=""
        if blocks >= least
        else "stop the service, drop caches and look again; if it stays low, reboot before the window",
    )


def _reboot(node: str, known: Mapping[str, Any]) -> Prerequisite:
    waiting = known.get("reboot_required")
    if waiting is None:
        return _unjudged("reboot", node, "whether a reboot is pending", known, "reboot_required")
    packages = ", ".join(known.get("reboot_packages") or ())
    return Prerequisite(
        name="reboot",
        node=node,
        passed=not waiting,
        words=f"a reboot is pending{f' for {packages}' if packages else ''}"
        if waiting
        else "no reboot pending",
        remedy="reboot before the window; driver and library may not match until then" if waiting else "",
    )


def _upgrade(node: str, known: Mapping[str, Any]) -> Prerequisite:
    running = known.get("upgrade_running")
    if running is None:
        return _unjudged("upgrade", node, "whether an upgrade is at work", known, "upgrade_running")
    return Prerequisite(
        name="upgrade",
        node=node,
        passed=not running,
        words="packages are being changed now" if running else "no upgrade at work",
        remedy="wait for it to end; it can change the driver in the middle of the window" if running else "",
    )


def _unjudged(name: str, node: str, what: str, known: Mapping[str, Any], fact: str) -> Prerequisite:
    reason = (known.get("missing") or {}).get(fact) or "the node did not say"
    return Prerequisite(name=name, node=node, passed=None, words=f"not known {what}: {reason}")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def blocking(found: Sequence[Prerequisite], blocks: Sequence[str]) -> tuple[Prerequisite, ...]:
    """Those that refuse the start under the profile's policy: failed, and named in it."""
    return tuple(part for part in found if part.passed is False and part.name in blocks)
