"""Calls that outlast a lost link: what a sleeping laptop cut short is asked again when the node is back."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from console.core.errors import HostKeyChanged, HostKeyRevoked, HostKeyUnknown, NodeError, Unreachable
from console.engine.crew import Crew

NEEDS_A_PERSON = (HostKeyUnknown, HostKeyChanged, HostKeyRevoked)
"""Waiting doesn't help: the console no longer tries to reach such a node."""

PAUSE_SECONDS = 1.0
"""A link that is up may still refuse a channel; not asked again at once."""
LOOK_SECONDS = 10.0

Result = TypeVar("Result")


async def with_contact(crew: Crew, call: Callable[[], Awaitable[Result]]) -> Result:
    """The result of `call`, called again after each loss of contact, however long that lasts.

    `call` must be safe to repeat. Raises what it raises, except `Unreachable` and other errors of a node
    whose link is down at that moment; `NEEDS_A_PERSON` always.
    """
    while True:
        try:
            return await call()
        except NEEDS_A_PERSON:
            raise
        except NodeError as error:
            member = crew.get(error.node or "")
            if member is None or not (isinstance(error, Unreachable) or member.node.link.state != "up"):
                raise
            await asyncio.sleep(PAUSE_SECONDS)
            while member.node.link.state != "up":
                with contextlib.suppress(Unreachable):
                    await member.node.wait_up(LOOK_SECONDS)


def without_contact(crew: Crew) -> tuple[str, ...]:
    """Names of the nodes whose link is not up now."""
    return tuple(name for name, member in crew.items() if member.node.link.state != "up")
