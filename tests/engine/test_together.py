"""Calls at once: results in order, and nothing left behind when one fails."""

import asyncio
import gc

import pytest

from console.core.errors import NodeError
from console.engine.together import together

pytestmark = pytest.mark.filterwarnings("error")


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


async def refuse() -> int:
    raise NodeError("node-b", "refused")


async def test_results_in_order() -> None:
    assert await together(answer(number) for number in range(3)) == [0, 1, 2]


async def test_one_failure_ends_the_others_before_it_is_told() -> None:
    ended = asyncio.Event()

    async def never() -> int:
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            ended.set()

    with pytest.raises(NodeError, match="refused"):
        await together([never(), refuse()])
    assert ended.is_set()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    gc.collect()


async def test_cancelling_reaches_every_call() -> None:
    began = [asyncio.Event(), asyncio.Event()]
    ended: list[int] = []

    async def wait(number: int) -> None:
        began[number].set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(number)

    task = asyncio.create_task(together(wait(number) for number in range(2)))
    for event in began:
        await event.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == [0, 1]
