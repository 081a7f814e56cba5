"""Lines that mark where a run stands: launch, world, data, model, checkpoints, end.

Each mark is a literal that its line always has (the cheap search) and a function from the cleaned line to the
fields of one fact. Streams are mixed in a log, so a mark may stand anywhere in its line.
"""

import re
import shlex
from collections.abc import Callable, Iterator

from console.core.reading.facts import (
    CheckpointSaved,
    DatasetLength,
    Ended,
    FinalRecord,
    LastCheckpoint,
    Launch,
    LogFact,
    LoggingFile,
    MegatronVersion,
    ModelParameters,
    OutputDir,
    Started,
    SwiftVersion,
    TopologyLine,
    World,
)
from console.core.reading.numbers import number, whole

Place = dict[str, int]
Reader = Callable[[str, Place], LogFact | None]

LONGEST_COMMAND = 1 << 14

_STEP_OF_PATH = re.compile(r"checkpoint-(\d{1,12})/?$")
_WORLD = re.compile(
    r"rank: (-?\d{1,9}), local_rank: (-?\d{1,9}), world_size: (\d{1,9})(?:, local_world_size: (\d{1,9}))?"
)
_TOPOLOGY = re.compile(
    r"TP: (\d{1,9}), PP: (\d{1,9})(?:, VPP: (\w{1,9}))?"
    r"(?:, CP: (\d{1,9}))?(?:, EP: (\d{1,9}))?(?:, ETP: (\d{1,9}))?"
)
_LENGTH = re.compile(
    r"([\d.]{1,30})\s{0,3}(?:±|\\u00b1)\s{0,3}([\d.naif]{1,30})"
    r", min=([\d.]{1,30}), max=([\d.]{1,30}), size=(\d{1,15})"
)
_PARAMETERS = re.compile(r"(\w{1,100}): ([\d.]{1,30})M Params \(([\d.]{1,30})M Trainable")
_SAVED = re.compile(
    r"(?:Saving model checkpoint to|Successfully saved .{0,60} model weights in) `?([^`]+?)`?\.?$"
)
_CHECKPOINT = re.compile(r"(last|best)_model_checkpoint: (\S.*)$")
_FINAL_FIELD = r'"{}":\s*(?:"((?:[^"\\]|\\.)*)"|(null|[-\w.+]+))'


def launch(text: str, place: Place) -> Launch | None:
    match = re.search(r"run sh: `(.*?)`?$", text)
    if match is None:
        return None
    argv = _words(match[1])
    resumed = _option(argv, "resume_from_checkpoint")
    step = _STEP_OF_PATH.search(resumed) if resumed else None
    return Launch(
        **place,
        argv=argv,
        nproc_per_node=whole(_option(argv, "nproc_per_node")),
        nnodes=whole(_option(argv, "nnodes")),
        node_rank=whole(_option(argv, "node_rank")),
        master_addr=_option(argv, "master_addr"),
        master_port=whole(_option(argv, "master_port")),
        resume_step=int(step[1]) if step else None,
    )


def world(text: str, place: Place) -> World | None:
    match = _WORLD.search(text)
    if match is None:
        return None
    return World(
        **place,
        rank=int(match[1]),
        local_rank=int(match[2]),
        world_size=int(match[3]),
        local_world_size=int(match[4]) if match[4] else None,
    )


def topology(text: str, place: Place) -> TopologyLine | None:
    match = _TOPOLOGY.search(text)
    if match is None:
        return None
    tp, pp, vpp, cp, ep, etp = match.groups()
    return TopologyLine(
        **place, tp=int(tp), pp=int(pp), vpp=whole(vpp), cp=whole(cp), ep=whole(ep), etp=whole(etp)
    )


def parameters(text: str, place: Place) -> ModelParameters | None:
    near = text.find("M Trainable")
    match = _PARAMETERS.search(text[max(0, near - 200) : near + 20])
    total, trainable = (number(match[2]), number(match[3])) if match else (None, None)
    if match is None or total is None or trainable is None:
        return None
    return ModelParameters(**place, kind=match[1], total=round(total * 1e6), trainable=round(trainable * 1e6))


def dataset(text: str, place: Place, split: str) -> DatasetLength | None:
    match = _LENGTH.search(text)
    if match is None:
        return None
    mean, std, least, most = (number(part) for part in match.groups()[:4])
    if mean is None or std is None or least is None or most is None:
        return None
    return DatasetLength(
        **place,
        mean=mean,
        std=std,
        min=least,
        max=most,
        size=int(match[5]),
        split="train" if split == "train" else "val",
    )


def saved(text: str, place: Place) -> CheckpointSaved | None:
    match = _SAVED.search(text)
    if match is None:
        return None
    step = _STEP_OF_PATH.search(match[1])
    return CheckpointSaved(**place, path=match[1], step=int(step[1]) if step else None)


def last_checkpoint(text: str, place: Place) -> LastCheckpoint | None:
    match = _CHECKPOINT.search(text)
    if match is None:
        return None
    which: str = match[1]
    path = None if match[2] == "None" else match[2]
    return LastCheckpoint(**place, which="last" if which == "last" else "best", path=path)


def final_record(text: str, place: Place) -> Iterator[LogFact]:
    """The last record of a jsonl file, of which only the head is looked at: its tail is the whole history."""
    if not text.lstrip().startswith("{"):
        return
    history = text.find('"log_history"')
    head = text if history < 0 else text[:history]
    for key, split in (("train_dataset", "train"), ("val_dataset", "val")):
        length = dataset(_final(head, key) or "", place, split)
        if length is not None:
            yield length
    counts = parameters(_final(head, "model_parameter_info") or "", place)
    if counts is not None:
        yield counts
    yield FinalRecord(
        **place,
        last_checkpoint=_final(head, "last_model_checkpoint"),
        best_checkpoint=_final(head, "best_model_checkpoint"),
        best_metric=number(_final(head, "best_metric")),
    )


def _path(kind: type[OutputDir] | type[LoggingFile], pattern: str) -> Reader:
    compiled = re.compile(pattern)

    def read(text: str, place: Place) -> LogFact | None:
        match = compiled.search(text)
        return kind(**place, path=match[1].strip()) if match else None

    return read


def _version(kind: type[SwiftVersion] | type[MegatronVersion], pattern: str) -> Reader:
    compiled = re.compile(pattern)

    def read(text: str, place: Place) -> LogFact | None:
        match = compiled.search(text)
        return kind(**place, version=match[1]) if match else None

    return read


def _started(text: str, place: Place) -> LogFact | None:
    return Started(**place, at=text.partition("running main: ")[2].strip())


def _ended(text: str, place: Place) -> LogFact | None:
    return Ended(**place, ok=True, at=text.partition("running main: ")[2].strip())


MARKS: tuple[tuple[bytes, Reader], ...] = (
    (b"run sh: `", launch),
    (b", local_rank: ", world),
    (b"] TP: ", topology),
    (b"M Trainable", parameters),
    (b"Saving model checkpoint to ", saved),
    (b" model weights in ", saved),
    (b"_model_checkpoint: ", last_checkpoint),
    (b"output_dir: ", _path(OutputDir, r"\] (?:args\.)?output_dir: (.+)$")),
    (b"logging_path: ", _path(LoggingFile, r"\] logging_path: (.+)$")),
    (b"logging file will be saved in: ", _path(LoggingFile, r"will be saved in: (.+)$")),
    (b"swift.__version__: ", _version(SwiftVersion, r"(?<![\w.])swift\.__version__: (\S+)")),
    (b"megatron.core.__version__: ", _version(MegatronVersion, r"megatron\.core\.__version__: (\S+)")),
    (b"] Start time of running main: ", _started),
    (b"] End time of running main: ", _ended),
)

DATASET_MARK = b"Dataset Token Length: "
FINAL_MARK = b'"last_model_checkpoint":'


def _words(command: str) -> tuple[str, ...]:
    """The command's words; cut at blanks where quotes don't pair, or where it is too long to be one."""
    if len(command) <= LONGEST_COMMAND:
        try:
            return tuple(shlex.split(command))
        except ValueError:
            pass
    return tuple(command.split())


def _option(argv: tuple[str, ...], name: str) -> str | None:
    for index, word in enumerate(argv):
        if word == f"--{name}" and index + 1 < len(argv):
            return argv[index + 1]
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
    return None


def _final(head: str, key: str) -> str | None:
    match = re.search(_FINAL_FIELD.format(key), head)
    if match is None:
        return None
    return match[1] if match[1] is not None else None if match[2] == "null" else match[2]
