"""The node's own program: sampler, guard, and the hands that stop and restore the service.

`program/` runs on the node (standard library only, any python3 from 3.8); `bundle` packs it, `calling`
ships it over SSH, `client` reads its answers.
"""

from console.nodes.agent.client import (
    Phase,
    end_guard,
    end_jobs,
    follow_guard,
    guard_account,
    guard_status,
    renew_lease,
    start_guard,
)
from console.nodes.agent.runner import Runner

__all__ = [
    "Phase",
    "Runner",
    "end_guard",
    "end_jobs",
    "follow_guard",
    "guard_account",
    "guard_status",
    "renew_lease",
    "start_guard",
]
