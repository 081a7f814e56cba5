"""The log's watcher: everything that arrives is told, what the mirror held already is not news."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.waiting import until

from console.core.reading import facts as fx
from console.engine.watching import LogWatch, mirror_path
from console.nodes.jobs import log_path

STEP = b"{'loss': 2.5, 'grad_norm': 1.0, 'global_step/max_steps': '1/90', 'train_speed(s/it)': 0.5}\n"
RUN = "E0-1"
CHECKLIST = """\
name: small
title: Small
box_seconds: 60
items:
  - number: 1
    id: only
    title: Only
    title_zh: 唯一
    why: because
    box_seconds: 30
    steps:
      - {id: do, title: Do it, command: ["true"], "on": first, timeout_seconds: 60}
"""


class Heard:
    """What was told, chunk by chunk."""

    def __init__(self) -> None:
        self.chunks: list[tuple[str, tuple[fx.LogFact, ...]]] = []

    def __call__(self, node: str, facts: Sequence[fx.LogFact]) -> None:
        self.chunks.append((node, tuple(facts)))

    @property
    def facts(self) -> list[fx.LogFact]:
        return [fact for _, facts in self.chunks for fact in facts]


def append(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as stream:
        stream.write(data)


def log_on(lab: Any) -> Path:
    """The run's log in the embedded node's home."""
    home = lab.crew["node-a"].places["home"]
    return Path(log_path(lab.recorder.experiment.name, RUN).replace("~", home, 1))


def watch_of(lab: Any, heard: Heard) -> LogWatch:
    node = lab.crew["node-a"].node
    return LogWatch(lab.recorder, node, RUN, counts=False, framework="swift", told=heard)


async def test_text_without_facts_is_told_when_it_arrives_and_only_then(small_lab) -> None:
    async with small_lab(CHECKLIST) as lab:
        held = b"a line that says nothing\n"
        append(mirror_path(lab.recorder.journal.folder, "node-a", RUN), held)
        append(log_on(lab), held)
        heard = Heard()
        watch = watch_of(lab, heard)
        await watch.start()
        try:
            assert heard.chunks == []
            append(log_on(lab), b"another one\n")
            await until(lambda: heard.chunks != [], "the chunk without facts")
            assert set(heard.chunks) == {("node-a", ())}
            append(log_on(lab), STEP)
            await until(lambda: any(isinstance(fact, fx.StepMetrics) for fact in heard.facts), "the step")
        finally:
            await watch.close()


async def test_facts_of_the_mirror_bring_the_listener_up_to_date(small_lab) -> None:
    async with small_lab(CHECKLIST) as lab:
        append(mirror_path(lab.recorder.journal.folder, "node-a", RUN), STEP)
        append(log_on(lab), STEP)
        heard = Heard()
        watch = watch_of(lab, heard)
        await watch.start()
        try:
            assert [type(fact) for fact in heard.facts] == [fx.StepMetrics]
        finally:
            await watch.close()
