"""The borrowed service, seen from the laptop: inspect, stop, prove that memory is free, restore.

The work itself is done by the agent on the node (`console.nodes.agent`), so that a guard without a laptop
does exactly what the console does. Stop and restore run on the node detached from the connection: when the
link breaks in the middle, calling the same function again attaches to what is going on.
"""

from console.nodes.service.calls import (
    Progress,
    inspect,
    prove_free,
    prove_health,
    restore,
    service_log,
    stop,
)

__all__ = ["Progress", "inspect", "prove_free", "prove_health", "restore", "service_log", "stop"]
