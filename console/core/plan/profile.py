"""A lab: two machines, what serves on them, what is trained, what must hold, and until when.

Paths and flag values may hold placeholders, filled in for each node when a run is planned:
`{home}` the node's home folder, `{shared}` the shared cache, `{run}` the run folder, `{python}` the training
interpreter, `{embedded}` the folder of the embedded nodes (embedded labs only).
"""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from console.core.errors import InputError
from console.core.plan.matrix import Configuration, Flag, Matrix, Settings
from console.core.plan.part import Integer, Number, Part, Variables
from console.core.plan.service import ServiceSpec
from console.core.plan.yaml_text import parse_yaml

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]


class Ssh(Part):
    """How to reach a node: an alias of ~/.ssh/config, or host, port, user and jump host written out."""

    alias: str | None = None
    host: str | None = None
    port: Integer | None = Field(default=None, ge=1, le=65535)
    user: str | None = None
    jump: str | None = None
    identity_file: str | None = None
    config_files: list[str] = ["~/.ssh/config"]
    known_hosts: list[str] = []
    """None: UserKnownHostsFile of the ssh_config, else ~/.ssh/known_hosts."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.alias is None) == (self.host is None):
            raise ValueError("give either alias (of ~/.ssh/config) or host")
        return self


class NodeSpec(Part):
    """One machine of the lab."""

    name: Name
    ssh: Ssh | None = None
    """Absent in an embedded lab."""
    address: str
    """Name or address at which the other nodes reach this one (rendezvous)."""
    python: str
    """The training interpreter: a path on the node, or `@console` for the console's own (embedded labs)."""
    interface: str | None = None
    """Network interface for NCCL, gloo and rendezvous, e.g. enp1s0f1np1."""
    rdma_devices: list[str] = []
    """HCAs that NCCL shall use, e.g. [rocep1s0f1, roceP2p1s0f1]."""
    gpu: Integer | None = Field(default=None, ge=0)
    """CUDA_VISIBLE_DEVICES; none leaves it unset."""
    env: Variables = {}


class VenvEnvironment(Part):
    """A virtual environment of its own; `python` of each node belongs to it."""

    kind: Literal["venv"] = "venv"
    path: str | None = None
    """Folder of the venv; none means: verify the interpreter as it is."""
    create: bool = False
    requirements: list[str] = []


class ContainerEnvironment(Part):
    """A container image, named by digest. `python` of each node is then the interpreter inside the image."""

    kind: Literal["container"] = "container"
    docker: list[str] = ["docker"]
    """The command in front, e.g. [sudo, -n, docker]."""
    image: str = Field(pattern=r"^\S+@sha256:[0-9a-f]{64}$")
    ulimits: list[str] = ["memlock=-1", "stack=67108864"]
    """RDMA pins memory, so memlock has to be unlimited."""
    extra_args: list[str] = []


class Network(Part):
    master_port: Integer | Literal["auto"] = 29500
    """Rendezvous port on the first node; `auto` takes a free one for each run."""
    check_port_seconds: Number = Field(default=10.0, gt=0)
    max_clock_skew_seconds: Number = Field(default=0.5, gt=0)


class TinyModel(Part):
    """A model built on the node from a seed, so that nothing is downloaded."""

    layers: Integer = Field(ge=1, le=64)
    hidden: Integer = Field(ge=16)
    heads: Integer = Field(ge=1)
    kv_heads: Integer = Field(ge=1)
    ffn: Integer = Field(ge=16)
    vocab: Integer = Field(ge=300)
    rows: Integer = Field(ge=16, le=100_000)
    """Rows of the data set built beside it."""
    seed: Integer = 42


class ModelSpec(Part):
    path: str
    """Hugging Face / ModelScope id, or a path on the nodes."""
    name: str | None = None
    """Name in the ledger's catalogue, e.g. Qwen2.5-7B. The shapes of `build` come before it; where there is
    neither, the ledger has no figures on paper."""
    model_type: str | None = None
    template: str | None = None
    build: TinyModel | None = None

    @property
    def title(self) -> str:
        """What people call the model: its name, else its id, else the last part of its path."""
        is_path = self.path[:1] in ("/", "~", "{", ".")
        return self.name or (self.path.rstrip("/").rsplit("/", 1)[-1] if is_path else self.path)


class Dataset(Part):
    sources: list[str] = Field(min_length=1)
    """Ids with an optional #count, or paths."""
    split_ratio: Number = Field(default=0.0, ge=0, lt=1)


class Smoke(Part):
    """What items 5 and 6 of the checklist train; settings left out are those of the lab."""

    model: ModelSpec | None = None
    dataset: Dataset | None = None
    settings: dict[str, Flag | None] = {}
    timeout_seconds: Number = Field(default=840, gt=0)


class Peak(Part):
    """A denominator for MFU: dense, never the figure with sparsity."""

    dtype: Literal["bfloat16", "float16", "float32", "fp8"]
    tflops: Number = Field(gt=0)
    source: str
    origin: Literal["published", "derived", "measured"]


class Window(Part):
    """The maintenance window. Either both ends, or a length counted from the start of the lab."""

    start: datetime | None = None
    end: datetime | None = None
    hours: Number | None = Field(default=None, gt=0, le=72)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.hours is not None and self.end is not None:
            raise ValueError("give either hours or end, not both")
        if self.start and self.end and self.end <= self.start:
            raise ValueError("end is not after start")
        for stamp in (self.start, self.end):
            if stamp is not None and stamp.tzinfo is None:
                raise ValueError("give the time zone too, e.g. 2026-11-29T22:00:00+08:00")
        return self


class Policies(Part):
    """What is done without a person: answers to decisions in headless mode, and what blocks."""

    accept_new_host_keys: bool = False
    item_failed: Literal["retry", "go on", "degrade", "stop"] = "stop"
    walk_failed: Literal["go on", "degrade", "stop"] = "degrade"
    run_failed: Literal["retry", "go on", "stop"] = "go on"
    optional_steps: list[str] = []
    """Checklist steps whose failure matters nothing here, e.g. flash_attn where another backend is used."""
    prerequisite_blocks: list[str] = []
    """Names of prerequisite checks that refuse the start instead of warning."""
    needed_disk_bytes: Integer | None = Field(default=None, ge=0)
    """Room for checkpoints that every node must have; none: only shown."""
    floor_bytes: Integer = Field(default=0, ge=0)
    """Memory that must stay available on each node while training; below it the guard ends the lab's jobs."""
    restoring_floor_bytes: Integer = Field(default=0, ge=0)
    """The same while the service is started again: a healthy engine dips lower than training may."""
    floor_hold_seconds: Number = Field(default=0.0, ge=0)
    lease_seconds: Number = Field(default=900, ge=30, le=86_400)
    """How long the nodes wait for a sign of the console before they restore the service by themselves."""


class Profile(Part):
    """One lab, complete: see `profiles/` for two of them."""

    name: Name
    title: str
    embedded: bool = False
    """Nodes are started on this computer, in this process; for trying the console and for its tests."""
    degraded: str | None = None
    """Why this lab can't run the full experiment (written into the report's head); none: it can."""
    nodes: list[NodeSpec] = Field(min_length=1, max_length=16)
    environment: Annotated[VenvEnvironment | ContainerEnvironment, Field(discriminator="kind")]
    network: Network = Network()
    device: str | None = None
    """The device's name in the ledger's catalogue, e.g. GB10."""
    gpus_per_node: Integer | None = Field(default=None, ge=0)
    """What the driver must list on every node; 0 for nodes without a GPU."""
    shared: str
    """The folder that all nodes share; MODELSCOPE_CACHE points into it."""
    service: ServiceSpec
    model: ModelSpec
    dataset: Dataset
    settings: Settings
    matrix: Matrix
    degraded_matrix: Matrix | None = None
    """What runs instead when the checklist ends with the main line down; none: the matrix as it is."""
    smoke_ordinary: Smoke = Smoke()
    smoke_megatron: Smoke = Smoke()
    checklist: str = "smoke"
    warmup_steps: Integer | None = Field(default=None, ge=0)
    """Steps left out of the steady figure; none: 5, or 2 when fewer than 10 are logged."""
    baselines: dict[str, Number] = {}
    """Values the checklist compares with, e.g. copy_gbps: 180."""
    peaks: list[Peak] = []
    window: Window = Window()
    policies: Policies = Policies()
    env: Variables = {}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        names = [node.name for node in self.nodes]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two nodes of one name: {', '.join(twice)}; every node needs its own")
        for node in self.nodes:
            if not self.embedded and node.ssh is None:
                raise ValueError(f"node {node.name} has no ssh block, and the lab is not embedded")
        ids = [config.id for config in self.configurations]
        if len(set(ids)) < len(ids):
            raise ValueError("matrix and degraded_matrix share an id of a configuration")
        if len(self.nodes) < max(config.nodes for config in self.configurations):
            raise ValueError("the matrix asks for more nodes than the lab has")
        return self

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """Those of the matrix, then those of the degraded path."""
        return (
            *self.matrix.configurations,
            *(self.degraded_matrix.configurations if self.degraded_matrix else ()),
        )

    def configuration(self, config_id: str) -> Configuration:
        """The configuration of that id, of either path. Raises `InputError`."""
        for config in self.configurations:
            if config.id == config_id:
                return config
        known = ", ".join(config.id for config in self.configurations)
        raise InputError(f"no configuration {config_id} in the matrix", next_step=f"choose among {known}")

    def node(self, name: str) -> NodeSpec:
        """The node of that name. Raises `KeyError`."""
        return next((node for node in self.nodes if node.name == name), None) or _missing(name)


def _missing(name: str) -> NodeSpec:
    raise KeyError(name)


def parse_profile(text: str, *, file: str) -> Profile:
    """A profile from its YAML text. Raises `InputError`."""
    return parse_yaml(Profile, text, file=file)
