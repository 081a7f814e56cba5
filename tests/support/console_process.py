"""A console that can be killed: guard, stop, then lease after lease. Told by a JSON file."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from console.core.errors import NodeError
from console.core.plan.custody import GuardSpec
from console.core.plan.service import CommandService, DockerService
from console.nodes.agent import Runner, renew_lease, start_guard
from console.nodes.dial import SshTarget
from console.nodes.service import inspect, restore, stop
from console.nodes.ssh import Node
from support.local_node import LocalNode

HOLDER = "killed-console"


@asynccontextmanager
async def reached(told: dict[str, object]) -> AsyncIterator[Runner]:
    if "home" in told:
        yield LocalNode(Path(str(told["home"])))
        return
    where: dict[str, str] = told["target"]  # type: ignore[assignment]
    node = Node(
        SshTarget(
            name=where["name"],
            host=where["host"],
            port=int(where["port"]),
            user=where["user"],
            identity_file=Path(where["identity_file"]),
            config_files=(),
            known_hosts=(Path(where["known_hosts"]),),
            use_agent=False,
        )
    )
    await node.connect()
    try:
        yield node
    finally:
        await node.close()


async def renewed(node: Runner, experiment: str, lease: float) -> None:
    """Renew the lease again and again; a link that is down is waited for."""
    while True:
        with contextlib.suppress(NodeError):
            await renew_lease(node, experiment, holder=HOLDER, lease_seconds=lease)
        await asyncio.sleep(lease / 4)


async def main(told: dict[str, object]) -> None:
    experiment, lease = str(told["experiment"]), float(str(told["lease_seconds"]))
    kind = DockerService if told["spec"]["kind"] == "docker" else CommandService  # type: ignore[index]
    spec = kind.model_validate(told["spec"])
    async with reached(told) as node:
        record = await inspect(node, spec)
        guard = GuardSpec(experiment=experiment, holder=HOLDER, lease_seconds=lease)
        await start_guard(node, guard, spec)
        print("guarded", flush=True)
        renewing = asyncio.create_task(renewed(node, experiment, lease))
        outcome = await stop(node, spec, record, experiment=experiment)
        print(outcome.state, flush=True)
        if told.get("restore_after") is None:
            await renewing
        await asyncio.sleep(float(str(told["restore_after"])))
        await restore(node, spec, record, experiment=experiment)
        print("restored", flush=True)


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
