"""A Docker engine of the tests' own: its own socket and data, no network changes, gone afterwards."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

DOCKERD = shutil.which("dockerd", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
STANDIN = Path(__file__).parent / "standin_service.py"
IMAGE = "stand-in"
_PYTHON = Path("/usr/bin/python3")
_LEFT_OUT = {
    "test",
    "idlelib",
    "tkinter",
    "ensurepip",
    "lib2to3",
    "turtledemo",
    "__pycache__",
    "dist-packages",
}


def why_not() -> str | None:
    """Why no engine can be started here; None when one can."""
    if DOCKERD is None or shutil.which("docker") is None:
        return "no dockerd here: apt-get install docker.io"
    if os.getuid() != 0:
        return "dockerd needs root"
    return None if _PYTHON.exists() else "the image is made of /usr/bin/python3, which is not here"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Standin:
    """One stand-in service: its port, and the folder through which it is told how to behave."""

    name: str
    port: int
    control: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def set(self, **mode: Any) -> None:
        """How it behaves from now on (and after its next start)."""
        self.control.mkdir(parents=True, exist_ok=True)
        temporary = self.control / "mode.tmp"
        temporary.write_text(json.dumps(mode))
        temporary.rename(self.control / "mode.json")

    def process_argv(self) -> tuple[str, ...]:
        return (sys.executable, str(STANDIN), "--port", str(self.port), "--control", str(self.control))


@dataclass
class Engine:
    """A running engine."""

    address: str

    @property
    def docker(self) -> tuple[str, ...]:
        return ("docker", "-H", self.address)

    def __call__(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run([*self.docker, *arguments], capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"docker {' '.join(arguments)}: {done.stderr}")
        return done.stdout.strip()

    def run_standin(self, standin: Standin, *arguments: str) -> None:
        standin.control.mkdir(parents=True, exist_ok=True)
        self(
            "run", "-d", "--name", standin.name, "--network", "host",
            "-v", f"{standin.control}:/control", *arguments, IMAGE,
            "/usr/bin/python3", "/service.py", "--port", str(standin.port), "--control", "/control",
        )  # fmt: skip

    def running(self, name: str) -> bool:
        return self("inspect", "-f", "{{.State.Running}}", name, check=False) == "true"

    def policy(self, name: str) -> str:
        return self("inspect", "-f", "{{.HostConfig.RestartPolicy.Name}}", name)


@contextmanager
def docker_engine(folder: Path) -> Iterator[Engine]:
    """Start an engine with the stand-in's image; end it and everything in it."""
    assert DOCKERD is not None
    for name in ("data", "exec"):
        (folder / name).mkdir()
    address = f"unix://{folder}/d.sock"
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(
            [DOCKERD, "--iptables=false", "--bridge=none", "--storage-driver=vfs",
             f"--data-root={folder}/data", f"--exec-root={folder}/exec", "-H", address,
             "-p", f"{folder}/pid"],
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    engine = Engine(address)
    try:
        _wait_until_up(engine, daemon, folder / "log")
        _import_image(engine, folder)
        yield engine
    finally:
        names = engine("ps", "-aq", check=False).split()
        if names:
            engine("rm", "-f", *names, check=False)
        below = psutil.Process(daemon.pid).children(recursive=True) if daemon.poll() is None else []
        daemon.terminate()
        try:
            daemon.wait(30)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        for process in below:
            with contextlib.suppress(psutil.Error):
                process.kill()
        for mount in sorted((folder / "exec" / "netns").glob("*")):
            subprocess.run(["umount", "-l", str(mount)], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_up(engine: Engine, daemon: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 60
    while not engine("info", "-f", "{{.ID}}", check=False):
        if daemon.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"dockerd did not come up:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)


def _import_image(engine: Engine, folder: Path) -> None:
    """An image of this computer's python3, its libraries and the stand-in; no registry is asked."""
    archive = folder / "image.tar"
    binary = _PYTHON.resolve()
    with tarfile.open(archive, "w") as image:
        image.add(binary, str(binary))
        link = tarfile.TarInfo("/usr/bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, str(binary)
        image.add(STANDIN, "/service.py")
        if binary != _PYTHON:
            image.addfile(link)
        for library in _libraries(binary):
            image.add(library.resolve(), str(library))
        image.add(Path("/usr/lib") / binary.name, filter=_kept)
    engine("import", str(archive), IMAGE)
    archive.unlink()


def _libraries(binary: Path) -> list[Path]:
    listing = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=True).stdout
    return [Path(word) for line in listing.splitlines() for word in line.split() if word.startswith("/")]


def _kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = set(Path(member.name).parts)
    return None if parts & _LEFT_OUT or any(part.startswith("config-") for part in parts) else member
