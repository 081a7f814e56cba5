"""A service lent and given back on embedded nodes: its state on each node, and how long it took."""

import asyncio
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.borrowed_lab import CHECKLIST, profile_with, quick_standins, serving
from support.waiting import until
from support.window import healthy

from console.cli import service
from console.core.plan.custody import ServiceTimes
from console.core.plan.service import CommandService
from console.core.record import events as ev
from console.core.record.folding import fold
from console.engine.returning import expected, history
from console.journal import Journal, read_journal
from console.nodes.agent.program.folder import Folder


@pytest.fixture
def standins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    yield from quick_standins(tmp_path, monkeypatch)


async def test_each_node_has_its_state_and_the_restore_its_length(small_lab, standins) -> None:
    async with small_lab(CHECKLIST, profile=profile_with(standins)) as lab:
        await serving(standins, lab.recorder.journal.folder)
        conductor, recorder = lab.conductor, lab.recorder
        await conductor.guarding.start()
        await conductor.lending.borrow()
        borrowed = recorder.experiment.service
        assert borrowed.state == "memory free"
        assert {node: here.state for node, here in borrowed.nodes.items()} == {
            "node-a": "memory free",
            "node-b": "memory free",
        }
        assert borrowed.details["restore_seconds"] == 40
        assert "not measured yet" in borrowed.details["restore_source"]

        assert await conductor.lending.give_back()
        assert recorder.experiment.service.state == "healthy"
        await conductor.guarding.end()
        events = [event for _, event in recorder.journal.events(kind="service changed")]
        told = {event.node: event.details["times"] for event in events if "times" in event.details}
        times = {node: ServiceTimes.model_validate(details) for node, details in told.items()}
        assert set(times) == {"node-a", "node-b"}
        for measured in times.values():
            assert measured.service == "stand-in"
            assert 0 < measured.load_seconds + measured.ready_seconds <= measured.whole_seconds
        assert times["node-b"].stages, "the log names when it was ready"
        assert any(e.state == "restoring" and "about" in e.words for e in events)

        specs = {node: conductor.lending._spec(node) for node in times}
        seconds, source = expected(specs, history(recorder.journal.folder, specs))
        assert seconds == pytest.approx(sum(measured.whole_seconds for measured in times.values()))
        assert source == "measured at the last restore"


def test_where_the_length_comes_from(tmp_path: Path) -> None:
    spec = CommandService.model_validate(
        {"kind": "command", "name": "s", "start": ["true"], "pid_file": "p", "log_file": "l"}
    )
    told = spec.model_copy(update={"restore_seconds": 600.0})
    here, other = tmp_path / "here", tmp_path / "other"
    assert expected({"a": told, "b": told}, history(here, {"a": told, "b": told})) == (1200, "profile")
    assert expected({"a": spec}, {"a": []})[0] == spec.ready_timeout_seconds

    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "experiment.sqlite3").write_bytes(b"no journal")
    for folder, seconds in ((other, 90.0), (here, 30.0)):
        times = ServiceTimes(service="s", load_seconds=1, ready_seconds=1, whole_seconds=seconds)
        with Journal(folder) as journal:
            journal.append(
                ev.ServiceChanged(
                    at=datetime.now(UTC), node="a", state="healthy", details={"times": times.model_dump()}
                )
            )
    found = history(here, {"a": spec})
    assert [times.whole_seconds for times in found["a"]] == [30, 90]
    assert expected({"a": spec}, found) == (30, "measured at the last restore")


@pytest.mark.parametrize("hours", [3, -3])
async def test_clocks_three_hours_apart_change_no_age_and_no_lease(small_lab, standins, hours: int) -> None:
    def now() -> datetime:
        return datetime.now(UTC) - timedelta(hours=hours)

    async with small_lab(CHECKLIST, profile=profile_with(standins), now=now) as lab:
        await serving(standins, lab.recorder.journal.folder)
        conductor, recorder = lab.conductor, lab.recorder
        await conductor.guarding.start()
        lease = recorder.experiment.profile.policies.lease_seconds
        for status in (await conductor.guarding.statuses()).values():
            assert lease - 60 < (status.lease.seconds_left or 0) <= lease
            assert 3600 < (status.lease.window_seconds_left or 0) <= 4 * 3600
            assert abs((now() - datetime.fromtimestamp(status.at, UTC)).total_seconds()) > 2 * 3600
        for node in recorder.experiment.nodes.values():
            assert node.lease_until is not None
            assert timedelta(seconds=lease - 60) < node.lease_until - now() <= timedelta(seconds=lease)
        keeper = asyncio.create_task(conductor.guarding.keep())
        try:
            await conductor.lending.borrow()
            await until(lambda: list(recorder.journal.samples("node-a")), "samples arrive")
            arrived = next(iter(recorder.journal.samples("node-a")))[0]
            assert abs(now() - arrived) < timedelta(minutes=1)
            await lab.crew["node-a"].node.run(
                'setsid -f sh -c \'echo $$ >~/service.pid; exec "$@"\' sh "$@" >~/other.log 2>&1',
                args=standins["node-a"].process_argv(),
                timeout=20,
            )
            await until(lambda: recorder.experiment.nodes["node-a"].came_back_at, "its return is told", 60)
            back = recorder.experiment.nodes["node-a"].came_back_at
            assert abs(now() - back) < timedelta(minutes=1)
            assert await conductor.lending.give_back()
        finally:
            keeper.cancel()
            await asyncio.wait({keeper})
        await conductor.guarding.end()
        changes = [event for _, event in recorder.journal.events(kind="service changed")]
        whole = [event.details["times"]["whole_seconds"] for event in changes if "times" in event.details]
        assert whole
        assert max(whole) < 120


async def test_status_names_a_service_that_came_back_and_a_guard_at_risk(
    small_lab, standins, capsys: pytest.CaptureFixture[str]
) -> None:
    async with small_lab(CHECKLIST, profile=profile_with(standins)) as lab:
        await serving(standins, lab.recorder.journal.folder)
        await lab.conductor.guarding.start()
        folder = Folder(f"{lab.crew['node-a'].places['home']}/.lab", lab.recorder.experiment.name)
        folder.set(risk="logind ends it", came_back_at=time.time() - 40)
        assert await service._status(service.Hands(lab.recorder, lab.crew)) == 0
        said = capsys.readouterr().out
        assert re.search(r"the service came back by itself 4\d s ago", said)
        assert said.count("the guard may be ended: logind ends it") == 1
        folder.set(risk=None, came_back_at=None)
        await lab.conductor.guarding.end()


async def test_a_console_that_dies_between_two_stops_stops_the_second_node_too(small_lab, standins) -> None:
    async with small_lab(CHECKLIST, profile=profile_with(standins)) as lab:
        await serving(standins, lab.recorder.journal.folder)
        await lab.conductor.guarding.start()
        await lab.conductor.lending._records()
        lab.conductor.lending._say("held by driver", "as an earlier console found it", "node-b")
        await lab.conductor.lending.borrow()
        assert not any(healthy(standin) for standin in standins.values())
        assert await lab.conductor.lending.give_back()
        assert all(healthy(standin) for standin in standins.values())
        await lab.conductor.guarding.end()


async def test_one_healthy_node_is_no_healthy_service(small_lab, standins) -> None:
    """A console that dies between two nodes' restores still owes the second one."""
    async with small_lab(CHECKLIST, profile=profile_with(standins)) as lab:
        say, recorder = lab.conductor.lending._say, lab.recorder
        for node in ("node-b", "node-a"):
            say("stopped", "", node)
        say("memory free", "")
        say("restoring", "", "node-a")
        say("healthy", "", "node-a")
        found = fold(read_journal(recorder.journal.folder)).service
        assert found.state == "restoring"
        assert {node: here.state for node, here in found.nodes.items()} == {
            "node-a": "healthy",
            "node-b": "memory free",
        }
        assert lab.conductor.lending.owed
