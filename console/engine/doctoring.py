"""Can the lab be reached and is everything there: questions only, nothing is changed on a node."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from console.core.errors import HostKeyUnknown, LabError
from console.core.plan.profile import NodeSpec, Profile
from console.engine.crew import Member, assembled

SECONDS = 90

_LOOK = """
say() { printf '%s\\t%s\\t%s\\n' "$1" "$2" "$3"; }
for tool in python3 timeout setsid sha256sum tail; do
  command -v "$tool" >/dev/null && say ok "$tool" "$(command -v "$tool")" \\
    || say missing "$tool" "install it on the node"
done
if [ -x "$1" ]; then
  ask='import importlib.metadata as m; print(m.version("ms-swift"), m.version("torch"))'
  found=$("$1" -c "$ask" 2>/dev/null) \\
    && say ok 'training interpreter' "ms-swift, torch: $found" \\
    || say missing 'ms-swift and torch' "not in $1; install ms-swift and torch there"
else say missing 'training interpreter' "$1 is no executable; correct python of this node"; fi
if [ -d "$2" ]; then
  [ -w "$2" ] && say ok 'shared folder' "$2, $(df -Ph "$2" | awk 'NR==2 {print $4}') free" \\
    || say missing 'shared folder' "$2 can't be written by $(id -un)"
elif [ -n "$4" ]; then say ok 'shared folder' "$2 is made when the lab begins"
else say missing 'shared folder' "$2 is not there; mount it at this path on every node"; fi
say ok 'room in the home folder' "$(df -Ph "$HOME" | awk 'NR==2 {print $4}') free"
if [ -n "$3" ]; then
  command -v nvidia-smi >/dev/null && say ok 'nvidia-smi' "$(timeout -k 2 10 nvidia-smi -L | head -1)" \\
    || say missing 'nvidia-smi' 'the profile expects a GPU; install the driver'
fi
"""


@dataclass(frozen=True, slots=True)
class Look:
    """One question to a node and its answer."""

    node: str
    name: str
    good: bool
    words: str
    changed: bool = False
    """Something on this computer was written for it; on a node nothing ever is."""


async def examine(profile: Profile, folder: Path, *, accept_new: bool = False) -> list[Look]:
    """Ask every node; a node that can't be reached is an answer like any other."""
    if profile.embedded:
        async with assembled(profile, folder) as crew:
            return _flat(await asyncio.gather(*(_look(profile, member) for member in crew.values())))
    return _flat(await asyncio.gather(*(_alone(profile, spec, folder, accept_new) for spec in profile.nodes)))


async def _alone(profile: Profile, spec: NodeSpec, folder: Path, accept_new: bool) -> Sequence[Look]:
    """One node by itself, so that a second one out of reach is told too."""
    only = profile.model_copy(update={"nodes": [spec]})
    accepted: list[Look] = []

    def tell(key: HostKeyUnknown) -> None:
        words = f"{key.fingerprint} was not known and is now in {key.accept_into}"
        accepted.append(Look(spec.name, "host key", True, words, changed=True))

    try:
        async with assembled(only, folder, accept_new=accept_new, on_accepted=tell) as crew:
            return [*accepted, *await _look(profile, crew[spec.name])]
    except LabError as error:
        return [*accepted, Look(spec.name, "reach", False, error.render())]


def _flat(found: Sequence[Sequence[Look]]) -> list[Look]:
    return [look for looks in found for look in looks]


async def _look(profile: Profile, member: Member) -> list[Look]:
    rtt = member.node.link.rtt_seconds
    words = "host key known, logged in" + (f", {rtt * 1e3:.0f} ms" if rtt is not None else "")
    looks = [Look(member.name, "reach", True, words)]
    flags = ("gpu" if profile.gpus_per_node else "", "embedded" if profile.embedded else "")
    args = (member.python, member.shared, *flags)
    answer = await member.node.run(_LOOK, args=args, timeout=SECONDS)
    for line in answer.text.splitlines():
        state, _, rest = line.partition("\t")
        name, _, said = rest.partition("\t")
        looks.append(Look(member.name, name, state == "ok", said))
    return looks
