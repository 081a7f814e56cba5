"""Screen 1: the time left, the nodes, the service, the progress, and what was noticed."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from console.core.record.experiment import Experiment
from console.core.record.views import ActiveFinding, NodeView
from console.tui import figures, signs
from console.tui.paint import chip, columns, cut, lines, plain, say
from console.tui.readings import Reading
from console.tui.screens.base import WIDE, LabScreen
from console.tui.words import Words

DEGRADED_CELLS = 150
"""Two rows of a narrow terminal; the timeline and the Summary have the whole reason."""


class WindowScreen(LabScreen):
    """The overview that stays open."""

    CSS_PATH: ClassVar = ["base.tcss", "window.tcss"]
    name_of = "window"

    def compose_body(self) -> ComposeResult:
        yield Static(id="nodes", classes="section")
        yield Static(id="service", classes="section")
        yield Static(id="progress", classes="section")
        with VerticalScroll(id="noticed", classes="section grow"):
            yield Static(id="findings")

    def draw(self, experiment: Experiment, now: datetime) -> None:
        words, width = self.words, self.size.width
        for part in ("nodes", "service", "progress"):
            self.query_one(f"#{part}").border_title = words(f"window.{part}")
        self.query_one("#noticed").border_title = words("window.findings")
        latest = {name: self.lab.readings.latest(name) for name in experiment.nodes}
        self.put("nodes", nodes_text(experiment, latest, now, words, width))
        self.put("service", service_text(experiment, words))
        self.put("progress", progress_text(experiment, words))
        self.put("findings", findings_text(experiment, words))


def nodes_text(
    experiment: Experiment, latest: dict[str, Reading | None], now: datetime, words: Words, width: int
) -> Text:
    """Two lines for every node, one on a wide terminal: its states, then its figures."""
    rows: list[Text] = []
    cells = [node_states(experiment, node, now, words) for node in experiment.nodes.values()]
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
    for node, cell in zip(experiment.nodes.values(), cells, strict=True):
        states = columns(cell, widths)
        numbers = node_figures(node, latest[node.name], now, words)
        if width >= WIDE:
            rows.append(say(states, "  ", numbers))
        else:
            rows += [states, say("   ", numbers)]
    return lines(rows)


def node_states(experiment: Experiment, node: NodeView, now: datetime, words: Words) -> list[Text]:
    """Name, link, stream and job of a node, apart from each other, each with its age where it matters."""
    link = say(words("window.link") + " ", chip(signs.sign(signs.LINK, node.link), node.link, words))
    if node.link != "up" and node.link_since:
        link.append(f" {figures.span(figures.since(node.link_since, now))}", "red")
    elif node.rtt_seconds is not None and node.link_since and not figures.stale(node.link_since, now):
        link.append(f" {node.rtt_seconds * 1000:.0f} ms")
    stream = say(
        words("window.stream") + " ", chip(signs.sign(signs.STREAM, node.stream), node.stream, words)
    )
    if node.stream in ("stalled", "lost") and node.stream_since:
        stream.append(f" {figures.span(figures.since(node.stream_since, now))}", "yellow")
    job = say(words("window.job") + " ", _job(experiment, node, now, words))
    return [say((cut(plain(node.name), 16), "bold")), link, stream, job]


def _job(experiment: Experiment, node: NodeView, now: datetime, words: Words) -> Text:
    """The newest job on the node; while there is no contact, what was seen last and when."""
    run = next((run for run in reversed(tuple(experiment.runs.values())) if node.name in run.jobs), None)
    if run is None:
        return chip(signs.sign(signs.JOB, "none"), "none", words)
    job = run.jobs[node.name]
    found = signs.sign(signs.JOB, job.state)
    text = say(
        (f"{found.glyph} ", found.style),
        (plain(run.config) + " ", "bold"),
        (plain(words.state(job.state)), found.style),
    )
    if job.exit_code is not None:
        text.append(f" exit {job.exit_code}", "red" if job.exit_code else "")
    if node.link == "down" and node.link_since:
        text.append(f" ({figures.span(figures.since(node.link_since, now))} {words('window.ago')})", "yellow")
    return text


def node_figures(node: NodeView, reading: Reading | None, now: datetime, words: Words) -> Text:
    """Memory against the floor, GPU, guard; every reading older than ten seconds with its age."""
    text = Text(end="")
    if reading is None:
        text.append(words("window.no_sample"), "grey62")
    else:
        low = node.floor_bytes is not None and reading.available_bytes < 2 * node.floor_bytes
        text.append(f"{words('window.mem')} ")
        text.append(
            f"{figures.gib(reading.used_bytes)} / {figures.gib(reading.total_bytes)} GiB",
            "bold yellow" if low else "bold",
        )
        if reading.gpu_utilisation_percent is not None:
            text.append(f"  GPU {reading.gpu_utilisation_percent:.0f}%")
        if reading.gpu_power_watts is not None:
            text.append(f" {reading.gpu_power_watts:.0f} W")
        if age := figures.stale(reading.arrived_at, now):
            text.append(f"  {age} {words('window.ago')}", "bold yellow")
    if node.floor_bytes:
        text.append(f"  {words('window.floor')} {figures.gib(node.floor_bytes, 0)}")
    if node.guard and node.link != "down":
        style = "green" if node.guard in ("ok", "alive", "held") else "yellow"
        text.append(f"  {words('window.guard')} ")
        text.append(plain(node.guard), style)
    if node.came_back_at:
        since = figures.time_of_day(node.came_back_at)
        text.append("  " + words("window.came_back", since=since), "bold red")
    if node.risk:
        text.append(f"  {plain(node.risk)}", "yellow")
    if node.link == "down" and node.link_why:
        text.append(f"  {plain(node.link_why)}", "red")
    return text


def service_text(experiment: Experiment, words: Words) -> Text:
    """Where the borrowed service is in its life, since when, and how long bringing it back takes."""
    spec, service = experiment.profile.service, experiment.service
    if spec.kind == "none":
        return say((words("window.no_service"), "grey62"))
    text = say(
        (plain(spec.name) + "  ", "bold"),
        chip(signs.sign(signs.SERVICE, service.state), service.state, words),
    )
    if service.since:
        text.append(f" {figures.time_of_day(service.since)}")
    if service.words:
        text.append(f"  {plain(service.words)}")
    rows = [text]
    if len(service.nodes) > 1:
        rows += [
            say(
                ("  " + cut(plain(node), 16) + " ", "bold"),
                chip(signs.sign(signs.SERVICE, here.state), here.state, words),
                f" {figures.time_of_day(here.since)}  {plain(here.words)}",
            )
            for node, here in service.nodes.items()
        ]
    if restore := restore_text(experiment, words):
        rows.append(restore)
    return lines(rows)


def restore_text(experiment: Experiment, words: Words) -> Text | None:
    """How long the restore takes and when it has to begin at the latest; None when that is no question."""
    service = experiment.service
    takes = service.details.get("restore_seconds")
    if not isinstance(takes, int | float) or not service.was_stopped:
        return None
    if experiment.window_ends is None or service.state in ("restoring", "healthy"):
        return None
    by = figures.time_of_day(experiment.window_ends - timedelta(seconds=takes))
    source = plain(str(service.details.get("restore_source", "")))
    minutes = str(max(1, round(takes / 60)))
    return say((words("window.restore_takes", minutes=minutes, source=source, by=by), "yellow"))


def progress_text(experiment: Experiment, words: Words) -> Text:
    """Checklist and matrix, a glyph for each part."""
    checklist = say(f"{words('window.checklist')} ")
    for item in experiment.checklist.items:
        found = signs.sign(signs.ITEM, experiment.items[item.id].state)
        checklist.append(found.glyph, found.style)
    checklist.append("  ")
    checklist.append(
        plain(words.state(experiment.verdict) if experiment.verdict else words("window.verdict_open"))
    )
    matrix = say(f"{words('window.matrix')}  ")
    for config in experiment.configurations:
        attempts = experiment.runs_of(config)
        state = attempts[-1].state if attempts else "planned"
        found = signs.sign(signs.RUN, state)
        matrix.append(f"{plain(config)} ", "bold")
        matrix.append(found.glyph, found.style)
        if attempts and state in ("running", "failed", "stopped") and (last := attempts[-1].last_step):
            matrix.append(f" {last.step}/{last.total or '?'}")
        if state not in ("planned", "done"):
            matrix.append(f" {words.state(state)}", found.style)
        matrix.append("   ")
    matrix.rstrip()
    rows = [checklist, matrix]
    if experiment.degraded:
        why = cut(plain(experiment.degraded), DEGRADED_CELLS)
        rows.append(say((f"{words('window.degraded')}: {why}", "bold yellow")))
    return lines(rows)


def findings_text(experiment: Experiment, words: Words) -> Text:
    """What holds now with its first action, then what happened, newest first."""
    rows = list(finding_rows(experiment, words)) or [say((words("window.no_findings"), "grey62"))]
    for line in reversed(experiment.timeline[-60:]):
        found = signs.sign(signs.LEVEL, line.level)
        where = " ".join(part for part in (line.node, line.run) if part)
        rows.append(
            say(
                (figures.time_of_day(line.at) + " ", "grey62"),
                (found.glyph + " ", found.style),
                (plain(where) + " " if where else "", "cyan"),
                (plain(line.words), found.style),
            )
        )
    return lines(rows)


def _explains(experiment: Experiment, active: ActiveFinding) -> bool:
    """Whether it may be why its run failed."""
    run = experiment.runs.get(active.run or "")
    return run is not None and run.outcome == "failed" and active.finding.severity == "failure"


def finding_rows(experiment: Experiment, words: Words, run: str | None = None) -> Iterator[Text]:
    """Findings that hold, newest first; with `run`, those of that run.

    Those of a failed run end with it, and still say why: on its screen, and while it is decided about.
    """
    decision = experiment.open_decision
    about = run or (decision.id.removeprefix("run:") if decision else None)
    for active in reversed(experiment.findings):
        if run is not None and active.run != run:
            continue
        if active.cleared_at is not None and not (active.run == about and _explains(experiment, active)):
            continue
        finding, said = active.finding, active.finding.said(words.lang)
        found = signs.sign(signs.FINDING, finding.severity)
        where = active.node or finding.node
        yield say(
            (f"{found.glyph} {figures.time_of_day(active.raised_at)} ", found.style),
            (plain(where) + " " if where else "", "cyan"),
            (plain(said.seen), found.style),
            (" → " + plain(said.first_action), "bold"),
        )
