"""What is known about a borrowed service and its node: as found, stopped, brought back, guarded.

Sizes in bytes, times in seconds; `at` fields are seconds since the epoch on the node's own clock. A value
that could not be read is None, never 0.
"""

from typing import Any, Literal

from pydantic import Field

from console.core.plan.part import Part


class ProcessIdentity(Part):
    """A process that can't be mistaken for a later one with the same number."""

    pid: int
    start_ticks: int
    """Field 22 of /proc/<pid>/stat."""
    command: str = ""


class MemoryReading(Part):
    """Where the memory of a node is. `driver_held_bytes` is what no kernel category accounts for."""

    total_bytes: int
    available_bytes: int
    free_bytes: int
    cached_bytes: int | None = None
    swap_free_bytes: int | None = None
    swap_total_bytes: int | None = None
    cma_free_bytes: int | None = None
    driver_held_bytes: int | None = None
    pressure_some_avg10: float | None = None
    """Percent of the last 10 s in which some task waited for memory (/proc/pressure/memory)."""
    pressure_full_avg10: float | None = None


class Owner(Part):
    """Who starts this service when nobody is looking."""

    kind: Literal["none", "compose", "systemd", "swarm", "kubernetes", "keepalive"]
    name: str = ""
    evidence: str = ""


class Reference(Part):
    """One temperature-0 completion taken before the stop, for comparison after the restore."""

    text: str
    tokens: int | None
    seconds: float
    tokens_per_second: float | None


class Requests(Part):
    """The service's own counters (Prometheus text of /metrics)."""

    running: float | None = None
    waiting: float | None = None
    generated_tokens_total: float | None = None


class ServiceRecord(Part):
    """Everything noted about a service before it is touched; enough to put it back."""

    node: str
    kind: Literal["none", "docker", "compose", "systemd", "command"]
    name: str
    at: float
    boot_id: str
    running: bool
    can_be_restored: bool
    refusal: str | None = None
    """Why it must not be stopped, when it could not be put back."""
    refusal_next_step: str | None = None
    warnings: tuple[str, ...] = ()
    owner: Owner
    image: str | None = None
    image_digest: str | None = None
    restart_policy: str | None = None
    restart_count: int | None = None
    auto_remove: bool | None = None
    compose_labels: dict[str, str] = {}
    processes: tuple[ProcessIdentity, ...] = ()
    model_ids: tuple[str, ...] = ()
    requests: Requests | None = None
    reference: Reference | None = None
    reference_missing: str | None = None
    """Why there is no reference completion."""
    memory: MemoryReading
    driver_version: str | None = None
    inspect: dict[str, Any] = {}
    """The full `docker inspect`, `systemctl show` or process description, secrets masked."""
    commands: dict[str, tuple[tuple[str, ...], ...]] = {}
    """The exact command lines that stop and start it: `stop`, `start`, `restart_off`, `restart_back`."""


MemoryState = Literal[
    "stopped",
    "stopped but not released",
    "held by driver, perhaps reusable",
    "came back by itself",
]


class MemoryProof(Part):
    """Whether the memory of a stopped service is really free."""

    node: str
    state: MemoryState
    detail: str
    next_step: str = ""
    seconds: float
    memory: MemoryReading
    needed_bytes: int | None = None
    processes_left: tuple[ProcessIdentity, ...] = ()
    orphan_pids: tuple[int, ...] = ()
    """Processes that the driver lists and /proc does not."""


class StopOutcome(Part):
    """How a stop ended. `refused` and `not drained` mean that the service still runs."""

    node: str
    state: Literal[
        "stopped",
        "stopped but not released",
        "held by driver, perhaps reusable",
        "came back by itself",
        "not drained",
        "refused",
        "interrupted",
        "failed",
    ]
    detail: str
    next_step: str = ""
    drained: bool | None = None
    in_flight: float | None = None
    exit_code: int | None = None
    proof: MemoryProof | None = None
    seconds: float


class Rung(Part):
    """One step of the health ladder."""

    name: Literal["running", "health", "model", "completion", "speed", "counter"]
    state: Literal["passed", "failed", "skipped", "not reached"]
    detail: str
    seconds: float = 0.0


class Health(Part):
    """The health ladder, as far as it was climbed. `healthy` only when no rung failed or was not reached."""

    healthy: bool
    rungs: tuple[Rung, ...]
    tokens_per_second: float | None = None
    seconds: float = 0.0


class RestoreOutcome(Part):
    """How a restore ended. Anything but `healthy` is a decision for a person; nothing is retried blindly."""

    node: str
    state: Literal["healthy", "not healthy", "start failed", "memory not free", "nothing to restore", "died"]
    detail: str
    next_step: str = ""
    by: Literal["console", "guard", "already"]
    started_at: float | None = None
    health: Health | None = None
    restart_policy_back: bool | None = None
    caches_dropped: bool | None = None
    seconds: float = 0.0


class ServiceTimes(Part):
    """How long one restore took on one node."""

    service: str
    load_seconds: float
    """From the start to the first answer, or until it stood where it doesn't answer."""
    ready_seconds: float
    """The rest of the health ladder."""
    whole_seconds: float
    """With the memory proof before the start."""
    stages: dict[str, float] = {}
    """Seconds of each stage that its log names."""


class Floors(Part):
    """Least available memory in each phase; 0 means no floor."""

    training_bytes: int = Field(default=0, ge=0)
    restoring_bytes: int = Field(default=0, ge=0)
    hold_seconds: float = Field(default=0.0, ge=0)
    """How long memory must stay below before the lab's jobs are ended."""


class GuardSpec(Part):
    """What a guard is told when it is started."""

    experiment: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
    holder: str = Field(min_length=1, max_length=200)
    """Who renews the lease; another one is refused while it holds."""
    lease_seconds: float = Field(gt=0)
    window_seconds_left: float | None = None
    """Seconds until the window ends; at that time the guard restores whatever the lease says."""
    floors: Floors = Floors()
    answers: bool = True
    """Whether this node's service answers requests (a worker node's does not)."""
    restore_delay_seconds: float = Field(default=0.0, ge=0)
    """Wait before the guard's own restore, so that workers start before the head."""
    retry_seconds: float = Field(default=60.0, gt=0)
    """First pause between two tries of the guard's own restore; each next one is twice as long, up to 600."""
    gpu: int = Field(default=0, ge=0)
    """Index of the GPU that is sampled."""
    sample_seconds: float = Field(default=1.0, gt=0)
    samples_limit_bytes: int = Field(default=16 << 20, ge=1 << 16)
    job_grace_seconds: float = Field(default=10.0, ge=0)
    """Time the lab's jobs get between SIGTERM and SIGKILL when the lease runs out."""


class Lease(Part):
    """The console's sign of life, as the node sees it."""

    state: Literal["held", "expired", "window over", "none"]
    holder: str | None = None
    seconds_left: float | None = None
    window_seconds_left: float | None = None
    renewals: int = 0


class FloorEvent(Part):
    """One crossing of the floor, and what was ended for it."""

    at: float
    floor_bytes: int
    available_bytes: int
    ended_pids: tuple[int, ...]
    runs: tuple[str, ...]
    react_seconds: float
    """From the sample that crossed (and had held long enough) to the last signal sent."""


class GuardStatus(Part):
    """What a node says about its guard and its service."""

    node: str
    experiment: str
    alive: bool
    detail: str
    """One sentence: what is going on, or why there is no guard."""
    at: float
    """The node's clock when it said so."""
    pid: int | None = None
    rebooted: bool = False
    """The node was rebooted since the guard was started."""
    boot_id: str
    phase: Literal["idle", "training", "stopping", "stopped", "restoring", "restored", "ended"] = "idle"
    lease: Lease
    expired: str = ""
    """Why the guard ends the lab's time, or has ended it: `lease ran out` or `window over`; else empty."""
    service_touched: bool = False
    """The service was or is being stopped, and has not been proven healthy since."""
    came_back_at: float | None = None
    """When the service was seen running although it should be stopped."""
    risk: str = ""
    """What may end the guard against its will, and the remedy."""
    floor_events: tuple[FloorEvent, ...] = ()
    restore: RestoreOutcome | None = None
    stop: StopOutcome | None = None
    operation: str | None = None
    """`stop` or `restore` while one is going on."""
    progress: str = ""
    """The latest line of the account."""
    account_lines: int = 0


class Sample(Part):
    """One reading of a node. `n` counts up without gaps within one guard directory."""

    n: int
    at: float
    memory: MemoryReading
    gpu_utilisation_percent: float | None = None
    gpu_power_watts: float | None = None
    gpu_sm_clock_mhz: float | None = None
    gpu_temperature_celsius: float | None = None
    gpu_missing: str | None = None
    """Why the GPU values are absent."""
    gpu_processes: dict[int, int | None] = {}
    """Memory in bytes per process that the driver lists; None where it names no figure."""
    jobs: dict[int, int] = {}
    """Resident memory in bytes of the lab's own processes."""
    jobs_of_run: dict[str, tuple[int, ...]] | None = None
    """Which of them belong to which run; None in readings of guards that did not tell."""
    compact_stall: int | None = None
    """Direct compactions since boot (/proc/vmstat)."""


class AccountLine(Part):
    """One line of the guard's append-only account."""

    n: int
    at: float
    what: str
    detail: str = ""
    data: dict[str, Any] = {}
