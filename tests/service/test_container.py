"""Training in a container of the real engine: probes; a job that runs, dies, hangs, is adopted, stopped."""

from collections.abc import AsyncIterator, Callable

import pytest
from support.docker_engine import IMAGE, Engine
from support.local_node import LocalNode
from support.waiting import until

from console.nodes import jobs
from console.nodes.container import install_python

pytestmark = pytest.mark.docker
EXPERIMENT = "in-container"
HANG = "import signal, time; signal.signal(15, signal.SIG_IGN); print('hangs', flush=True); time.sleep(600)"


def ours(engine: Engine) -> list[str]:
    return engine("ps", "-q", "--filter", f"label=lab.run={EXPERIMENT}/run").split()


@pytest.fixture
async def python(engine: Engine, node: LocalNode) -> AsyncIterator[str]:
    yield await install_python(
        node,  # type: ignore[arg-type]
        "python-test",
        image=IMAGE,
        python="/usr/bin/python3",
        mounts=[],
        docker=engine.docker,
    )
    for container in ours(engine):
        engine("rm", "-f", container, check=False)


@pytest.fixture
def start(node: LocalNode, python: str) -> Callable[..., object]:
    async def begin(program: str) -> jobs.JobStarted:
        plan = jobs.JobPlan(EXPERIMENT, "run", (python, "-u", "-c", program), {"WORD": "from the plan"})
        return await jobs.start(node, plan)  # type: ignore[arg-type]

    return begin


async def state(node: LocalNode) -> jobs.JobState:
    return await jobs.look(node, EXPERIMENT, "run")  # type: ignore[arg-type]


async def log_of(node: LocalNode) -> str:
    return (await node.run(f"cat ~/.lab/{EXPERIMENT}/run/log", timeout=10)).stdout.decode()


async def wait_for(node: LocalNode, wanted: str) -> jobs.JobState:
    seen = await state(node)
    for _ in range(200):
        if seen.state == wanted:
            break
        seen = await state(node)
    assert seen.state == wanted
    return seen


async def test_a_probe_runs_inside(node: LocalNode, python: str) -> None:
    answer = await node.run(
        f"echo 'import os; print(os.path.exists(\"/service.py\"))' | {python} -", timeout=60
    )
    assert answer.stdout.strip() == b"True"


async def test_arguments_pass_unharmed(node: LocalNode, python: str) -> None:
    hostile = "a b; $(touch /tmp/x) 'q' \"d\" *"
    answer = await node.run(
        '"$1" -c "import sys; print(sys.argv[1])" "$2"', args=(python, hostile), timeout=60
    )
    assert answer.stdout.decode().strip() == hostile


async def test_job_ends_with_its_own_status(node: LocalNode, start, engine: Engine) -> None:
    await start("import os, sys; print(os.environ['WORD'], flush=True); sys.exit(7)")
    assert (await wait_for(node, "ended")).exit_code == 7
    assert "from the plan" in await log_of(node)
    assert ours(engine) == []


async def test_running_job_is_labelled_and_adopted(node: LocalNode, start, engine: Engine) -> None:
    first = await start("import time; print('up', flush=True); time.sleep(600)")
    await until(lambda: ours(engine), "a container with our label")
    again = await start("import time; time.sleep(600)")
    assert again.adopted
    assert again.pid == first.pid
    assert len(ours(engine)) == 1
    report = await jobs.stop(node, EXPERIMENT, "run", 5)  # type: ignore[arg-type]
    assert report.left == ()
    await until(lambda: not ours(engine), "the container gone")


async def test_hanging_job_leaves_nothing(node: LocalNode, start, engine: Engine) -> None:
    await start(HANG)
    await until(lambda: ours(engine), "a container with our label")
    report = await jobs.stop(node, EXPERIMENT, "run", 1)  # type: ignore[arg-type]
    assert report.left == ()
    await until(lambda: not ours(engine), "the container gone")
    assert (await state(node)).state == "ended"
