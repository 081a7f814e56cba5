"""Feeds the diagnosis with what arrives from the nodes and journals the findings that come and go."""

import asyncio
from collections.abc import Mapping, Sequence

from console.core.ledger.of_lab import prediction_of
from console.core.plan.custody import Sample
from console.core.plan.profile import Profile
from console.core.reading.diagnosis import Change, Diagnosis, Expectation, NodeSample, Rules
from console.core.reading.diagnosis import JobState as JobWords
from console.core.reading.facts import LogFact
from console.core.reading.trainlog import TrainLogReader
from console.core.record import events as ev
from console.core.record.experiment import Experiment
from console.core.record.views import RunView
from console.engine.recorder import Recorder
from console.nodes.jobs import JobState

PAIR_ITEM = "pair"
_JOB_WORDS: Mapping[str, JobWords] = {
    "absent": "none",
    "starting": "starting",
    "running": "running",
    "vanished": "failed",
}


class Diagnosing:
    """One diagnosis per run; between runs nothing is judged."""

    def __init__(self, recorder: Recorder, rules: Rules) -> None:
        self._recorder = recorder
        self._rules = rules
        self._run: str | None = None
        self._diagnosis: Diagnosis | None = None

    def reader(self, framework: str) -> TrainLogReader:
        """A reader that also reports what the rules look for."""
        return TrainLogReader(framework, signatures=self._rules.signatures)

    def begin(self, run: RunView, framework: str) -> None:
        """Start judging a run."""
        experiment = self._recorder.experiment
        profile = experiment.profile
        rails = {len(profile.node(node).rdma_devices) for node in run.nodes} if len(run.nodes) > 1 else {0}
        wanted = max(rails)
        self._run = run.id
        self._diagnosis = Diagnosis(
            self._rules,
            Expectation(
                framework=framework,
                nodes=run.nodes,
                log_node=run.log_node,
                rdma=bool(wanted) or None,
                rails=wanted or None,
                step_seconds=_slowest_step(profile, run),
                save_steps=_save_steps(run),
                shared_cache=_shared_cache(experiment),
            ),
        )

    def end(self) -> None:
        """Stop judging; what still holds is cleared with the run."""
        if self._diagnosis is not None:
            for finding in self._diagnosis.active:
                self._recorder.record(
                    ev.FindingCleared(
                        at=self._recorder.now(), node=finding.node, run=self._run, finding_id=finding.id
                    )
                )
        self._diagnosis = None
        self._run = None

    def told(self, node: str, facts: Sequence[LogFact]) -> None:
        """Output of a node's log arrived, with the facts read from it; none, when it held none."""
        if self._diagnosis is not None:
            self._journal(self._diagnosis.facts(node, facts, _clock()))

    def sampled(self, node: str, sample: Sample) -> None:
        """A reading of a node."""
        if self._diagnosis is None or self._run is None:
            return
        clock = sample.gpu_sm_clock_mhz
        use = sample.gpu_utilisation_percent
        reading = NodeSample(
            node=node,
            at=_clock(),
            memory_used_bytes=sample.memory.total_bytes - sample.memory.available_bytes,
            memory_total_bytes=sample.memory.total_bytes,
            gpu_utilization=None if use is None else use / 100,
            gpu_power_watts=sample.gpu_power_watts,
            sm_clock_hertz=None if clock is None else clock * 1e6,
        )
        self._journal(self._diagnosis.sample(reading))

    def look(self, states: Mapping[str, JobState]) -> None:
        """The jobs' and links' states, and the passing of time."""
        if self._diagnosis is None:
            return
        now = _clock()
        for node, state in states.items():
            link = self._recorder.experiment.nodes[node].link
            words = _JOB_WORDS.get(state.state) or ("ended" if state.exit_code == 0 else "failed")
            self._journal(self._diagnosis.link(node, "up" if link == "up" else "down", now))
            self._journal(self._diagnosis.job(node, words, now))
        self._journal(self._diagnosis.tick(now))

    def _journal(self, changes: Sequence[Change]) -> None:
        for change in changes:
            at, node = self._recorder.now(), change.finding.node
            if change.what == "raised":
                self._recorder.record(
                    ev.FindingRaised(at=at, node=node, run=self._run, finding=change.finding)
                )
            else:
                self._recorder.record(
                    ev.FindingCleared(at=at, node=node, run=self._run, finding_id=change.finding.id)
                )


def _slowest_step(profile: Profile, run: RunView) -> float | None:
    """The high end of the predicted step time, so that slower than this is slower than predicted at all.

    A run of the checklist trains another model or fewer samples than any configuration; none is predicted.
    """
    if run.purpose != "matrix":
        return None
    return prediction_of(profile, profile.configuration(run.config)).step_seconds.high


def _save_steps(run: RunView) -> int | None:
    value = run.settings.get("save_steps")
    return value if isinstance(value, int) else None


def _shared_cache(experiment: Experiment) -> bool | None:
    """What the checklist's item about the pair of nodes found; None where it found nothing either way."""
    item = experiment.items.get(PAIR_ITEM)
    answers = [step.answer.get("cache_ok") for step in item.evidence] if item is not None else []
    known = [answer for answer in answers if isinstance(answer, bool)]
    return known[-1] if known else None


def _clock() -> float:
    return asyncio.get_running_loop().time()
