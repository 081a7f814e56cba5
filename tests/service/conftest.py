"""A real Docker engine for this folder, stand-in services, and nodes with and without SSH."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from support.docker_engine import Engine, Standin, docker_engine, free_port, why_not
from support.local_node import LocalNode
from support.processes import end_processes_of
from support.window import FAST

from console.core.plan.service import CommandService, DockerService


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with docker_engine(tmp_path_factory.mktemp("docker")) as running:
        yield running


@pytest.fixture
def standin(tmp_path: Path) -> Standin:
    """A stand-in that becomes ready in a third of a second unless it is told otherwise."""
    made = Standin(f"vllm-{uuid4().hex[:8]}", free_port(), tmp_path / "control")
    made.set()
    return made


@pytest.fixture
def node(tmp_path: Path) -> Iterator[LocalNode]:
    home = tmp_path / "home"
    home.mkdir()
    yield LocalNode(home)
    end_processes_of(tmp_path)


@pytest.fixture
def docker_spec(engine: Engine, standin: Standin) -> Iterator[Callable[..., DockerService]]:
    """`docker_spec(**more)`: the stand-in as a docker service; its container is removed after the test."""

    def make(**more: object) -> DockerService:
        return DockerService.model_validate(
            {"kind": "docker", "name": standin.name, "container": standin.name, "base_url": standin.url}
            | {"docker": engine.docker}
            | FAST
            | more
        )

    yield make
    engine("rm", "-f", standin.name, check=False)


@pytest.fixture
def command_spec(standin: Standin, node: LocalNode) -> Callable[..., CommandService]:
    """`command_spec(**more)`: the stand-in as a plain process."""

    def make(**more: object) -> CommandService:
        return CommandService.model_validate(
            {"kind": "command", "name": standin.name, "base_url": standin.url}
            | {"start": standin.process_argv(), "pid_file": "~/service.pid", "log_file": "~/service.log"}
            | FAST
            | more
        )

    return make


@pytest.fixture
def bystander(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of somebody else, which nothing here may touch."""
    process = subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"]})
    yield process
    process.kill()
    process.wait()


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outcomes are looked for more often than a console has to."""
    monkeypatch.setattr("console.nodes.service.calls._POLL_SECONDS", 0.1)
