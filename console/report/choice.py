"""What the rows say about tomorrow's 7B LoRA, without words: the choice, and what the figures can't carry."""

from dataclasses import dataclass
from typing import Literal

from console.core.errors import InputError
from console.core.ledger import catalogue
from console.core.ledger.classic import classic_account
from console.core.ledger.flops import lora_parameters
from console.core.ledger.of_lab import device_with_own_memory
from console.core.record.experiment import Experiment
from console.core.record.figures import Row
from console.core.record.stand_in import Difference, differences
from console.report.answers import Compared, Speed, speed
from console.report.environment import memory_bytes
from console.report.margins import resolution

TARGET = "Qwen2.5-7B"
TARGET_RANK = 8
FULL_MEMORY = 0.9

Limit = Difference | Literal["one row", "no row", "no pair"]


@dataclass(frozen=True, slots=True)
class Paper:
    """The account of a 7B LoRA on one Spark."""

    weights_bytes: int
    static_bytes: int
    adapters: int
    spark_bytes: int
    """What a process sees of a Spark's memory."""
    exchanged_bytes: int
    """FP32 adapter gradients that data parallelism exchanges per step."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The row to choose if the figures carry the choice; `limits` say why they don't."""

    row: Row | None
    speed: Speed | None
    limits: tuple[Limit, ...]
    paper: Paper
    varies: str
    memory_share: float | None
    """Highest peak of the row over the memory of its device, or of its node where the two share one."""

    @property
    def measured(self) -> bool:
        return self.row is not None and not self.limits

    @property
    def stand_in(self) -> bool:
        """What ran was no 7B LoRA on machines of its own."""
        return not {"one row", "no row", "no pair"}.issuperset(self.limits)

    @property
    def unsound(self) -> str:
        """Why the row's loss is blank; empty when it ended with a finite one."""
        return self.row.blanks.get("final_loss", "") if self.row else ""

    @property
    def others(self) -> tuple[Compared, ...]:
        """Further rows that beat the baseline on fewer nodes; together with the choice they never ran."""
        if self.speed is None or self.speed.baseline is None or self.row is None:
            return ()
        return tuple(
            one
            for one in self.speed.compared
            if one.row is not self.row
            and (one.tokens_ratio or 0) > 1 + resolution(one.row, self.speed.baseline)
            and len(one.row.peak_memory_bytes) < len(self.row.peak_memory_bytes)
        )

    @property
    def tight(self) -> bool:
        return self.memory_share is not None and self.memory_share > FULL_MEMORY


def choice(experiment: Experiment) -> Choice:
    """Choose by tokens/s among runs that ended well; where two are alike, the one on fewer nodes."""
    ranking = speed(experiment)
    row = None
    if ranking is not None:
        row = ranking.fastest
        if ranking.too_close:
            row = min(ranking.ranked[:2], key=lambda candidate: len(candidate.peak_memory_bytes))
    varies = experiment.profile.configuration(row.id).varies if row else ""
    return Choice(row, ranking, _limits(experiment, ranking), _paper(), varies, _share(experiment, row))


def _limits(experiment: Experiment, ranking: Speed | None) -> tuple[Limit, ...]:
    found: list[Limit] = [*differences(experiment)]
    if ranking is None:
        found.append("no row")
    elif len(ranking.ranked) == 1:
        found.append("one row")
    elif all(len(row.peak_memory_bytes) < 2 for row in ranking.ranked):
        found.append("no pair")
    return tuple(found)


def _paper() -> Paper:
    shapes = catalogue.model(TARGET).architecture()
    adapters = lora_parameters(shapes, TARGET_RANK).total
    account = classic_account(shapes.parameters.total, trained=adapters)
    return Paper(
        weights_bytes=2 * shapes.parameters.total,
        static_bytes=account.static_bytes,
        adapters=adapters,
        spark_bytes=catalogue.device("GB10").memory_bytes,
        exchanged_bytes=4 * adapters,
    )


def _share(experiment: Experiment, row: Row | None) -> float | None:
    shares = [
        size / total
        for node, size in (row.peak_memory_bytes if row else {}).items()
        if size is not None and (total := _room(experiment, node)) is not None
    ]
    return max(shares, default=None)


def _room(experiment: Experiment, node: str) -> int | None:
    try:
        device = device_with_own_memory(experiment.profile)
    except InputError:
        return None
    if device is not None:
        return device.memory_bytes
    return memory_bytes(experiment.nodes[node].facts) if node in experiment.nodes else None
