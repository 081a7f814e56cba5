"""`lab watch`: an experiment on screens, or its events as lines, while another console makes them."""

import asyncio
import contextlib
import select
import shlex
import sys
from pathlib import Path

from console.cli.options import again_in
from console.cli.program import program
from console.core.record.acceptance import Lang
from console.core.record.events import ExperimentClosed, event_json
from console.engine.replay import WATCH_SECONDS, WatchSession
from console.journal import Journal


async def watch_on_screens(folder: Path, lang: Lang) -> None:
    """The screens over what another console does, until they are left. Raises `JournalError`."""
    from console.tui.app import LabApp

    with WatchSession(folder) as session:
        follower = asyncio.create_task(session.follow(), name="follower")
        try:
            command = f"{program()} watch {shlex.quote(str(folder))}" + again_in(lang)
            app = LabApp(session, lang, return_command=command)
            await app.run_async()
            app.raise_fault()
        finally:
            follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await follower


def stream_events(folder: Path) -> None:
    """Print every event from the first on, each as soon as it is in the journal; ends with the experiment.

    Raises `BrokenPipeError` when nobody reads any more, `JournalError`.
    """
    seen = 0
    with Journal(folder, read_only=True) as journal:
        while True:
            for number, event in journal.events(after=seen):
                seen = number
                print(event_json(event), flush=True)
                if isinstance(event, ExperimentClosed):
                    return
            _wait_while_read(WATCH_SECONDS)


def _wait_while_read(seconds: float) -> None:
    """A reader that has gone is noticed at once, not when the next event can't be written."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    if poll.poll(seconds * 1000):
        raise BrokenPipeError
