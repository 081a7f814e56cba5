"""A cancel reaches what waits for a node, at whatever moment it comes: one that is lost hangs a lab's end."""

import asyncio

import pytest

from console.nodes.ssh import Node, SshTarget


@pytest.mark.parametrize("turns", range(8))
async def test_a_cancel_is_never_lost_where_a_channel_is_waited_for(turns: int) -> None:
    node = Node(SshTarget(name="node-a", host="127.0.0.1", user="nobody"))

    async def keep() -> None:
        while True:
            async with node._channel():
                await asyncio.sleep(0)
            await asyncio.sleep(0)

    task = asyncio.create_task(keep())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=5)
    assert done, "the cancel was swallowed"
    assert task.cancelled()
