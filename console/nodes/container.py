"""Training in a container: a program on the node that stands for the image's Python.

Probes, launches, stopping, adopting and sampling take an interpreter by its path; in a container lab that
path is this program. It passes variables, input and signals on, mounts the lab's folder and the shared one at
their own paths, and labels the container with the run, so that none of ours is left behind unrecognised.
"""

import shlex
from collections.abc import Sequence

from console.nodes import remote
from console.nodes.ssh import Node

SECONDS = 30
_WRITE = (
    'set -e; umask 077; f=$HOME/.lab/bin/"$1"; mkdir -p "$HOME/.lab/bin" "$HOME/.lab/cache"; '
    'cat > "$f.$$"; chmod 700 "$f.$$"; mv "$f.$$" "$f"; printf %s "$f"'
)


async def install_python(
    node: Node,
    name: str,
    *,
    image: str,
    python: str,
    mounts: Sequence[str],
    docker: Sequence[str] = ("docker",),
    ulimits: Sequence[str] = (),
    extra_args: Sequence[str] = (),
) -> str:
    """Write the program as `~/.lab/bin/<name>` and return its absolute path. Raises `NodeError`.

    `image` is named by digest. `mounts` are folders on the node that exist at the same path inside; the lab's
    own folder is always one of them.
    """
    text = program(
        image=image, python=python, mounts=mounts, docker=docker, ulimits=ulimits, extra_args=extra_args
    )
    answer = await node.run(_WRITE, args=(name,), timeout=SECONDS, stdin=text.encode())
    return answer.text


def program(
    *,
    image: str,
    python: str,
    mounts: Sequence[str],
    docker: Sequence[str],
    ulimits: Sequence[str],
    extra_args: Sequence[str],
) -> str:
    """The program's text."""
    volumes = ['-v "$HOME/.lab:$HOME/.lab"', *(f"-v {shlex.quote(f'{path}:{path}')}" for path in mounts)]
    values = {
        "@DOCKER@": shlex.join(docker),
        "@IMAGE@": shlex.quote(image),
        "@PYTHON@": shlex.quote(python),
        "@MOUNTS@": " ".join(volumes),
        "@LIMITS@": " ".join(f"--ulimit {shlex.quote(limit)}" for limit in ulimits),
        "@EXTRA@": shlex.join(extra_args),
    }
    text = remote.source("container_python.sh")
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text
