"""The log's watcher: everything that arrives is told, what the mirror held already is not news."""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.lab_story import train_log
from support.waiting import until

from console.core.plan.launch import Launch
from console.core.reading import facts as fx
from console.core.record.views import RunView
from console.engine.running import RunRequest
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


LOG = train_log([0.5] * 12)


@contextmanager
def under_way(lab: Any, tmp_path: Path) -> Iterator[tuple["asyncio.Task[RunView]", Path]]:
    """A run whose whole log is here while its job waits for a word; yields it and the log's mirror."""
    (tmp_path / "printed").write_bytes(LOG)
    script = f"cat {tmp_path}/printed; until [ -e {tmp_path}/end ]; do sleep 0.05; done"
    launch = Launch("node-a", 0, ("sh", "-c", script), {}, shows_log=True)
    request = RunRequest("E0-1", "E0", 1, "matrix", "swift", (launch,), {}, limit_seconds=60)
    task = asyncio.create_task(lab.conductor.running.carry(request))
    yield task, mirror_path(lab.recorder.journal.folder, "node-a", RUN)
    task.cancel()


@pytest.mark.parametrize("damage", [Path.unlink, lambda mirror: mirror.write_bytes(LOG[:-5] + b"other")])
async def test_a_run_is_judged_by_the_log_that_the_node_has(
    small_lab, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    async with small_lab(CHECKLIST) as lab:
        with under_way(lab, tmp_path) as (task, mirror):
            await until(lambda: mirror.exists() and mirror.read_bytes() == LOG, "the log is here")
            damage(mirror)
            (tmp_path / "end").touch()
            async with asyncio.timeout(40):
                run = await task
            assert (run.outcome, run.cause) == ("done", "")
            assert mirror.read_bytes() == LOG
            assert run.logs["node-a"].sha256 == hashlib.sha256(LOG).hexdigest()
            assert [step.step for step in run.steps] == list(range(1, 13)), "each once"
            lines = [line.words for line in lab.recorder.experiment.timeline]
            assert any("fetched again from the node" in words for words in lines)


async def test_a_log_that_can_t_be_kept_here_is_the_cause(small_lab, tmp_path: Path) -> None:
    async with small_lab(CHECKLIST) as lab:
        with under_way(lab, tmp_path) as (task, mirror):
            await until(lambda: mirror.exists() and mirror.read_bytes() == LOG, "the log is here")
            mirror.unlink()
            mirror.mkdir()
            (tmp_path / "end").touch()
            async with asyncio.timeout(40):
                run = await task
            assert (run.outcome, run.logs) == ("failed", {})
            assert "could not be fetched whole" in run.cause


async def test_a_mirror_that_was_changed_between_consoles_does_not_become_the_log(
    small_lab, tmp_path: Path
) -> None:
    async with small_lab(CHECKLIST) as lab:
        append(mirror_path(lab.recorder.journal.folder, "node-a", RUN), b"something else\n")
        with under_way(lab, tmp_path) as (task, mirror):
            (tmp_path / "end").touch()
            async with asyncio.timeout(40):
                run = await task
        assert run.outcome == "done"
        assert mirror.read_bytes() == LOG
        assert run.logs["node-a"].sha256 == hashlib.sha256(LOG).hexdigest()
        assert mirror.with_name("E0-1.log.earlier").read_bytes() == b"something else\n"
