"""One node's log of one run: mirrored byte by byte, read as it grows, every fact journalled once."""

import filecmp
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from console.core.errors import JournalError, NodeError
from console.core.reading import facts as fx
from console.core.reading.trainlog import TrainLog, TrainLogReader, read_whole
from console.core.record import events as ev
from console.core.record.figures import Source
from console.engine.recorder import Recorder
from console.nodes.jobs import log_path
from console.nodes.mirror import MirrorProof
from console.nodes.ssh import Node
from console.nodes.tail import Tail
from console.nodes.tail_delivery import TailEvent

READ_BLOCK = 1 << 18
Told = Callable[[str, Sequence[fx.LogFact]], None]


class LogWatch:
    """Follows one log. `counts` marks the log whose metrics make the run's record.

    A fact that ends at or before the newest journalled byte was recorded by an earlier console and is read
    again only to bring the reader up to date. `told` hears of every chunk that arrives from the node, with
    no facts where it holds none, as output of any kind ends a silence; of the bytes that the mirror held at
    the start it gets the facts alone.
    """

    def __init__(
        self,
        recorder: Recorder,
        node: Node,
        run: str,
        *,
        counts: bool,
        framework: str,
        told: Told | None = None,
        reader: TrainLogReader | None = None,
    ) -> None:
        self._recorder = recorder
        self._node = node
        self._run = run
        self._counts = counts
        self._told = told
        self._reader = reader or TrainLogReader(framework)
        self.mirror = mirror_path(recorder.journal.folder, node.name, run)
        self._recorded_to = _recorded_to(recorder, run) if counts else -1
        self._tail = Tail(
            node,
            log_path(recorder.experiment.name, run),
            self.mirror,
            self._take,
            on_event=self._happened,
        )
        self._stream = ""

    async def start(self) -> None:
        """Read what the mirror holds already, then follow the node."""
        self.mirror.parent.mkdir(parents=True, exist_ok=True)
        if self.mirror.exists():
            with self.mirror.open("rb") as file:
                while block := file.read(READ_BLOCK):
                    self._facts(self._reader.feed(block))
        await self._tail.start()

    def look(self) -> None:
        """Record a change of the stream's state."""
        state = self._tail.stream
        if state.state != self._stream:
            self._stream = state.state
            self._recorder.record(
                ev.StreamChanged(
                    at=self._recorder.now(),
                    node=self._node.name,
                    run=self._run,
                    state=state.state,
                    why=state.why,
                )
            )

    async def finish(self) -> MirrorProof:
        """After the job ended: everything fetched and compared with the node by sha256.

        The log is then what the node has under its name; a mirror that was of something else stays beside it.
        """
        proof = await self._tail.finish()
        if self._tail.mirror != self.mirror:
            self._put_in_place(self._tail.mirror)
        self._facts(self._reader.finish())
        self._recorder.record(
            ev.StreamChanged(at=self._recorder.now(), node=self._node.name, run=self._run, state="ended")
        )
        return proof

    def _put_in_place(self, segment: Path) -> None:
        """Raises `JournalError`."""
        earlier = self.mirror.with_name(f"{self.mirror.name}.earlier")
        try:
            if self.mirror.exists():
                if filecmp.cmp(segment, self.mirror, shallow=False):
                    return
                self.mirror.replace(earlier)
            shutil.copyfile(segment, self.mirror)
        except OSError as error:
            raise JournalError(
                f"the log {self.mirror} can't be written",
                why=error.strerror or str(error),
                next_step="make room on the disk, then start again: the run is taken up where it stood",
            ) from None
        words = f"the log is {segment.name}, as the node has it; what was here before is in {earlier.name}"
        self._recorder.note(words, node=self._node.name, run=self._run)

    def give_up(self, error: NodeError) -> None:
        """The rest of the log can't be had: what is here is read to its end, and the gap is noted."""
        self._facts(self._reader.finish())
        self._recorder.trouble("the log is not complete here", error, node=self._node.name, run=self._run)
        self._recorder.record(
            ev.StreamChanged(at=self._recorder.now(), node=self._node.name, run=self._run, state="ended")
        )

    async def close(self) -> None:
        await self._tail.close()

    def _take(self, data: bytes, start: int) -> None:
        found = self._reader.feed(data)
        self._record(found)
        self._tell(found)

    def _happened(self, event: TailEvent) -> None:
        words = f"the log was {event.kind}: {event.why}; it goes on in {event.mirror.name}"
        if event.kind == "fetched again":
            words = f"the log's mirror {event.mirror.name} is fetched again from the node: {event.why}"
        self._recorder.note(words, node=self._node.name, run=self._run)

    def _facts(self, found: Sequence[fx.LogFact]) -> None:
        """Facts of bytes that did not arrive just now."""
        self._record(found)
        if found:
            self._tell(found)

    def _record(self, found: Sequence[fx.LogFact]) -> None:
        if not self._counts:
            return
        for fact in found:
            if fact.end_byte > self._recorded_to and (event := self._event(fact)):
                self._recorder.record(event)

    def _tell(self, found: Sequence[fx.LogFact]) -> None:
        if self._told is not None:
            self._told(self._node.name, found)

    def _event(self, fact: fx.LogFact) -> ev.Event | None:
        at, node, run = self._recorder.now(), self._node.name, self._run
        match fact:
            case fx.StepMetrics():
                return ev.StepLogged(
                    at=at,
                    node=node,
                    run=run,
                    step=fact.step,
                    total=fact.total,
                    loss=fact.loss,
                    grad_norm=fact.grad_norm,
                    learning_rate=fact.learning_rate,
                    elapsed_seconds=fact.elapsed_seconds,
                    memory_gib=fact.memory_gib,
                    tokens_seen=fact.tokens_seen,
                    start_byte=fact.start_byte,
                    end_byte=fact.end_byte,
                    line=fact.line,
                )
            case fx.EvalMetrics():
                return ev.Evaluated(
                    at=at, node=node, run=run, step=fact.step, loss=fact.loss, end_byte=fact.end_byte
                )
            case fx.DatasetLength(split="train"):
                return ev.DatasetMeasured(
                    at=at,
                    node=node,
                    run=run,
                    mean_tokens=fact.mean,
                    max_tokens=fact.max,
                    samples=fact.size,
                    source=self._source(fact, "Dataset Token Length, as printed"),
                )
            case fx.ModelParameters():
                return ev.ParametersCounted(
                    at=at,
                    node=node,
                    run=run,
                    total=fact.total,
                    trainable=fact.trainable,
                    source=self._source(fact, "model_parameter_info, as printed"),
                )
            case _:
                return None

    def _source(self, fact: fx.LogFact, words: str) -> Source:
        return Source(
            words=words,
            file=relative_mirror(self._node.name, self._run),
            node=self._node.name,
            start_byte=fact.start_byte,
            end_byte=fact.end_byte,
            line=fact.line,
        )


def relative_mirror(node: str, run: str) -> str:
    """The mirror's place in the experiment's folder."""
    return f"logs/{node}/{run}.log"


def mirrored_log(folder: Path, node: str, run: str, framework: str) -> TrainLog:
    """A node's log of a run as it was mirrored, read whole; one that was never mirrored is empty."""
    path = mirror_path(folder, node, run)
    return read_whole(path.read_bytes() if path.is_file() else b"", framework)


def mirror_path(folder: Path, node: str, run: str) -> Path:
    return folder / relative_mirror(node, run)


def _recorded_to(recorder: Recorder, run: str) -> int:
    """The newest byte of the counting log whose fact is in the journal, or -1."""
    view = recorder.experiment.runs.get(run)
    if view is None:
        return -1
    ends = [step.end_byte for step in view.steps]
    ends += [counted.source.end_byte or -1 for counted in (view.dataset, view.parameters) if counted]
    ends += [evaluated.end_byte for evaluated in view.evaluations]
    return max(ends, default=-1)
