"""What is known about one run at a moment: the memory of the diagnosis."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from console.core.reading.facts import (
    CheckpointSaved,
    Ended,
    EvalMetrics,
    Launch,
    LogFact,
    NcclLine,
    Progress,
    StepMetrics,
    Symptom,
    TopologyLine,
    Traceback,
    TrainSummary,
    World,
)
from console.core.reading.findings import Expectation, JobState, LinkState, NodeSample

KEPT_STEPS, KEPT_SAMPLES, KEPT_TROUBLES = 256, 1200, 50
STEPS_THAT_CLEAR = 2
"""A trouble that this many steps were logged after was survived. One step may be another rank's last word."""


@dataclass(slots=True)
class Trouble:
    """A symptom or an exception, with the last step logged before it."""

    fact: Symptom | Traceback
    after_step: int


@dataclass(slots=True)
class NodeSituation:
    """One node. Times are those of the caller's clock; None = it has not happened."""

    name: str
    link: LinkState = "unknown"
    link_since: float = 0.0
    job: JobState = "none"
    job_since: float = 0.0
    launch: Launch | None = None
    launched_at: float | None = None
    world: World | None = None
    output_at: float | None = None
    step: StepMetrics | None = None
    bar: Progress | None = None
    bar_at: float | None = None
    ended: bool = False
    troubles: deque[Trouble] = field(default_factory=lambda: deque(maxlen=KEPT_TROUBLES))
    nccl: list[NcclLine] = field(default_factory=list)
    samples: deque[NodeSample] = field(default_factory=lambda: deque(maxlen=KEPT_SAMPLES))

    def launched_anew(self, launch: Launch, at: float) -> None:
        """What an earlier process in the same log said is no longer so."""
        self.launch, self.launched_at = launch, at
        self.world = self.step = self.bar = None
        self.ended = False
        self.troubles.clear()
        self.nccl.clear()

    def quiet_for(self, now: float) -> float | None:
        """Seconds without output, as far as the link allows to tell; None if it doesn't."""
        if self.output_at is None or self.link == "down":
            return None
        heard = self.output_at if self.link == "unknown" else max(self.output_at, self.link_since)
        return now - heard


class Situation:
    """Takes in facts, samples and states; answers questions about them."""

    def __init__(self, expectation: Expectation) -> None:
        self.expected = expectation
        self.nodes: dict[str, NodeSituation] = {}
        self.steps: deque[StepMetrics] = deque(maxlen=KEPT_STEPS)
        self.evals: deque[EvalMetrics] = deque(maxlen=KEPT_STEPS)
        self.first_losses: list[StepMetrics] = []
        self.steps_logged = 0
        self.saved_steps: set[int] = set()
        self.topology: TopologyLine | None = None
        self.framework = expectation.framework or "unknown"
        self.finished = False
        self.moved_at: float | None = None
        self.moved_by: LogFact | None = None
        self.step_node: str | None = None

    def node(self, name: str) -> NodeSituation:
        return self.nodes.setdefault(name, NodeSituation(name))

    @property
    def several_nodes(self) -> bool:
        if len(self.expected.nodes) > 1 or len(self.nodes) > 1:
            return True
        return any((node.launch and (node.launch.nnodes or 1) > 1) for node in self.nodes.values())

    @property
    def last_step(self) -> StepMetrics | None:
        return self.steps[-1] if self.steps else None

    @property
    def last_eval(self) -> EvalMetrics | None:
        return self.evals[-1] if self.evals else None

    @property
    def stepping(self) -> bool:
        return bool(self.steps) and not self.finished

    @property
    def log_node(self) -> NodeSituation | None:
        """The node whose log carries the metrics, as far as it is known."""
        name = self.step_node or self.expected.log_node
        return self.nodes.get(name) if name is not None else None

    def told(self, name: str, facts: Sequence[LogFact], at: float) -> None:
        node = self.node(name)
        node.output_at = at
        for fact in facts:
            self._take(node, fact, at)

    def _take(self, node: NodeSituation, fact: LogFact, at: float) -> None:
        match fact:
            case StepMetrics():
                self._step(node, fact, at)
            case EvalMetrics():
                self.evals.append(fact)
                self._move(fact, at)
            case TrainSummary():
                self.finished = True
            case Progress():
                node.bar, node.bar_at = fact, at
                self._move(fact, at)
            case CheckpointSaved():
                if fact.step is not None:
                    self.saved_steps.add(fact.step)
                self._move(fact, at)
            case Launch():
                node.launched_anew(fact, at)
                self.finished = False
                self._learn("megatron" if any("_megatron" in word for word in fact.argv) else "swift")
            case World():
                node.world = fact
            case TopologyLine():
                self.topology = fact
                self._learn("megatron")
            case Ended():
                node.ended = True
                self.finished = True
            case NcclLine():
                node.nccl.append(fact)
            case Symptom() | Traceback():
                step = self.last_step
                node.troubles.append(Trouble(fact, step.step if step else 0))
            case _:
                pass

    def _step(self, node: NodeSituation, fact: StepMetrics, at: float) -> None:
        node.step = fact
        if self.step_node is None:
            self.step_node = node.name
        if node.name != self.step_node:
            return
        if self.steps and fact.step < self.steps[-1].step:
            self._restart()
        self.steps.append(fact)
        self.steps_logged += 1
        if len(self.first_losses) < 10:
            self.first_losses.append(fact)
        self._move(fact, at)
        for one in self.nodes.values():
            while one.troubles and self._survived(one.troubles[0]):
                one.troubles.popleft()

    def _survived(self, trouble: Trouble) -> bool:
        later = sum(1 for step in self.steps if step.step > trouble.after_step)
        return later >= STEPS_THAT_CLEAR

    def _restart(self) -> None:
        """Another run writes to the same log."""
        self.steps.clear()
        self.evals.clear()
        self.first_losses.clear()
        self.saved_steps.clear()
        self.finished = False
        self.steps_logged = 0

    def _move(self, fact: LogFact, at: float) -> None:
        self.moved_at, self.moved_by = at, fact

    def _learn(self, framework: str) -> None:
        if self.framework == "unknown":
            self.framework = framework
