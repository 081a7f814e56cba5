"""Wait on a condition with a deadline, never on a length of time."""

import asyncio
import time
from collections.abc import Callable


async def until(condition: Callable[[], object], what: str, seconds: float = 20.0) -> None:
    """Return once `condition()` is true; fail with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        await asyncio.sleep(0.02)
