"""The incremental reader: bytes of a log in, facts out.

Most lines of a log say nothing that is kept. So whole blocks are searched for a few literals, and only the
lines around a hit are cut out, decoded and looked at.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from console.core.reading import formats
from console.core.reading.bars import BAR_MARKS, bar
from console.core.reading.facts import (
    Framework,
    Launch,
    LogFact,
    NcclLine,
    Progress,
    SwiftVersion,
    TopologyLine,
    UnreadMetric,
)
from console.core.reading.formats import RECORD_MARKS, TEXT_RECORD_MARKS, Record
from console.core.reading.lines import Block, LineBuffer, clean, excerpt, line_end, line_start
from console.core.reading.marks import DATASET_MARK, FINAL_MARK, MARKS, Place, dataset, final_record
from console.core.reading.metrics import MetricReader
from console.core.reading.nccl import NCCL_MARKS, nccl_key
from console.core.reading.signatures import Signature
from console.core.reading.tracebacks import TRACEBACK_MARKS, TracebackReader, rank_of
from console.core.reading.unread import METRIC_MARKS, looks_like_metrics
from console.core.reading.workers import WORKER_MARKS, WorkerTable

ARGUMENTS_MARK = b"Arguments will be saved in: "
INFO_MARK = b"[INFO:swift]"
WINDOW_BYTES, OVERLAP_BYTES = 1 << 16, 1 << 12
"""Text is matched in windows of this size; only damaged lines are longer."""

HOP_BYTES = WINDOW_BYTES // 4

MOST_BARS, MOST_NCCL_LINES, MOST_UNREAD = 100, 500, 20

Handler = Callable[[str, Place], Iterable[LogFact]]


class TrainLogReader:
    """Reads a log as it grows: `feed` takes any chunk of bytes, however it is cut.

    `framework_hint` settles what the text leaves open. `signatures` are the line patterns of the diagnosis
    rules; each match becomes a `Symptom`. `start_byte` and `start_line` say where the first chunk stands in
    the file when reading does not begin at its head.
    """

    def __init__(
        self,
        framework_hint: str | None = None,
        *,
        signatures: Sequence[Signature] = (),
        start_byte: int = 0,
        start_line: int = 1,
    ) -> None:
        self.bytes_read = 0
        self.version: str | None = None
        """Release of ms-swift: as printed, else the family ("3.x") that the format gives away."""
        self.info_seen = False
        """The log holds the framework's `[INFO:swift]` lines, so its end mark can be expected."""
        self.unread = 0
        """Lines that look like metrics and were not read; the first of them are facts."""
        self._suspect: str | None = None
        self._records = 0
        self._lines = LineBuffer(start_byte, start_line)
        self._metrics = MetricReader()
        self._tracebacks = TracebackReader()
        self._workers = WorkerTable()
        self._bars: dict[str, int] = {}
        self._nccl: set[str] = set()
        self._datasets = 0
        self._hint = _framework(framework_hint)
        self._shown: Framework = "unknown"
        self._finished = False
        self._marks = self._all_marks(signatures)

    @property
    def framework(self) -> Framework:
        """What the text has shown so far, else the hint."""
        return self._shown if self._shown != "unknown" else self._hint

    def feed(self, data: bytes) -> tuple[LogFact, ...]:
        """Facts completed by this chunk, in log order. Raises ValueError after `finish`."""
        if self._finished:
            raise ValueError("this reader was finished")
        self.bytes_read += len(data)
        return tuple(fact for block in self._lines.feed(data) for fact in self._read(block))

    def finish(self) -> tuple[LogFact, ...]:
        """Facts of a last line that has no newline. The reader can't be fed any more."""
        self._finished = True
        facts = [fact for block in self._lines.finish() for fact in self._read(block)]
        return (*facts, *self._tracebacks.finish(self._lines.position))

    def _read(self, block: Block) -> Iterator[LogFact]:
        data = block.data
        self.info_seen = self.info_seen or INFO_MARK in data
        hits = self._hits(data)
        next_hit, cursor, counted, line = 0, 0, 0, block.line
        while cursor < len(data):
            if self._tracebacks.open:
                start, end = cursor, line_end(data, cursor)
            elif next_hit < len(hits):
                start = line_start(data, hits[next_hit][0], cursor)
                end = line_end(data, hits[next_hit][0])
            else:
                return
            first = next_hit
            while next_hit < len(hits) and hits[next_hit][0] < end:
                next_hit += 1
            line += data.count(b"\n", counted, start)
            counted = start
            place = {"start_byte": block.start_byte + start, "end_byte": block.start_byte + end, "line": line}
            here = [(position - start, handlers) for position, handlers in hits[first:next_hit]]
            yield from self._line(data[start:end], place, here)
            yield from self._left_over(place)
            cursor = end + 1

    def _hits(self, data: bytes) -> list[tuple[int, tuple[Handler, ...]]]:
        """Position and handlers of marks in `data`, in order; each mark once a line, or once a hop of it."""
        hits = []
        for literal, handlers in self._marks:
            position = data.find(literal)
            while position >= 0:
                hits.append((position, handlers))
                position = data.find(literal, min(line_end(data, position), position + HOP_BYTES))
        hits.sort(key=lambda hit: hit[0])
        return hits

    def _line(
        self, raw: bytes, place: Place, hits: Sequence[tuple[int, tuple[Handler, ...]]]
    ) -> Iterator[LogFact]:
        if any(not handlers for _, handlers in hits):
            yield from self._dict_records(raw, place)
        tracing = self._tracebacks.open
        if not hits:
            yield from self._trace(clean(raw[:WINDOW_BYTES]), place)
            return
        for window, handlers in _windows(raw, hits):
            text = clean(window)
            if tracing and self._trace not in handlers:
                yield from self._trace(text, place)
            for handler in handlers:
                yield from handler(text, place)

    def _left_over(self, place: Place) -> Iterator[LogFact]:
        """The line just read, when it looks like metrics and nothing took it for any."""
        suspect, records = self._suspect, self._records
        self._suspect, self._records = None, 0
        if suspect is not None and not records:
            self.unread += 1
            if self.unread <= MOST_UNREAD:
                yield UnreadMetric(**place, text=excerpt(suspect))

    def _metric_like(self, text: str, place: Place) -> Iterator[LogFact]:
        if looks_like_metrics(text):
            self._suspect = text
        yield from ()

    def _final(self, text: str, place: Place) -> Iterator[LogFact]:
        """The last record of logging.jsonl repeats the whole history."""
        self._records += 1
        yield from final_record(text, place)

    def _all_marks(self, signatures: Sequence[Signature]) -> tuple[tuple[bytes, tuple[Handler, ...]], ...]:
        """Literals to search for. A signature whose literal holds another mark rides along with that one."""
        marks: dict[bytes, list[Handler]] = {literal: [] for literal in RECORD_MARKS}
        groups: list[tuple[tuple[bytes, ...], Handler]] = [
            (TEXT_RECORD_MARKS, self._text_record),
            (BAR_MARKS, self._bar),
            (NCCL_MARKS, self._nccl_line),
            (TRACEBACK_MARKS, self._trace),
            (WORKER_MARKS, self._worker),
            ((DATASET_MARK,), self._dataset),
            ((ARGUMENTS_MARK,), self._arguments),
            ((FINAL_MARK,), self._final),
            (METRIC_MARKS, self._metric_like),
            *(((literal,), self._mark(read)) for literal, read in MARKS),
        ]
        for literals, handler in groups:
            for literal in literals:
                marks.setdefault(literal, []).append(handler)
        for signature in sorted(signatures, key=lambda one: min(map(len, one.contains))):
            handler = self._symptom(signature)
            for literal in signature.contains:
                within = next((known for known in marks if known in literal and marks[known]), literal)
                handlers = marks.setdefault(within, [])
                if handler not in handlers:
                    handlers.append(handler)
        return tuple((literal, tuple(handlers)) for literal, handlers in marks.items())

    def _dict_records(self, raw: bytes, place: Place) -> Iterator[LogFact]:
        for record in formats.dict_records(raw):
            start = place["start_byte"]
            yield self._metric(record, start + record.start, start + record.end, place["line"])

    def _text_record(self, text: str, place: Place) -> Iterator[LogFact]:
        record = formats.text_record(text) or formats.validation_record(text)
        if record is not None:
            yield self._metric(record, place["start_byte"], place["end_byte"], place["line"])

    def _metric(self, record: Record, start_byte: int, end_byte: int, line: int) -> LogFact:
        self._records += 1
        self._learn(formats.framework(record))
        self.version = self.version or formats.family(record)
        return self._metrics.fact(record, start_byte=start_byte, end_byte=end_byte, line=line)

    def _bar(self, text: str, place: Place) -> Iterator[LogFact]:
        found = bar(text)
        if found is None:
            return
        label, done, total = found
        if self._bars.get(label) == done or (label not in self._bars and len(self._bars) >= MOST_BARS):
            return
        self._bars[label] = done
        yield Progress(**place, label=label, done=done, total=total)

    def _nccl_line(self, text: str, place: Place) -> Iterator[LogFact]:
        key = nccl_key(text)
        if key is not None and key not in self._nccl and len(self._nccl) < MOST_NCCL_LINES:
            self._nccl.add(key)
            yield NcclLine(**place, text=excerpt(text))

    def _trace(self, text: str, place: Place) -> Iterator[LogFact]:
        traceback = self._tracebacks.line(text, **place)
        if traceback is not None:
            yield traceback

    def _worker(self, text: str, place: Place) -> Iterator[LogFact]:
        failure = self._workers.line(text, place)
        if failure is not None:
            yield failure

    def _dataset(self, text: str, place: Place) -> Iterator[LogFact]:
        length = dataset(text, place, "val" if self._datasets else "train")
        if length is not None:
            self._datasets += 1
            yield length

    def _arguments(self, text: str, place: Place) -> Iterator[LogFact]:
        self._learn("megatron" if "MegatronSft" in text else "swift")
        yield from ()

    def _symptom(self, signature: Signature) -> Handler:
        def handle(text: str, place: Place) -> Iterator[LogFact]:
            quoted = self._tracebacks.open and rank_of(text)[1].startswith(" ")
            symptom = None if quoted else signature.symptom(text, place)
            if symptom is not None:
                yield symptom

        return handle

    def _mark(self, read: Callable[[str, Place], LogFact | None]) -> Handler:
        def handle(text: str, place: Place) -> Iterator[LogFact]:
            fact = read(text, place)
            if fact is not None:
                self._note(fact)
                yield fact

        return handle

    def _note(self, fact: LogFact) -> None:
        if isinstance(fact, Launch):
            self._datasets = 0
            self._nccl.clear()
            self._metrics.resume_step = fact.resume_step
            self._learn(_framework_of_command(fact.argv))
        elif isinstance(fact, TopologyLine):
            self._learn("megatron")
        elif isinstance(fact, SwiftVersion):
            self.version = excerpt(fact.version, 40)

    def _learn(self, framework: Framework) -> None:
        if self._shown == "unknown":
            self._shown = framework


def _windows(
    raw: bytes, hits: Sequence[tuple[int, tuple[Handler, ...]]]
) -> Iterator[tuple[bytes, tuple[Handler, ...]]]:
    """Parts of the line that hold hits, with the handlers to run on each; one part unless it is very long."""
    if len(raw) <= WINDOW_BYTES:
        yield raw, _distinct(hits)
        return
    rest = list(hits)
    while rest:
        low = max(0, rest[0][0] - OVERLAP_BYTES)
        high = low + WINDOW_BYTES
        inside = [hit for hit in rest if hit[0] < high - OVERLAP_BYTES]
        yield raw[low:high], _distinct(inside)
        rest = rest[len(inside) :]


def _distinct(hits: Sequence[tuple[int, tuple[Handler, ...]]]) -> tuple[Handler, ...]:
    return tuple(dict.fromkeys(handler for _, handlers in hits for handler in handlers))


def _framework(text: str | None) -> Framework:
    if text is not None and "megatron" in text:
        return "megatron"
    return "swift" if text is not None and "swift" in text else "unknown"


def _framework_of_command(argv: Sequence[str]) -> Framework:
    script = next((word for word in argv if word.endswith(".py")), argv[0] if argv else "")
    return _framework(script)
