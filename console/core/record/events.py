"""Everything that can happen in an experiment, as frozen values.

The journal stores these and nothing else; the state that screens and reports show is folded from them
(`folding.py`). Times are UTC. Text that came from a node was sanitised before it got here.
"""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter

from console.core.plan.checklist import ItemState, Judgement, Verdict
from console.core.reading.diagnosis import Finding
from console.core.record.figures import Row, Source


class Happening(BaseModel):
    """Base of all events. `node` and `run` say what it belongs to, where it belongs to one."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")

    at: AwareDatetime
    node: str | None = None
    run: str | None = None


class ExperimentOpened(Happening):
    """The first event of a journal: what lab this is, in full."""

    kind: Literal["experiment opened"] = "experiment opened"
    name: str
    profile_text: str
    profile_file: str
    checklist_text: str
    only: tuple[str, ...] = ()
    """Configurations chosen by the user; empty: all of the matrix."""
    window_ends: AwareDatetime | None = None
    console_version: str
    holder: str = ""
    """Under which name the nodes' guards know this experiment, whichever console works on it."""


class ConsoleAttached(Happening):
    kind: Literal["console attached"] = "console attached"
    pid: int
    host: str
    headless: bool


class ConsoleLeft(Happening):
    """The console ended in order; jobs listed here go on without it."""

    kind: Literal["console left"] = "console left"
    running: tuple[str, ...] = ()


class LinkChanged(Happening):
    """`down` says that there is no contact, and nothing about the jobs on the node."""

    kind: Literal["link changed"] = "link changed"
    state: Literal["connecting", "up", "down"]
    rtt_seconds: float | None = None
    why: str = ""


class StreamChanged(Happening):
    kind: Literal["stream changed"] = "stream changed"
    state: Literal["waiting", "live", "stalled", "lost", "ended"]
    why: str = ""


class NodeDescribed(Happening):
    """Facts of a node: versions, boot id, memory, devices. Later facts replace earlier ones key by key."""

    kind: Literal["node described"] = "node described"
    facts: dict[str, Any]


class WalkStarted(Happening):
    kind: Literal["walk started"] = "walk started"
    box_seconds: float


class ItemStarted(Happening):
    kind: Literal["item started"] = "item started"
    item: str
    box_seconds: float
    attempt: int = 1


class StepStarted(Happening):
    kind: Literal["step started"] = "step started"
    item: str
    step: str
    command: str


class StepEnded(Happening):
    """The evidence of one step on one node (`node` none: a step of all nodes together)."""

    kind: Literal["step ended"] = "step ended"
    item: str
    step: str
    command: str
    outcome: Literal["passed", "failed", "noted", "skipped", "timed out"]
    seconds: float
    exit_status: int | None = None
    answer: dict[str, Any] = {}
    judgements: tuple[Judgement, ...] = ()
    output: str = ""
    """Sanitised, shortened; the whole text is in `evidence`."""
    evidence: str | None = None
    """File under the experiment's folder."""
    error: str = ""
    """Raw error text, or why it was skipped."""


class ItemEnded(Happening):
    kind: Literal["item ended"] = "item ended"
    item: str
    state: ItemState
    seconds: float
    reason: str = ""
    closes: tuple[str, ...] = ()


class WalkEnded(Happening):
    kind: Literal["walk ended"] = "walk ended"
    verdict: Verdict
    seconds: float


class Choice(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    words: str
    leads_to: str


class DecisionAsked(Happening):
    """A point at which a person decides. `recommended` is the first choice's id."""

    kind: Literal["decision asked"] = "decision asked"
    decision: str
    subject: str
    what_happened: str
    raw_error: str
    choices: tuple[Choice, ...]
    recommended: str


class DecisionMade(Happening):
    kind: Literal["decision made"] = "decision made"
    decision: str
    choice: str
    reason: str
    by: Literal["person", "policy"]


class Degraded(Happening):
    """The experiment goes on along the degraded path; the report's head repeats the reason."""

    kind: Literal["degraded"] = "degraded"
    reason: str


class HypothesesWritten(Happening):
    """Expectations per configuration, fixed before the first run."""

    kind: Literal["hypotheses written"] = "hypotheses written"
    texts: dict[str, str]
    sha256: str


class NodeLaunch(BaseModel):
    """What one node is asked to run. No secrets: those are read on the node."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    node: str
    rank: int
    argv: tuple[str, ...]
    env: dict[str, str]


class RunPlanned(Happening):
    kind: Literal["run planned"] = "run planned"
    config: str
    attempt: int
    purpose: Literal["matrix", "smoke"]
    launches: tuple[NodeLaunch, ...]
    log_node: str
    """The node whose rank prints the training log."""
    settings: dict[str, Any]


class JobStarted(Happening):
    kind: Literal["job started"] = "job started"
    pid: int
    rung: str
    run_dir: str
    adopted: bool = False


class JobSeen(Happening):
    """A change in what the node's files say of the job."""

    kind: Literal["job seen"] = "job seen"
    state: Literal["absent", "starting", "running", "ended", "vanished"]
    exit_code: int | None = None
    why: str = ""


class DatasetMeasured(Happening):
    """Token lengths as the framework printed them."""

    kind: Literal["dataset measured"] = "dataset measured"
    mean_tokens: float
    max_tokens: float
    samples: int
    source: Source


class ParametersCounted(Happening):
    kind: Literal["parameters counted"] = "parameters counted"
    total: float
    trainable: float
    source: Source


class StepLogged(Happening):
    """One training step of the log that counts; `end_byte` makes resuming exact."""

    kind: Literal["step logged"] = "step logged"
    step: int
    total: int | None
    loss: float | None
    grad_norm: float | None
    learning_rate: float | None = None
    elapsed_seconds: float | None = None
    memory_gib: float | None = None
    tokens_seen: int | None = None
    start_byte: int
    end_byte: int
    line: int


class Evaluated(Happening):
    kind: Literal["evaluated"] = "evaluated"
    step: int
    loss: float | None
    end_byte: int


class TransportSeen(Happening):
    """What NCCL said it uses."""

    kind: Literal["transport seen"] = "transport seen"
    words: str
    source: Source | None = None


class RunEnded(Happening):
    kind: Literal["run ended"] = "run ended"
    outcome: Literal["done", "failed", "stopped", "timed out"]
    cause: str = ""
    """Earliest real error over all nodes, sanitised."""
    logs: dict[str, Source] = {}
    """The whole log of each node: file and sha256."""


class RowRecorded(Happening):
    kind: Literal["row recorded"] = "row recorded"
    row: Row


class FindingRaised(Happening):
    kind: Literal["finding raised"] = "finding raised"
    finding: Finding


class FindingCleared(Happening):
    kind: Literal["finding cleared"] = "finding cleared"
    finding_id: str


class ServiceChanged(Happening):
    """The production service's lifecycle; `details` is what the adapter reported."""

    kind: Literal["service changed"] = "service changed"
    state: Literal[
        "unknown",
        "none",
        "serving",
        "draining",
        "stopping",
        "stopped",
        "memory free",
        "not released",
        "held by driver",
        "came back",
        "restoring",
        "healthy",
        "not healthy",
        "refused",
    ]
    words: str = ""
    details: dict[str, Any] = {}


class GuardSeen(Happening):
    """What the guard on a node says of itself. `lease_until` moves with every renewal."""

    kind: Literal["guard seen"] = "guard seen"
    state: str
    lease_until: AwareDatetime | None = None
    floor_bytes: int | None = None
    words: str = ""
    risk: str = ""
    """What may end the guard against its will, and the remedy."""
    came_back_at: AwareDatetime | None = None
    """Since when the service runs although it was stopped, on this computer's clock."""


class PrerequisiteChecked(Happening):
    kind: Literal["prerequisite checked"] = "prerequisite checked"
    name: str
    passed: bool | None
    """None: could not be judged, for the reason in `words`."""
    blocks: bool
    words: str
    remedy: str = ""


class Noted(Happening):
    """Something worth a line in the timeline that changes nothing else."""

    kind: Literal["noted"] = "noted"
    words: str
    level: Literal["info", "warning", "error"] = "info"


class ExperimentClosed(Happening):
    kind: Literal["experiment closed"] = "experiment closed"
    outcome: Literal["accepted", "fell short", "stopped"]
    words: str = ""


Event = Annotated[
    ExperimentOpened
    | ConsoleAttached
    | ConsoleLeft
    | LinkChanged
    | StreamChanged
    | NodeDescribed
    | WalkStarted
    | ItemStarted
    | StepStarted
    | StepEnded
    | ItemEnded
    | WalkEnded
    | DecisionAsked
    | DecisionMade
    | Degraded
    | HypothesesWritten
    | RunPlanned
    | JobStarted
    | JobSeen
    | DatasetMeasured
    | ParametersCounted
    | StepLogged
    | Evaluated
    | TransportSeen
    | RunEnded
    | RowRecorded
    | FindingRaised
    | FindingCleared
    | ServiceChanged
    | GuardSeen
    | PrerequisiteChecked
    | Noted
    | ExperimentClosed,
    Field(discriminator="kind"),
]

EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(body: str | bytes) -> Event:
    """An event from its JSON text. Raises `pydantic.ValidationError`."""
    return EVENT.validate_json(body)


def event_json(event: Event) -> str:
    """The event's JSON text; NaN and infinities are kept as such."""
    return event.model_dump_json()
