"""Links that are slow, lossy, narrow, cut or frozen: a log keeps every byte, a job its true state."""

import time
from pathlib import Path

import pytest
from support.net_scene import cabled_host, scene, scene_behind_proxy
from support.waiting import until

pytestmark = pytest.mark.sshd

DELAY_SECONDS = 3.0
LOST_SHARE = 0.2
NARROW_RATE = "64kbit"


async def test_a_delay_of_seconds_is_no_outage(tmp_path: Path) -> None:
    async with cabled_host(tmp_path) as (_, host), scene_behind_proxy(host, tmp_path) as (proxy, one):
        proxy.delay_seconds = DELAY_SECONDS
        await one.receives(3000)
        await one.sees_the_job()
        await until(lambda: (one.node.link.rtt_seconds or 0) > DELAY_SECONDS, "the delay is shown")
        assert one.tail.stream.state == "live"
        assert (one.links, one.refused) == ([], [])
        proxy.delay_seconds = 0.0


async def test_a_lossy_link_loses_no_line(tmp_path: Path) -> None:
    async with cabled_host(tmp_path) as (cable, host), scene(host, tmp_path) as one:
        cable.lose(LOST_SHARE)
        with one.burst():
            await one.receives(60_000)
        await one.sees_the_job()
        assert cable.dropped_packets() > 0


async def test_a_narrow_link_falls_behind_and_catches_up(tmp_path: Path) -> None:
    async with cabled_host(tmp_path) as (cable, host), scene(host, tmp_path) as one:
        cable.narrow(NARROW_RATE)
        with one.burst():
            await until(lambda: one.log.stat().st_size - one.tail.end > 20_000, "it falls behind")
        await one.sees_the_job()
        assert one.tail.stream.state == "live"
        await one.receives(one.log.stat().st_size - one.tail.end)
        assert (one.links, one.refused) == ([], [])


async def test_an_sshd_that_restarts(tmp_path: Path) -> None:
    async with cabled_host(tmp_path) as (_, host), scene(host, tmp_path) as one:
        stopped_at = time.monotonic()
        await host.stop()
        await one.shows_the_cut(stopped_at)
        await host.start()
        await one.recovers()


async def test_a_frozen_node_is_shown_and_read_on_from(tmp_path: Path) -> None:
    async with cabled_host(tmp_path) as (_, host), scene(host, tmp_path) as one:
        frozen_at = time.monotonic()
        host.freeze()
        await one.shows_the_cut(frozen_at)
        assert one.log.stat().st_size > one.tail.end, "the job went on meanwhile"
        host.thaw()
        await one.recovers()
