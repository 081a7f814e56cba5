"""The guard's life: started once, held by one console, told apart from its predecessors, ended on purpose."""

import asyncio
import json
import os
import signal
from pathlib import Path

import psutil
import pytest
from support.local_node import LocalNode
from support.waiting import until

from console.core.errors import InputError, ServiceError
from console.core.plan.custody import Floors, GuardSpec, GuardStatus
from console.core.plan.service import NoService
from console.nodes.agent import (
    end_guard,
    follow_guard,
    guard_account,
    guard_status,
    renew_lease,
    start_guard,
)

EXPERIMENT = f"guard-{os.getpid()}"
NONE = NoService()


def spec(**more: object) -> GuardSpec:
    told = {"experiment": EXPERIMENT, "holder": "console-a", "lease_seconds": 60} | more
    return GuardSpec.model_validate(told)


def state_file(node: LocalNode) -> Path:
    return node.home / ".lab" / EXPERIMENT / "guard" / "state.json"


async def whats(node: LocalNode) -> list[str]:
    return [line.what for line in await guard_account(node, EXPERIMENT)]


async def ended(node: LocalNode) -> GuardStatus:
    """The status once the guard has ended by itself."""
    for _ in range(200):
        status = await guard_status(node, EXPERIMENT)
        if not status.alive:
            return status
        await asyncio.sleep(0.1)
    raise AssertionError(f"the guard did not end: {status}")


async def test_it_stands_alone_and_ends_when_told(node: LocalNode) -> None:
    assert (await guard_status(node, EXPERIMENT)).alive is False
    status = await start_guard(node, spec(), NONE)
    assert status.alive
    assert status.pid is not None
    guard = psutil.Process(status.pid)
    assert os.getsid(status.pid) == status.pid
    assert "LAB_SCRIPT" not in guard.environ()
    assert guard.terminal() is None

    same = await start_guard(node, spec(), NONE)
    assert same.pid == status.pid
    assert (await whats(node)).count("guard stands") == 1

    over = await end_guard(node, EXPERIMENT, holder="console-a")
    assert not over.alive
    assert over.detail == "the guard ended: told to end"
    assert not alive(status.pid)


async def test_only_one_of_many_started_at_once_stands(node: LocalNode) -> None:
    answers = await asyncio.gather(
        *(start_guard(node, spec(), NONE) for _ in range(4)), return_exceptions=True
    )
    pids = {answer.pid for answer in answers if isinstance(answer, GuardStatus)}
    status = await guard_status(node, EXPERIMENT)
    assert status.alive
    assert pids == {status.pid}
    assert all(isinstance(answer, GuardStatus | ServiceError) for answer in answers)
    assert (await whats(node)).count("guard stands") == 1


async def test_a_second_console_is_refused_until_it_takes_over(node: LocalNode) -> None:
    first = await start_guard(node, spec(), NONE)
    with pytest.raises(ServiceError, match="console-a holds this node"):
        await start_guard(node, spec(holder="console-b"), NONE)
    with pytest.raises(ServiceError, match="console-a holds this node"):
        await renew_lease(node, EXPERIMENT, holder="console-b", lease_seconds=60)
    with pytest.raises(ServiceError, match="console-a holds this node"):
        await end_guard(node, EXPERIMENT, holder="console-b")
    with pytest.raises(ServiceError, match=f"a guard of experiment {EXPERIMENT} stands"):
        await start_guard(node, spec(experiment="another", holder="console-b"), NONE)
    taken = await start_guard(node, spec(holder="console-b"), NONE, takeover=True)
    assert taken.pid == first.pid
    assert taken.lease.holder == "console-b"
    with pytest.raises(ServiceError, match="console-b holds this node"):
        await renew_lease(node, EXPERIMENT, holder="console-a", lease_seconds=60)


async def test_impossible_windows_and_floors_are_refused_before_anything_starts(node: LocalNode) -> None:
    with pytest.raises(InputError, match="not below the node's total memory"):
        await start_guard(node, spec(floors=Floors(training_bytes=1 << 60)), NONE)
    with pytest.raises(InputError, match="window is already over"):
        await start_guard(node, spec(window_seconds_left=-3), NONE)
    assert not (node.home / ".lab" / EXPERIMENT).exists()
    with pytest.raises(ServiceError, match="no guard was started"):
        await renew_lease(node, EXPERIMENT, holder="console-a", lease_seconds=60)


async def test_a_renewed_lease_holds_and_an_expired_one_stays_expired(node: LocalNode) -> None:
    await start_guard(node, spec(lease_seconds=3), NONE)
    lease = await renew_lease(node, EXPERIMENT, holder="console-a", lease_seconds=60, phase="training")
    assert lease.state == "held"
    assert lease.renewals == 1
    assert lease.seconds_left is not None
    assert lease.seconds_left > 50
    assert (await guard_status(node, EXPERIMENT)).phase == "training"
    await renew_lease(node, EXPERIMENT, holder="console-a", lease_seconds=0.2)
    status = await ended(node)
    assert "never touched" in status.detail
    assert status.lease.state == "expired"
    assert "lease ran out" in await whats(node)
    with pytest.raises(ServiceError, match="the guard is gone"):
        await renew_lease(node, EXPERIMENT, holder="console-a", lease_seconds=60)


async def test_the_window_ends_whatever_the_lease_says(node: LocalNode) -> None:
    await start_guard(node, spec(lease_seconds=600, window_seconds_left=0.5), NONE)
    status = await ended(node)
    assert status.lease.state == "window over"
    assert "window over" in await whats(node)


async def test_when_the_lease_runs_out_the_labs_jobs_end_and_nothing_else(node: LocalNode) -> None:
    marked = await running(node, f"LAB_RUN_ID={EXPERIMENT}/e0")
    deaf = await running(node, f"LAB_RUN_ID={EXPERIMENT}/e1", "trap : TERM; while :; do sleep 1; done")
    foreign = await running(node, "LAB_RUN_ID=another/e0")
    beside = f"exec env LAB_RUN_DIR=/another/home/.lab/{EXPERIMENT}/e0 sleep 600"
    of_another_node = await running(node, f"LAB_RUN_ID={EXPERIMENT}/e0", beside)
    unmarked = await running(node, "OTHER=1")
    by_pid_file = await running(node, "OTHER=2")
    run = node.home / ".lab" / EXPERIMENT / "e2"
    run.mkdir(parents=True)
    ticks = Path(f"/proc/{by_pid_file}/stat").read_text().rpartition(")")[2].split()[19]
    (run / "pid").write_text(f"pid={by_pid_file}\nstart_ticks={ticks}\n")
    stale = node.home / ".lab" / EXPERIMENT / "e3"
    stale.mkdir()
    (stale / "pid").write_text(f"pid={unmarked}\nstart_ticks=1\n")

    await start_guard(node, spec(lease_seconds=0.5, job_grace_seconds=0.5), NONE)
    await ended(node)
    assert not any(alive(pid) for pid in (marked, deaf, by_pid_file))
    assert all(alive(pid) for pid in (foreign, of_another_node, unmarked))
    told = json.loads((run / "ended-by-guard.json").read_text())
    assert told["reason"] == "lease"


async def test_a_guard_whose_folder_was_removed_ends(node: LocalNode) -> None:
    status = await start_guard(node, spec(lease_seconds=600), NONE)
    assert status.pid is not None
    pid = status.pid
    (node.home / ".lab").rename(node.home / "removed")
    await until(lambda: not alive(pid), "the guard has nothing to guard with")


async def test_a_sample_tells_which_process_is_of_which_run(node: LocalNode) -> None:
    first = await running(node, f"LAB_RUN_ID={EXPERIMENT}/e0")
    second = await running(node, f"LAB_RUN_ID={EXPERIMENT}/e1")
    await start_guard(node, spec(sample_seconds=0.05), NONE)

    for _ in range(200):
        samples = (await follow_guard(node, EXPERIMENT)).samples
        if samples and set(samples[-1].jobs) == {first, second}:
            break
        await asyncio.sleep(0.1)
    newest = samples[-1]
    assert newest.jobs_of_run == {"e0": (first,), "e1": (second,)}
    assert min(newest.jobs.values()) > 0


async def running(node: LocalNode, marker: str, script: str = "exec sleep 600") -> int:
    answer = await node.run(
        'env "$1" setsid -f sh -c \'echo $$ >"$0"; eval "$1"\' "$2" "$3" </dev/null >/dev/null 2>&1; '
        'while [ ! -s "$2" ]; do sleep 0.02; done; cat "$2"',
        args=(marker, str(node.home / f"pid-{abs(hash((marker, script)))}"), script),
    )
    return int(answer.stdout)


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


async def test_a_reboot_is_seen_from_the_boot_id(node: LocalNode) -> None:
    status = await start_guard(node, spec(), NONE)
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    await until(lambda: not alive(status.pid or 0), "the guard is gone")
    gone = await guard_status(node, EXPERIMENT)
    assert not gone.alive
    assert "gone without having ended itself" in gone.detail

    state = json.loads(state_file(node).read_text())
    state["guard"]["boot_id"] = "00000000-0000-4000-8000-000000000000"
    state["service_touched"] = True
    state_file(node).write_text(json.dumps(state))
    rebooted = await guard_status(node, EXPERIMENT)
    assert rebooted.rebooted
    assert "rebooted" in rebooted.detail
    assert "still to be restored" in rebooted.detail
    assert rebooted.phase == "stopped"

    again = await start_guard(node, spec(), NONE)
    assert again.alive
    assert not again.rebooted
    assert again.service_touched
    assert "the node was rebooted" in await whats(node)


async def test_samples_are_numbered_without_gaps_and_bounded(node: LocalNode) -> None:
    await start_guard(node, spec(sample_seconds=0.02, samples_limit_bytes=1 << 16), NONE)
    folder = state_file(node).parent
    await until(lambda: (folder / "samples.jsonl.1").exists(), "the file was turned over", seconds=60)
    samples = (await follow_guard(node, EXPERIMENT)).samples
    numbers = [sample.n for sample in samples]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    later = (await follow_guard(node, EXPERIMENT, since=numbers[-3], limit=2)).samples
    assert [sample.n for sample in later] == numbers[-2:]
    sizes = [path.stat().st_size for path in folder.glob("samples.jsonl*")]
    assert sum(sizes) <= 1 << 16
    first = samples[0]
    assert first.memory.total_bytes > first.memory.available_bytes > 0
    assert first.memory.driver_held_bytes is not None
    if first.gpu_utilisation_percent is None:
        assert first.gpu_missing

    await end_guard(node, EXPERIMENT, holder="console-a")
    before = (await follow_guard(node, EXPERIMENT)).samples[-1].n
    old = (folder / "samples.jsonl").stat().st_size
    await start_guard(node, spec(), NONE)
    await until(lambda: (folder / "samples.jsonl").stat().st_size > old, "a new sample is there")
    after = (await follow_guard(node, EXPERIMENT, since=before)).samples
    assert after[0].n == before + 1


async def test_a_folder_that_cannot_be_made_is_told(node: LocalNode) -> None:
    (node.home / ".lab").mkdir()
    (node.home / ".lab" / "blocked").write_text("")
    with pytest.raises(ServiceError, match="can't create"):
        await start_guard(node, spec(experiment="blocked"), NONE)
