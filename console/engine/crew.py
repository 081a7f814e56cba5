"""The nodes of an experiment: reached, described, and put where launches can name them."""

import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from console.core.errors import HostKeyUnknown, LabError
from console.core.plan.launch import fill
from console.core.plan.profile import ContainerEnvironment, NodeSpec, Profile
from console.core.plan.service import BorrowedService, NoService, filled, for_node, start_order
from console.core.record.events import LinkChanged
from console.engine.recorder import Recorder
from console.nodes import hostkeys
from console.nodes.container import install_python
from console.nodes.embedded import embedded_nodes
from console.nodes.ssh import LinkState, Node, SshTarget

CONSOLE_PYTHON = "@console"


@dataclass(frozen=True, slots=True)
class Member:
    """One node of the lab, connected. `places` fills the placeholders of paths and flags."""

    spec: NodeSpec
    node: Node
    places: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def python(self) -> str:
        return self.places["python"]

    @property
    def shared(self) -> str:
        return self.places["shared"]

    def in_run(self, experiment: str, run: str) -> dict[str, str]:
        """The placeholders with `{run}` pointing at a run's folder."""
        return {**self.places, "run": f"{self.places['home']}/.lab/{experiment}/{run}"}


Crew = Mapping[str, Member]


@asynccontextmanager
async def assembled(
    profile: Profile,
    folder: Path,
    *,
    recorder: Recorder | None = None,
    accept_new: bool = False,
    on_accepted: Callable[[HostKeyUnknown], None] = lambda _: None,
) -> AsyncIterator[Crew]:
    """Every node of the profile connected, while the block runs; jobs on them outlive it.

    Embedded nodes are served from `folder`/nodes. Changes of a link are recorded. `on_accepted` is told of a
    host key that was not known and has been written to known_hosts. Raises the first node's
    `NodeError` when one can't be reached at the start.
    """
    async with AsyncExitStack() as stack:
        targets = await _targets(profile, folder, stack)
        crew: dict[str, Member] = {}
        for spec in profile.nodes:
            node = Node(targets[spec.name])
            stack.push_async_callback(node.close)
            if recorder is not None:
                stack.callback(_watch_link(node, recorder))
            await _connect(node, accept_new or profile.policies.accept_new_host_keys, on_accepted)
            places = await _places(profile, spec, node, folder)
            if recorder is not None and isinstance(profile.environment, ContainerEnvironment):
                places["python"] = await _container_python(profile, profile.environment, spec, node, places)
            crew[spec.name] = Member(spec, node, places)
        yield crew


async def _targets(profile: Profile, folder: Path, stack: AsyncExitStack) -> dict[str, SshTarget]:
    if not profile.embedded:
        return {spec.name: _target(spec) for spec in profile.nodes}
    names = [spec.name for spec in profile.nodes]
    root = (folder / "nodes").absolute()
    served = await stack.enter_async_context(embedded_nodes(root, names, environment=_own_words(profile)))
    return {node.name: node.target for node in served}


def _own_words(profile: Profile) -> dict[str, str]:
    """The lab's variables that need no node to be filled in: embedded shells have them like a login would."""
    return {name: value for name, value in profile.env.items() if "{" not in value}


def _target(spec: NodeSpec) -> SshTarget:
    assert spec.ssh is not None
    host = spec.ssh.alias or spec.ssh.host
    assert host is not None
    return SshTarget(
        name=spec.name,
        host=host,
        port=spec.ssh.port,
        user=spec.ssh.user,
        jump=spec.ssh.jump,
        identity_file=Path(spec.ssh.identity_file).expanduser() if spec.ssh.identity_file else None,
        config_files=tuple(Path(file) for file in spec.ssh.config_files),
        known_hosts=tuple(Path(file) for file in spec.ssh.known_hosts),
    )


async def _connect(node: Node, accept_new: bool, on_accepted: Callable[[HostKeyUnknown], None]) -> None:
    try:
        await node.connect()
    except HostKeyUnknown as unknown:
        if not accept_new:
            raise
        hostkeys.accept(unknown.known_hosts_line, Path(unknown.accept_into))
        on_accepted(unknown)
        await node.connect()


def _watch_link(node: Node, recorder: Recorder) -> Callable[[], None]:
    def changed(link: LinkState) -> None:
        recorder.record(
            LinkChanged(
                at=recorder.now(),
                node=node.name,
                state=link.state,
                rtt_seconds=link.rtt_seconds,
                why=link.why,
            )
        )

    return node.add_link_listener(changed)


async def _places(profile: Profile, spec: NodeSpec, node: Node, folder: Path) -> dict[str, str]:
    answer = await node.run('printf %s "$HOME"', timeout=30)
    home = answer.text.strip()
    if not home.startswith("/"):
        raise LabError(
            "the login has no home folder",
            why=f"HOME is {home!r}",
            node=spec.name,
            next_step="use another user",
        )
    places = {"home": home}
    if profile.embedded:
        places["embedded"] = str((folder / "nodes").absolute())
    python = sys.executable if spec.python == CONSOLE_PYTHON and profile.embedded else spec.python
    places["python"] = _absolute(fill(python, places), home)
    places["shared"] = _absolute(fill(profile.shared, places), home)
    return places


async def _container_python(
    profile: Profile, environment: ContainerEnvironment, spec: NodeSpec, node: Node, places: Mapping[str, str]
) -> str:
    """The program that stands for the image's interpreter on this node."""
    return await install_python(
        node,
        f"python-{profile.name}",
        image=environment.image,
        python=spec.python,
        mounts=[places["shared"]],
        docker=environment.docker,
        ulimits=environment.ulimits,
        extra_args=environment.extra_args,
    )


def _absolute(path: str, home: str) -> str:
    return f"{home}/{path[2:]}" if path.startswith("~/") else path


def service_of(profile: Profile, member: Member, nodes: list[str]) -> NoService | BorrowedService:
    """The service as it stands on one node, placeholders filled in; none on a node that it doesn't use."""
    if member.name not in start_order(profile.service, nodes):
        return NoService()
    return filled(for_node(profile.service, member.name), member.places)
