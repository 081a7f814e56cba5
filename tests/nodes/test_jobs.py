"""Jobs: detached at birth, found again, stopped with nothing left."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from support.hosts import Host
from support.processes import end_processes_of, is_alive, processes_with
from support.trees import training_argv
from support.waiting import until

from console.core.errors import InputError, NodeError
from console.nodes import jobs
from console.nodes.embedded import embedded_nodes
from console.nodes.jobs import JobPlan, JobState
from console.nodes.ssh import Node

SLEEPER = ("sleep", "600")


def folder_of(host: Host, run: str = "E0", experiment: str = "lab") -> Path:
    return host.home / ".lab" / experiment / run


async def command(*words: str) -> int:
    process = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.DEVNULL)
    return await process.wait()


async def until_state(node: Node, state: str, run: str = "E0") -> JobState:
    for _ in range(200):
        found = await jobs.look(node, "lab", run)
        if found.state == state:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"not {state} but {found}")


def marked(host: Host, run: str = "E0") -> list[int]:
    return [process.pid for process in processes_with(f"LAB_RUN_DIR={folder_of(host, run)}")]


async def test_a_job_leaves_its_whole_story_in_the_run_folder(node: Node, host: Host) -> None:
    plan = JobPlan(
        "lab",
        "E0",
        ("bash", "-c", 'echo "out $GREETING $PWD"; echo err >&2; exit 7'),
        env={"GREETING": 'it\'s "@ARGV@" $HOME\n;', "HF_TOKEN": "canary-4711"},
        versions={"swift": "4.6.0"},
    )
    assert (await jobs.look(node, "lab", "E0")).state == "absent"
    started = await jobs.start(node, plan)
    folder = folder_of(host)
    assert (started.adopted, started.rung, started.run_dir) == (False, "setsid", str(folder))
    ended = await until_state(node, "ended")
    assert (ended.exit_code, ended.pid) == (7, started.pid)
    assert not ended.boot_changed
    assert not ended.stop_requested
    log = (folder / "log").read_text()
    assert log == f'out it\'s "@ARGV@" $HOME\n; {folder}\nerr\n'
    assert (ended.log_bytes, ended.log_inode) == (len(log), (folder / "log").stat().st_ino)
    document = json.loads((folder / "plan.json").read_text())
    assert document["versions"] == {"swift": "4.6.0"}
    assert document["secret_env"] == ["HF_TOKEN"]
    assert await jobs.list_runs(node, "lab") == ("E0",)
    assert not any("canary-4711" in path.read_text() for path in folder.iterdir())


async def test_a_secret_reaches_the_job_only(node: Node, host: Host) -> None:
    script = 'test "${HF_TOKEN%11}" = canary-47 && exec sleep 600; exit 9'
    await jobs.start(node, JobPlan("lab", "E0", ("bash", "-c", script), env={"HF_TOKEN": "canary-4711"}))
    await until(lambda: len(marked(host)) == 1, "the job sees the secret")
    assert not any("canary-4711" in path.read_text() for path in folder_of(host).iterdir())
    assert (await jobs.stop(node, "lab", "E0", 5)).left == ()


async def test_starting_twice_adopts_also_at_the_same_moment(host: Host, node: Node, make_node) -> None:  # type: ignore[no-untyped-def]
    other = await make_node(host.target)
    plan = JobPlan("lab", "E0", SLEEPER)
    both = await asyncio.gather(jobs.start(node, plan), jobs.start(other, plan))
    assert sorted(started.adopted for started in both) == [False, True]
    assert both[0].pid == both[1].pid
    assert (await jobs.start(node, plan)).adopted
    assert len(marked(host)) == 1
    await jobs.stop(node, "lab", "E0", 5)
    assert (await jobs.start(node, plan)).adopted


async def test_a_job_survives_the_link_and_the_server(host: Host, node: Node) -> None:
    started = await jobs.start(node, JobPlan("lab", "E0", SLEEPER))
    lost = asyncio.Event()
    node.add_link_listener(lambda link: None if link.state == "up" else lost.set())
    await host.restart()
    await asyncio.wait_for(lost.wait(), 30)
    await node.wait_up(30)
    state = await until_state(node, "running")
    assert state.pid == started.pid
    assert state.heartbeat_age_seconds is not None
    assert len(marked(host)) == 1
    await jobs.stop(node, "lab", "E0", 5)


@pytest.mark.parametrize("manner", ["polite", "orphaning", "deaf"])
async def test_stopping_training_leaves_nothing(node: Node, host: Host, manner: str) -> None:
    await jobs.start(node, JobPlan("lab", "E0", training_argv(host.root, manner)))
    log = folder_of(host) / "log"
    await until(lambda: log.read_text().count("worker") == 2 and "up" in log.read_text(), "the workers run")
    workers = [int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("worker")]
    report = await jobs.stop(node, "lab", "E0", 2)
    assert report.left == ()
    assert not any(is_alive(pid) for pid in (*workers, *marked(host)))
    assert len(report.asked) == 1, "TERM goes to torchrun first"
    assert "torchrun got signal 15" in log.read_text()
    assert bool(report.killed) == (manner == "deaf")
    state = await until_state(node, "ended")
    assert state.stop_requested
    assert state.exit_code == report.exit_code != 0


async def test_a_killed_supervisor_is_vanished_and_its_orphans_can_be_stopped(node: Node, host: Host) -> None:
    started = await jobs.start(node, JobPlan("lab", "E0", training_argv(host.root, "deaf")))
    await until(lambda: len(marked(host)) == 4, "swift, torchrun and two workers run")
    os.kill(started.pid, signal.SIGKILL)
    state = await until_state(node, "vanished")
    assert set(state.orphan_pids) == set(marked(host))
    assert state.exit_code is None
    report = await jobs.stop(node, "lab", "E0", 1)
    assert (report.left, marked(host)) == ((), [])
    assert (await jobs.look(node, "lab", "E0")).orphan_pids == ()


async def test_a_pid_that_is_another_process_now_is_not_the_job(node: Node, host: Host) -> None:
    started = await jobs.start(node, JobPlan("lab", "E0", SLEEPER))
    stranger = await asyncio.create_subprocess_exec("sleep", "600")
    try:
        os.kill(started.pid, signal.SIGKILL)
        pid_file = folder_of(host) / "pid"
        pid_file.write_text(pid_file.read_text().replace(f"pid={started.pid}\n", f"pid={stranger.pid}\n", 1))
        assert (await jobs.look(node, "lab", "E0")).state == "vanished"
        await jobs.stop(node, "lab", "E0", 1)
        assert is_alive(stranger.pid)
        assert marked(host) == []
    finally:
        stranger.kill()
        await stranger.wait()


async def test_another_boot_is_noticed(node: Node, host: Host) -> None:
    started = await jobs.start(node, JobPlan("lab", "E0", SLEEPER))
    pid_file = folder_of(host) / "pid"
    original = pid_file.read_text()
    pid_file.write_text(re.sub("boot_id=.*", "boot_id=" + "0" * 36, original))
    state = await jobs.look(node, "lab", "E0")
    assert (state.state, state.boot_changed) == ("vanished", True)
    pid_file.write_text(original)
    assert (await jobs.look(node, "lab", "E0")).pid == started.pid
    await jobs.stop(node, "lab", "E0", 5)


async def test_two_nodes_on_one_machine_do_not_stop_each_others_run(
    node_pair: tuple[Node, Node], host_pair: tuple[Host, Host]
) -> None:
    for node in node_pair:
        await jobs.start(node, JobPlan("lab", "E1", SLEEPER))
    await jobs.stop(node_pair[0], "lab", "E1", 5)
    assert marked(host_pair[0], "E1") == []
    assert len(marked(host_pair[1], "E1")) == 1
    await jobs.stop(node_pair[1], "lab", "E1", 5)


async def test_a_missing_program_or_folder_is_told_before_anything_starts(node: Node, host: Host) -> None:
    with pytest.raises(NodeError, match="no program /opt/none/swift") as caught:
        await jobs.start(node, JobPlan("lab", "E0", ("/opt/none/swift", "sft")))
    assert "interpreter" in caught.value.next_step
    with pytest.raises(NodeError, match="no folder /no/such/folder"):
        await jobs.start(node, JobPlan("lab", "E0", SLEEPER, cwd="/no/such/folder"))
    assert (await jobs.look(node, "lab", "E0")).state == "absent"
    with pytest.raises(NodeError, match="no such run"):
        await jobs.stop(node, "lab", "nothing")


async def test_a_program_is_looked_for_where_the_job_will_look(node: Node, host: Host) -> None:
    (host.home / "bin").mkdir()
    program = host.home / "bin" / "train"
    program.write_text('#!/bin/bash\necho "here $PWD"\n')
    program.chmod(0o755)
    (host.home / "work").mkdir()
    env = {"PATH": f"{host.home / 'bin'}:/usr/bin:/bin"}
    await jobs.start(node, JobPlan("lab", "E0", ("train",), env=env, cwd="~/work"))
    assert (await until_state(node, "ended")).exit_code == 0
    assert (folder_of(host) / "log").read_text() == f"here {host.home / 'work'}\n"


async def test_a_home_that_can_not_be_written_is_told(make_host, make_node) -> None:  # type: ignore[no-untyped-def]
    host = await make_host("node-a", environment={"HOME": "/proc/nowhere"})
    node = await make_node(host.target)
    with pytest.raises(NodeError, match="folder can't be made") as caught:
        await jobs.start(node, JobPlan("lab", "E0", SLEEPER))
    assert "writable" in caught.value.next_step


async def test_a_full_disk_is_told_and_nothing_half_done_stays(node: Node, host: Host) -> None:
    lab = host.home / ".lab"
    lab.mkdir()
    if await command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(lab)) != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        (lab / "filler").write_bytes(b"")
        with contextlib.suppress(OSError), (lab / "filler").open("wb", buffering=0) as filler:
            while filler.write(b"x" * 512):
                pass
        with pytest.raises(NodeError, match=r"full|folder can't be made") as caught:
            await jobs.start(node, JobPlan("lab", "E0", SLEEPER))
        assert caught.value.next_step
        (lab / "filler").unlink()
        assert not (await jobs.start(node, JobPlan("lab", "E0", SLEEPER))).adopted
        await jobs.stop(node, "lab", "E0", 5)
        await until(lambda: not processes_with(f"HOME={host.home}"), "nothing uses the file system")
    finally:
        assert await command("umount", "-l", str(lab)) == 0


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "-x", "a\n", "x" * 101, "a;b", "ä"])
async def test_names_that_are_no_folder_names_are_refused(node: Node, name: str) -> None:
    for plan in (JobPlan(name, "E0", SLEEPER), JobPlan("lab", name, SLEEPER)):
        with pytest.raises(InputError):
            await jobs.start(node, plan)
    with pytest.raises(InputError):
        await jobs.look(node, "lab", name)


async def test_a_plan_that_no_shell_can_carry_is_refused(node: Node) -> None:
    for plan in (
        JobPlan("lab", "E0", ()),
        JobPlan("lab", "E0", ("a\0b",)),
        JobPlan("lab", "E0", SLEEPER, env={"A B": "x"}),
    ):
        with pytest.raises(InputError):
            await jobs.start(node, plan)


_LINGERING = {
    "loginctl": "#!/bin/bash\necho yes\n",
    "systemd-run": '#!/bin/bash\necho "$*" >>"$HOME/asked"\nwhile [[ $1 == --* ]]; do shift; done\n'
    'env -i setsid -f "$@" </dev/null >/dev/null 2>&1\n',
}


@pytest.mark.parametrize("works", [True, False])
async def test_systemd_takes_the_job_where_the_user_lingers(
    make_host,
    make_node,
    tmp_path: Path,
    works: bool,  # type: ignore[no-untyped-def]
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in _LINGERING.items():
        works_here = works or name == "loginctl"
        (tools / name).write_text(text if works_here else "#!/bin/bash\necho no bus; exit 1\n")
        (tools / name).chmod(0o755)
    host = await make_host(
        "node-a",
        environment={"PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    node = await make_node(host.target)
    plan = JobPlan("lab", "E0", ("bash", "-c", 'echo "$HOME"; sleep 600'), env={"HF_TOKEN": "canary-4711"})
    started = await jobs.start(node, plan)
    log = folder_of(host) / "log"
    await until(lambda: log.read_text() == f"{host.home}\n", "the job runs with the login's home")
    if works:
        asked = (host.home / "asked").read_text()
        assert started.rung == "systemd"
        assert "--user --quiet --collect --unit=lab-" in asked
        assert "canary" not in asked
    else:
        assert started.rung == "setsid"
        assert "no bus" in started.note
    assert (await jobs.stop(node, "lab", "E0", 5)).left == ()


_CONSOLE = """
import asyncio, sys
from pathlib import Path
from console.nodes import jobs
from console.nodes.embedded import embedded_nodes
from console.nodes.ssh import Node

async def main():
    async with embedded_nodes(Path(sys.argv[1])) as nodes:
        node = Node(nodes[0].target)
        await node.connect()
        started = await jobs.start(node, jobs.JobPlan("lab", "E0", ("sleep", "600")))
        print(started.pid, nodes[0].target.port, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_job_on_an_embedded_node_outlives_a_killed_console_and_is_adopted(tmp_path: Path) -> None:
    console = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _CONSOLE, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert console.stdout is not None
        pid, port = map(int, (await console.stdout.readline()).split())
        console.kill()
        await console.wait()
        assert is_alive(pid)
        async with embedded_nodes(tmp_path) as nodes:
            assert nodes[0].target.port == port
            node = Node(nodes[0].target)
            await node.connect()
            started = await jobs.start(node, JobPlan("lab", "E0", SLEEPER))
            assert (started.adopted, started.pid) == (True, pid)
            assert (await jobs.look(node, "lab", "E0")).state == "running"
            assert (await jobs.stop(node, "lab", "E0", 5)).left == ()
            await node.close()
    finally:
        if console.returncode is None:
            console.kill()
            await console.wait()
        end_processes_of(tmp_path)
