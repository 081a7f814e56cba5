"""A link that is down for a minute. Alone in its file: it waits beside the other tests, not after them."""

import time
from pathlib import Path

import pytest
from support.net_scene import cabled_host, scene

pytestmark = pytest.mark.sshd

OUTAGE_SECONDS = 60


async def test_a_link_that_is_down_for_a_minute(tmp_path: Path) -> None:
    async with cabled_host(tmp_path) as (cable, host), scene(host, tmp_path) as one:
        cut_at = time.monotonic()
        cable.pull_out()
        await one.shows_the_cut(cut_at)
        await one.stays_down(cut_at + OUTAGE_SECONDS)
        assert one.log.stat().st_size > one.tail.end, "the job went on meanwhile"
        cable.plug_in()
        await one.recovers()
