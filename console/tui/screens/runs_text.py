"""The lines of the runs screen: the matrix, the run, what is known of its nodes and since when, log heads."""

from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta

from rich.text import Text

from console.core.record.experiment import Experiment
from console.core.record.views import NodeView, RunView
from console.tui import charts, figures, signs
from console.tui.paint import chip, cut, lines, plain, say
from console.tui.widgets.log_panes import Mode, NodeLog
from console.tui.widgets.log_view import LogView
from console.tui.widgets.merged_view import MergedView
from console.tui.widgets.run_charts import age_of
from console.tui.words import Words

CONTACT_ROWS = 4
"""Of more nodes than this, those in trouble have a row each and the others one together."""
NAMES_CELLS = 24


def matrix_text(experiment: Experiment, shown: RunView | None, words: Words, width: int) -> Text:
    """All configurations with their state, the shown run marked; smoke runs first.

    Where the words of all states don't fit into `width` cells, a run that is as expected has its sign alone.
    """
    runs = [run for run in experiment.runs.values() if run.purpose != "matrix"]
    entries = [(run.id, run.config, run.state) for run in runs]
    for config in experiment.configurations:
        attempts = experiment.runs_of(config)
        last = attempts[-1] if attempts else None
        entries.append((last.id if last else "", config, last.state if last else "planned"))
    marked = shown.id if shown else None
    whole = _tabs(entries, marked, words, ())
    return whole if whole.cell_len <= width else _tabs(entries, marked, words, ("done", "planned"))


def _tabs(
    entries: Iterable[tuple[str, str, str]], marked: str | None, words: Words, wordless: Container[str]
) -> Text:
    """(run id, configuration, state) side by side; of the states in `wordless` only the sign."""
    text = Text(end="")
    for run_id, config, state in entries:
        found = signs.sign(signs.RUN, state)
        here = run_id == marked
        text.append(f" {plain(config)} ", "bold reverse" if here else "bold")
        word = "" if state in wordless and not here else f" {words.state(state)}"
        text.append(f" {found.glyph}{word} ", found.style)
    text.rstrip()
    return text


def run_text(experiment: Experiment, run: RunView, now: datetime, words: Words, width: int) -> Text:
    """What the run is, how its batch is put together, and where it stands."""
    head = say((f" {plain(run.config)} ", "bold"))
    config = next((c for c in experiment.profile.matrix.configurations if c.id == run.config), None)
    if config and run.purpose == "matrix":
        settings = {**experiment.profile.settings.model_dump(), **config.settings, **run.settings}
        micro, batch = settings["micro_batch"], settings["global_batch"]
        dp = config.data_parallel
        head.append(f"{plain(config.title)} · {config.parallel}  ")
        head.append(
            f"{words('runs.global')} {batch} = {micro} × DP {dp} × {batch / (micro * dp):g}", "grey62"
        )
    last = run.last_step
    tail = Text(end="")
    if last:
        tail.append(f"{words('runs.step')} {last.step}/{last.total or '?'}", "bold")
        if age := age_of(last.at, run, now, words):
            tail.append(f" · {words('runs.since')} {age}", "yellow")
        row = experiment.rows.get(run.config)
        pace = [s for s in charts.step_interval_seconds(run.steps)[1:] if s is not None]
        if row and row.run == run.id and row.steady_step_seconds is not None:
            tail.append(f"  {figures.number(row.steady_step_seconds, 3)} s/it")
        elif pace:
            tail.append(f"  {figures.number(pace[-1], 3)} s/it")
    if run.cause:
        tail.append(f"  {plain(run.cause)}", "red")
    head.truncate(max(0, width - min(tail.cell_len, width // 2) - 2), overflow="ellipsis")
    return say(head, "  ", tail)


def contact_text(
    experiment: Experiment,
    run: RunView,
    heard: Mapping[str, datetime | None],
    grew: Mapping[str, datetime | None],
    now: datetime,
    words: Words,
) -> Text:
    """Link, stream and job of every node, each with its age; of a run that ended, how and when it did.

    `heard`: when the node's last reading arrived, `grew`: when the last bytes of its log did.
    """
    if run.outcome is not None:
        return _ended_text(run, words)
    names, nodes, rest = figures.short_names(list(heard)), list(heard), list[str]()
    if len(nodes) > CONTACT_ROWS:
        nodes.sort(key=lambda node: _soundness(experiment.nodes[node], heard[node]))
        nodes, rest = nodes[: CONTACT_ROWS - 1], nodes[CONTACT_ROWS - 1 :]
    rows = [
        _contact(names[node], experiment.nodes[node], run, heard[node], grew[node], now, words)
        for node in nodes
    ]
    if rest:
        up = sum(experiment.nodes[node].link == "up" for node in rest)
        known = [at for node in rest if (at := heard[node])]
        oldest = min(known) if len(known) == len(rest) else None
        told = words("runs.others", n=len(rest), up=up, age=_ago(oldest, now, words))
        rows.append(say((f" {told}", _old(oldest, now))))
    return lines(rows)


def _soundness(node: NodeView, heard: datetime | None) -> tuple[bool, bool, float]:
    """Orders nodes, those in trouble first."""
    return node.link == "up", node.stream == "live", heard.timestamp() if heard else 0.0


def _contact(
    name: str,
    node: NodeView,
    run: RunView,
    heard: datetime | None,
    grew: datetime | None,
    now: datetime,
    words: Words,
) -> Text:
    lost = node.link != "up"
    text = say((f" {cut(plain(name), 10)}  ", "bold"), words("window.link") + " ")
    text.append_text(chip(signs.sign(signs.LINK, node.link), node.link, words))
    if lost and node.link_since:
        text.append(f" {figures.span(figures.since(node.link_since, now))}", "red")
    text.append(f", {words('runs.heard', age=_ago(heard, now, words))}", _old(heard, now))
    text.append(f"  {words('window.stream')} ")
    text.append_text(chip(signs.sign(signs.STREAM, node.stream), node.stream, words))
    text.append(f" {_ago(grew, now, words)}", _old(grew, now))
    job = run.jobs.get(node.name)
    state = job.state if job else "absent"
    text.append(f"  {words('window.job')} ")
    text.append_text(chip(signs.sign(signs.JOB, state), state, words))
    if job and job.exit_code is not None:
        text.append(f" exit {job.exit_code}", "red" if job.exit_code else "")
    if lost:
        text.append(f" {_ago(heard, now, words)}", "yellow")
    elif job and job.since:
        text.append(f" {figures.span(figures.since(job.since, now))}")
    return text


def _ago(at: datetime | None, now: datetime, words: Words) -> str:
    """Of what was never seen, or only after `now` as in a replay, nothing is said."""
    if at is None or at > now + timedelta(seconds=1):
        return figures.MISSING
    return words("runs.ago", age=figures.span(figures.since(at, now)))


def _old(at: datetime | None, now: datetime) -> str:
    return "yellow" if at is None or figures.stale(at, now) else ""


def _ended_text(run: RunView, words: Words) -> Text:
    """When it ended, each job's exit status, and whether its log is on this computer to its last byte."""
    at = figures.time_of_day(run.ended_at) if run.ended_at else figures.MISSING
    found = signs.sign(signs.RUN, run.state)
    text = say(" ", (f"{found.glyph} {words.state(run.state)}", found.style), f" {at}")
    for node in run.nodes:
        job = run.jobs.get(node)
        code = "?" if job is None or job.exit_code is None else job.exit_code
        whole = "runs.log_whole" if node in run.logs else "runs.log_open"
        text.append(f" · {plain(node)} ", "bold")
        text.append(f"exit {code}", "" if code == 0 else "red")
        text.append(f" {words(whole)}", "" if node in run.logs else "yellow")
    return text


def log_head_text(log: NodeLog, view: LogView, words: Words, *, mode: Mode, chosen: bool) -> Text:
    """Whose log this is, whether it follows, and how long it is."""
    rank = words("runs.log_rank" if log.counts and mode == "one" else "runs.rank", rank=log.rank)
    parts = [plain(log.node), rank]
    if mode == "one":
        parts.insert(0, words("runs.log"))
    text = say((f"{'▸' if chosen and mode == 'side' else ' '}{' · '.join(parts)}", "bold" if chosen else ""))
    return say(text, _state_text(view, words, short=mode == "side"))


def merged_head_text(logs: Iterable[NodeLog], view: MergedView, words: Words) -> Text:
    """Which logs these are under which number, and what their order rests on."""
    names = figures.short_names([log.node for log in logs])
    who = " ".join(f"{log.rank}:{plain(names[log.node])}" for log in logs)
    head = say((f" {words('runs.merged')} {cut(who, NAMES_CELLS)}", "bold"), f" · {words('runs.order')}")
    return say(head, _state_text(view, words, short=True))


def _state_text(view: LogView, words: Words, *, short: bool) -> Text:
    text = Text(end="")
    if not view.follow or not short:
        text.append(f" · {words('runs.following' if view.follow else 'runs.stopped')}")
    count = view.row_count
    if not count and not view.pattern:
        text.append(f" · {words('runs.no_log')}", "grey62")
    else:
        text.append(f" · {words('runs.line') if count == 1 else words('runs.lines', n=_thousands(count))}")
    if view.pattern:
        text.append(f" · {words('runs.filtered')} {cut(plain(view.pattern.pattern), 20)}", "yellow")
    if view.needle:
        text.append(f" · /{cut(plain(view.needle), 20)}", "yellow")
    if view.progress is not None:
        text.append(f" · {words('runs.looking')} {view.progress:.0%}", "yellow")
    if view.index is not None and view.index.hole:
        text.append(f" · {words('runs.older')}", "yellow")
    return text


def _thousands(count: int) -> str:
    return f"{count:,}".replace(",", " ")
