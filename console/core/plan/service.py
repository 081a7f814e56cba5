"""The service that the lab borrows the machines from: what it is, how it stops, what proves it is back.

Paths and commands may hold the profile's placeholders (`{home}`, `{python}`, …); `filled` replaces them.
Secrets are named, never written: an environment variable of the console, or a file on the node.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, TypeAdapter, model_validator

from console.core.plan.part import Integer, Number, Part, Variables

GIB = 1 << 30


class Canary(Part):
    """The request that proves a model really answers: temperature 0, one known answer."""

    endpoint: Literal["completions", "chat"] = "completions"
    prompt: str = "12*17="
    expected: str | None = "204"
    """Text that the answer must contain; none: the answer recorded before the stop."""
    max_tokens: Integer = Field(default=16, ge=1, le=1024)
    speed_tokens: Integer = Field(default=64, ge=4, le=4096)
    """Length of the second request, whose tokens/s is compared with the reference."""
    timeout_seconds: Number = Field(default=60, gt=0)


class _Borrowed(Part):
    """What every kind of service has."""

    name: str = Field(min_length=1, max_length=128)
    base_url: str = "http://127.0.0.1:8000"
    """Where the service answers, as seen from its own node."""
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Name of an environment variable of the console that holds the API key."""
    api_key_file: str | None = None
    """A file on the node that holds the API key."""
    model_id: str | None = None
    """The id that /v1/models must list; none: the one recorded before the stop."""
    canary: Canary = Canary()
    min_speed_fraction: Number = Field(default=0.7, gt=0, le=1)
    """Least tokens/s after the restore, as a fraction of the reference taken before the stop."""
    ready_timeout_seconds: Number = Field(default=3600, gt=0)
    restore_seconds: Number | None = Field(default=None, gt=0)
    """How long a restore takes on one node, for the window's end; a measured one counts more."""
    settle_seconds: Number = Field(default=3, ge=0)
    """How long it must run without a restart before that counts as running."""
    drain_seconds: Number = Field(default=120, ge=0)
    when_not_drained: Literal["ask", "stop"] = "ask"
    """What happens when requests are still in flight after `drain_seconds`."""
    stop_seconds: Number = Field(default=60, gt=0)
    """Time the service gets to end by itself before it is killed."""
    release_seconds: Number = Field(default=120, ge=0)
    """How long memory may take to come back after the stop."""
    needed_memory_bytes: Integer | None = Field(default=None, ge=0)
    """Memory that must be available for the runs once the service is stopped."""
    start_memory_bytes: Integer | None = Field(default=None, ge=0)
    """Memory that must be available before the service is started again."""
    driver_held_limit_bytes: Integer = Field(default=3 * GIB, ge=0)
    """Memory in no kernel category that still counts as nothing held."""
    engine_pattern: str = r"VLLM::|vllm serve|EngineCore"
    """Regular expression on command lines: processes that belong to an engine wherever they run."""
    drop_caches: bool = False
    """Whether the page cache is dropped before the start (needs root or passwordless sudo)."""
    nodes: tuple[str, ...] = ()
    """Nodes it runs on, in start order: workers first, head last; stopped in reverse. None: every node."""
    answering: Literal["last", "each"] = "last"
    """Which nodes answer requests: the head alone, or each node by itself."""
    overrides: dict[str, dict[str, Any]] = {}
    """Fields that differ on one node, e.g. {spark-2: {container: vllm-worker}}."""

    @model_validator(mode="after")
    def _checked(self) -> Self:
        url = urlsplit(self.base_url)
        if "{" not in self.base_url and (url.scheme not in {"http", "https"} or not url.hostname):
            raise ValueError(f"base_url {self.base_url!r} is not an http address")
        if url.username or url.password:
            raise ValueError("base_url holds a password; name it in api_key_env or api_key_file")
        if self.api_key_env and self.api_key_file:
            raise ValueError("give either api_key_env or api_key_file")
        try:
            re.compile(self.engine_pattern)
        except re.error as trouble:
            raise ValueError(
                f"engine_pattern {self.engine_pattern!r} is not a regular expression: {trouble}"
            ) from None
        return self


class NoService(Part):
    """Nothing serves on these machines."""

    kind: Literal["none"] = "none"
    name: str = "none"


class DockerService(_Borrowed):
    """A container that was started by hand, e.g. `vllm-fn`."""

    kind: Literal["docker"]
    container: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    docker: tuple[str, ...] = ("docker",)
    """The command in front, e.g. [sudo, -n, docker]."""


class ComposeService(_Borrowed):
    """A service of a compose project."""

    kind: Literal["compose"]
    project: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    service: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    docker: tuple[str, ...] = ("docker",)
    start_command: tuple[str, ...] = ()
    """Used when the node has neither the compose plugin nor docker-compose."""
    stop_command: tuple[str, ...] = ()


class SystemdService(_Borrowed):
    """A systemd unit, of the system or of the user."""

    kind: Literal["systemd"]
    unit: str = Field(pattern=r"^[A-Za-z0-9:_.@\\-]+$")
    user: bool = False
    systemctl: tuple[str, ...] = ("systemctl",)
    """The command in front, e.g. [sudo, -n, systemctl]."""
    container: str | None = None
    """The container that the unit runs, when it runs one."""


class CommandService(_Borrowed):
    """A plain process: started by `start`, known by its pid file."""

    kind: Literal["command"]
    start: tuple[str, ...] = Field(min_length=1)
    stop: tuple[str, ...] = ()
    """None: SIGTERM to its process group, SIGKILL after `stop_seconds`."""
    pid_file: str
    """Written by the console when it starts the process, or by the process itself."""
    log_file: str
    cwd: str | None = None
    env: Variables = {}


BorrowedService = DockerService | ComposeService | SystemdService | CommandService
ServiceSpec = Annotated[
    NoService | DockerService | ComposeService | SystemdService | CommandService, Field(discriminator="kind")
]
_ADAPTER: TypeAdapter[NoService | BorrowedService] = TypeAdapter(ServiceSpec)


def for_node(spec: NoService | BorrowedService, node: str) -> NoService | BorrowedService:
    """The service as it stands on one node: its overrides applied. Raises `ValueError` for a bad override."""
    if isinstance(spec, NoService) or node not in spec.overrides:
        return spec
    merged = spec.model_dump() | spec.overrides[node] | {"kind": spec.kind}
    return _ADAPTER.validate_python(merged)


def filled(spec: NoService | BorrowedService, values: Mapping[str, str]) -> NoService | BorrowedService:
    """The service with every `{name}` of `values` replaced, in every text of it."""
    return _ADAPTER.validate_python(_fill(spec.model_dump(), values))


def _fill(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in values.items():
            value = value.replace("{" + name + "}", text)
        return value
    if isinstance(value, dict):
        return {key: _fill(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_fill(item, values) for item in value)
    return value


def start_order(spec: NoService | BorrowedService, nodes: list[str]) -> list[str]:
    """Nodes of the service in the order in which it is started (stop in reverse); empty without a service."""
    if isinstance(spec, NoService):
        return []
    return [node for node in spec.nodes if node in nodes] if spec.nodes else list(nodes)


def answers_on(spec: NoService | BorrowedService, node: str, nodes: list[str]) -> bool:
    """Whether the health ladder on this node goes as far as requests."""
    order = start_order(spec, nodes)
    if node not in order or isinstance(spec, NoService):
        return False
    return spec.answering == "each" or node == order[-1]
