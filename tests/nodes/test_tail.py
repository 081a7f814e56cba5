"""A remote log as a gap-free stream, whatever happens to the link, the server and the file."""

import asyncio
import hashlib
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from support.followed import Followed, readers
from support.hosts import Host
from support.proxy import Proxy
from support.waiting import until

from console.core.errors import NodeError
from console.nodes import dial, remote, tail_state
from console.nodes.ssh import Node
from console.nodes.tail import Tail
from console.nodes.tail_frames import whole_frames

Follow = Callable[..., "asyncio.Future[Followed]"]


@pytest.fixture
async def follow(tmp_path: Path):  # type: ignore[no-untyped-def]
    followed: list[Followed] = []

    async def begin(node: Node, path: str = "~/log", mirror: str = "log", **settings: object) -> Followed:
        one = Followed(node, path, tmp_path / "mirrors" / mirror, **settings)
        followed.append(one)
        await one.tail.start()
        return one

    yield begin
    for one in followed:
        await one.tail.close()


def append(path: Path, data: bytes) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(data)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


async def test_a_file_that_comes_later_is_followed_from_its_first_byte(
    host: Host, node: Node, follow: Follow
) -> None:
    one = await follow(node, "~/folder/log")
    await until(lambda: one.tail.stream.state == "waiting", "it waits")
    (host.home / "folder").mkdir()
    log = host.home / "folder" / "log"
    content = bytes(range(256)) * 4 + b"\r12%\r\x1b[A no end of line"
    for start in range(0, len(content), 100):
        append(log, content[start : start + 100])
        await asyncio.sleep(0)
    await until(lambda: one.tail.end == len(content), "all came")
    assert one.delivered() == content == one.tail.mirror.read_bytes()
    assert one.tail.stream.state == "live"
    assert one.tail.stream.bytes_at_monotonic is not None
    proof = await one.tail.finish()
    assert proof.same
    assert proof.size_bytes == len(content)
    assert one.events == []


async def test_nothing_is_lost_or_repeated_while_the_server_restarts(
    host: Host, node: Node, follow: Follow
) -> None:
    log = host.home / "log"
    chance = random.Random(7)
    written = asyncio.Event()

    async def write() -> None:
        for _ in range(300):
            append(log, chance.randbytes(chance.randrange(1, 5000)))
            await asyncio.sleep(0.01)
        append(log, b"x" * 8_000_000)
        written.set()

    writing = asyncio.create_task(write())
    one = await follow(node)
    for _ in range(3):
        before = one.tail.end
        await until(lambda before=before: one.tail.end > before or written.is_set(), "bytes come")
        await host.restart()
        await node.wait_up(30)
    await writing
    await until(lambda: one.tail.end == log.stat().st_size, "all came")
    assert (await one.tail.finish()).same
    assert one.delivered() == log.read_bytes()
    assert one.events == []


async def test_links_that_break_leave_at_most_one_reader(
    host: Host,
    make_node,
    follow: Follow,  # type: ignore[no-untyped-def]
) -> None:
    log = host.home / "log"
    log.write_bytes(b"start\n")
    async with Proxy(host.port) as proxy:
        node = await make_node(host.through(proxy.port))
        one = await follow(node)
        for turn in range(4):
            await until(lambda: one.tail.end == log.stat().st_size, "it has caught up")
            proxy.cut()
            append(log, b"written in the gap %d\n" % turn)
            await until(lambda: one.tail.stream.state == "lost", "the loss is seen")
            await node.wait_up(30)
        await until(lambda: one.tail.end == log.stat().st_size, "it has caught up")
        await until(lambda: readers(host) == 1, "one reader is left")
        assert one.delivered() == log.read_bytes()
        await one.tail.close()
        await until(lambda: readers(host) == 0, "the reader went with its channel")
        await node.close()


async def test_a_reader_behind_a_dead_link_is_replaced(
    host: Host,
    make_node,
    follow: Follow,
    monkeypatch: pytest.MonkeyPatch,  # type: ignore[no-untyped-def]
) -> None:
    monkeypatch.setattr(dial, "KEEPALIVE_SECONDS", 1)
    monkeypatch.setattr(dial, "KEEPALIVE_COUNT", 1)
    monkeypatch.setattr(tail_state, "_STALLED_SECONDS", 0.5)
    log = host.home / "log"
    log.write_bytes(b"start\n")
    async with Proxy(host.port) as proxy:
        node = await make_node(host.through(proxy.port))
        one = await follow(node)
        await until(lambda: one.tail.end == 6, "it has caught up")
        proxy.freeze()
        append(log, b"while frozen\n")
        await until(lambda: one.tail.stream.state == "stalled", "silence is seen")
        await until(lambda: one.tail.stream.state == "lost", "the loss is seen")
        # The node still believes in the old connection; a second way to it is opened beside it.
        async with Proxy(host.port) as second:
            detour = await make_node(host.through(second.port))
            again = Followed(detour, "~/log", one.tail.mirror)
            await one.tail.close()
            # Same console, same mirror: only the node's name makes a reader another's.
            await again.tail.start()
            await until(lambda: again.tail.end == log.stat().st_size, "the rest came")
            await until(lambda: readers(host) == 1, "the old reader was ended")
            assert again.delivered() == b"while frozen\n"
            await again.tail.close()
            await detour.close()
        proxy.cut()
        await node.close()


async def test_a_restarted_console_goes_on_at_the_byte(host: Host, node: Node, follow: Follow) -> None:
    log = host.home / "log"
    log.write_bytes(b"first\n" * 50_000)
    first = await follow(node)
    await until(lambda: first.tail.end == 300_000, "all came")
    await first.tail.close()
    append(log, b"second\n")
    second = await follow(node)
    await until(lambda: second.tail.end == 300_007, "the rest came")
    assert second.chunks == [(0, 300_000, b"second\n")]
    assert (await second.tail.finish()).same


@pytest.mark.parametrize(
    ("change", "into"),
    [("POLL_SECONDS = 0.04", "POLL_SECONDS = 60.0"), ("import ctypes", "raise ImportError")],
    ids=["notices alone", "polling alone"],
)
async def test_news_come_by_notices_and_by_polling(
    host: Host, node: Node, follow: Follow, monkeypatch: pytest.MonkeyPatch, change: str, into: str
) -> None:
    program = remote.source("tail_reader.py")
    assert change in program
    monkeypatch.setattr(remote, "source", lambda name: program.replace(change, into))
    log = host.home / "log"
    log.write_bytes(b"start\n")
    one = await follow(node)
    await until(lambda: one.tail.end == 6, "it has caught up")
    for number in range(5):
        append(log, b"line %d\n" % number)
        await until(lambda: one.tail.end == log.stat().st_size, "the line")
    assert one.delivered() == log.read_bytes()


def test_data_frames_that_go_on_are_one_and_a_part_of_a_frame_waits() -> None:
    frames = [(b"O", 0, b"{}"), (b"D", 0, b"ab"), (b"D", 2, b"c"), (b"T", 0, b"{}"), (b"D", 0, b"d")]
    sent = b"".join(struct.pack(">cQI", kind, at, len(data)) + data for kind, at, data in frames)
    buffer = bytearray(sent[:-1])
    assert whole_frames(buffer) == [(b"O", 0, b"{}"), (b"D", 0, b"abc"), (b"T", 0, b"{}")]
    buffer += sent[-1:]
    assert whole_frames(buffer) == [(b"D", 0, b"d")]
    assert not buffer


@pytest.mark.parametrize("gone", [False, True])
async def test_rotation_ends_the_old_file_before_the_new_one(
    host: Host, node: Node, follow: Follow, gone: bool
) -> None:
    log = host.home / "log"
    log.write_bytes(b"old ")
    one = await follow(node)
    await until(lambda: one.tail.end == 4, "it follows")
    log.rename(host.home / "log.1")
    append(host.home / "log.1", b"last words")
    if gone:
        await until(lambda: one.tail.end == 14, "the renamed file is still read")
    log.write_bytes(b"new")
    await until(lambda: one.tail.segment == 1 and one.tail.end == 3, "the new file is read")
    assert (one.delivered(0), one.delivered(1)) == (b"old last words", b"new")
    (event,) = one.events
    assert (event.kind, event.segment, event.lost_bytes) == ("rotated", 1, False)
    assert event.mirror == one.tail.mirror != event.mirror.with_name("log")
    assert event.mirror.read_bytes() == b"new"
    assert event.mirror.with_name("log").read_bytes() == b"old last words"
    assert (await one.tail.finish()).same


async def test_truncation_begins_a_new_segment(host: Host, node: Node, follow: Follow) -> None:
    log = host.home / "log"
    log.write_bytes(b"a long first life\n")
    one = await follow(node)
    await until(lambda: one.tail.end == 18, "it follows")
    log.write_bytes(b"short\n")
    await until(lambda: one.tail.segment == 1 and one.tail.end == 6, "the new life is read")
    assert (one.delivered(0), one.delivered(1)) == (b"a long first life\n", b"short\n")
    assert [(event.kind, event.lost_bytes) for event in one.events] == [("truncated", True)]


async def test_a_file_rewritten_in_place_is_not_merged(host: Host, node: Node, follow: Follow) -> None:
    log = host.home / "log"
    log.write_bytes(b"first life\n")
    one = await follow(node)
    await until(lambda: one.tail.end == 11, "it follows")
    with log.open("r+b", buffering=0) as file:
        file.write(b"second life, longer\n")
    await until(lambda: one.tail.segment == 1 and one.tail.end == 20, "the new life is read")
    assert (one.delivered(0), one.delivered(1)) == (b"first life\n", b"second life, longer\n")
    assert one.events[0].kind == "replaced"


@pytest.mark.parametrize("happening", ["grown", "rotated", "rotated away", "truncated", "rewritten"])
async def test_what_happened_while_nobody_read_is_found_out(
    host: Host, node: Node, follow: Follow, happening: str
) -> None:
    log = host.home / "log"
    log.write_bytes(b"before the gap\n")
    first = await follow(node)
    await until(lambda: first.tail.end == 15, "it follows")
    await first.tail.close()
    if happening == "grown":
        append(log, b"after\n")
    elif happening.startswith("rotated"):
        append(log, b"last words\n")
        log.rename(host.home / "log.1")
        log.write_bytes(b"after\n")
        if happening == "rotated away":
            (host.home / "log.1").rename(host.root / "log.1")
    else:
        log.write_bytes(b"after\n" if happening == "truncated" else b"another text that is longer\n")
    second = await follow(node)
    size = log.stat().st_size
    segment = 0 if happening == "grown" else 1
    await until(lambda: (second.tail.segment, second.tail.end) == (segment, size), "it goes on")
    assert second.tail.mirror.read_bytes() == log.read_bytes()
    assert [event.lost_bytes for event in second.events] == ([] if segment == 0 else [happening != "rotated"])
    if happening == "rotated":
        assert second.delivered(0) == b"last words\n"
    assert (await second.tail.finish()).same


async def test_a_damaged_mirror_is_not_continued(host: Host, node: Node, follow: Follow) -> None:
    log = host.home / "log"
    log.write_bytes(b"what was really written\n")
    first = await follow(node)
    await until(lambda: first.tail.end == 24, "it follows")
    await first.tail.close()
    first.tail.mirror.write_bytes(b"\0" * 20)
    second = await follow(node)
    await until(lambda: second.tail.segment == 1 and second.tail.end == 24, "it is fetched anew")
    assert second.tail.mirror.read_bytes() == log.read_bytes()


async def test_a_large_log_opens_at_its_end_and_older_parts_come_on_demand(
    host: Host, node: Node, follow: Follow
) -> None:
    log = host.home / "log"
    content = random.Random(3).randbytes(3_000_000)
    log.write_bytes(content)
    one = await follow(node, start="end")
    await until(lambda: one.tail.end == len(content), "the end came")
    base = len(content) - 262144
    assert one.tail.base == base
    assert one.delivered() == content[base:]
    older, start = await one.tail.fetch_before(100_000)
    assert (start, older) == (base - 100_000, content[base - 100_000 : base])
    assert one.tail.base == start
    await one.tail.close()
    again = await follow(node, start="end")
    append(log, b"more")
    await until(lambda: again.tail.end == len(content) + 4, "it goes on")
    assert again.delivered() == b"more"
    assert again.tail.base == start
    proof = await again.tail.finish()
    assert proof.same
    assert proof.sha256 == sha256(log) == sha256(again.tail.mirror)
    assert again.tail.base == 0


async def test_older_parts_of_another_file_are_refused(host: Host, node: Node, follow: Follow) -> None:
    log = host.home / "log"
    log.write_bytes(os.urandom(400_000))
    one = await follow(node, start="end")
    await until(lambda: one.tail.end == 400_000, "the end came")
    one_base = one.tail.base
    replacement = host.home / "log.new"
    replacement.write_bytes(os.urandom(400_000))
    replacement.rename(log)
    with pytest.raises(NodeError):
        await one.tail.fetch_before()
    assert one_base > 0


async def test_two_consoles_read_one_log_side_by_side(
    host: Host,
    node: Node,
    make_node,
    follow: Follow,  # type: ignore[no-untyped-def]
) -> None:
    log = host.home / "log"
    log.write_bytes(b"shared\n")
    other = await make_node(host.target)
    both = [await follow(node, mirror="first"), await follow(other, mirror="second")]
    for turn in range(20):
        append(log, b"line %d\n" % turn)
    for one in both:
        await until(lambda one=one: one.tail.end == log.stat().st_size, "all came")
        assert one.delivered() == log.read_bytes()
    assert readers(host) == 2
    for one in both:
        assert (await one.tail.finish()).same
    await until(lambda: readers(host) == 0, "no reader is left")


async def test_a_log_that_can_not_be_read_is_told(host: Host, node: Node, follow: Follow) -> None:
    (host.home / "log").mkdir()
    one = await follow(node)
    await until(lambda: "log" in one.tail.stream.why and one.tail.stream.state == "lost", "it says so")
    assert "next:" in one.tail.stream.why


async def test_a_node_without_python_is_told(make_host, make_node, follow: Follow) -> None:  # type: ignore[no-untyped-def]
    host = await make_host("node-a", environment={"PATH": "/bin-of-coreutils"})
    node = await make_node(host.target)
    one = await follow(node)
    await until(lambda: "bash" in one.tail.stream.why or "python3" in one.tail.stream.why, "it says so")
    assert one.tail.stream.state == "lost"


async def test_a_consumer_that_fails_is_not_hidden(host: Host, node: Node, tmp_path: Path) -> None:
    (host.home / "log").write_bytes(b"x")

    def fail(data: bytes, start: int) -> None:
        raise ZeroDivisionError

    one = Tail(node, "~/log", tmp_path / "mirror", fail)
    await one.start()
    with pytest.raises(ZeroDivisionError):
        await one.wait_for(2)
    with pytest.raises(ZeroDivisionError):
        await one.close()


async def test_following_many_logs_leaves_channels_for_scripts(
    host: Host, node: Node, follow: Follow
) -> None:
    logs = [host.home / f"log{n}" for n in range(6)]
    for log in logs:
        log.write_bytes(b"x")
    many = [await follow(node, f"~/{log.name}", log.name) for log in logs]
    for one in many:
        await until(lambda one=one: one.tail.end == 1, "it follows")
    answers = await asyncio.gather(*(node.run("echo on", timeout=20) for _ in range(6)))
    assert {answer.stdout for answer in answers} == {b"on\n"}


def damage(mirror: Path, how: str) -> None:
    if how == "removed":
        mirror.unlink()
    elif how == "folder removed":
        shutil.rmtree(mirror.parent)
    elif how == "cut short":
        os.truncate(mirror, 3)
    else:
        with mirror.open("r+b", buffering=0) as file:
            file.write(b"FIRST" if how == "changed" else mirror.read_bytes() + b"added")


@pytest.mark.parametrize("how", ["removed", "folder removed", "cut short"])
async def test_a_mirror_that_is_lost_while_followed_is_begun_anew(
    host: Host, node: Node, follow: Follow, how: str
) -> None:
    log = host.home / "log"
    log.write_bytes(b"first line\n")
    one = await follow(node)
    await until(lambda: one.tail.end == 11, "it follows")
    damage(one.tail.mirror, how)
    append(log, b"second line\n")
    await until(lambda: [event.kind for event in one.events] == ["fetched again"], "it is noticed")
    await until(lambda: one.tail.end == 23, "all came again")
    append(log, b"third line\n")
    await until(lambda: one.tail.end == 34, "it goes on")
    assert one.tail.mirror.read_bytes() == log.read_bytes() == one.delivered()
    assert (await one.tail.finish()).same


@pytest.mark.parametrize("how", ["removed", "folder removed", "cut short", "changed", "added to"])
async def test_at_the_end_the_mirror_is_what_the_node_has(
    host: Host, node: Node, follow: Follow, how: str
) -> None:
    log = host.home / "log"
    log.write_bytes(b"first line\nlast line\n")
    one = await follow(node)
    await until(lambda: one.tail.end == 21, "all came")
    mirror = one.tail.mirror
    damage(mirror, how)
    proof = await one.tail.finish()
    assert proof.same
    assert mirror.read_bytes() == log.read_bytes() == one.delivered()
    assert proof.sha256 == sha256(mirror)
    assert [event.kind for event in one.events] == ["fetched again"]


async def test_a_mirror_that_can_t_be_begun_anew_is_told(host: Host, node: Node, follow: Follow) -> None:
    (host.home / "log").write_bytes(b"all of it\n")
    one = await follow(node)
    await until(lambda: one.tail.end == 10, "all came")
    one.tail.mirror.unlink()
    one.tail.mirror.mkdir()
    with pytest.raises(NodeError, match="can't be written"):
        await one.tail.finish()
