"""What a dangerous action will do, in full, before it is done; and why a wish was refused."""

import shlex

from rich.text import Text

from console.core.errors import LabError
from console.core.plan.service import (
    BorrowedService,
    CommandService,
    ComposeService,
    DockerService,
    SystemdService,
    for_node,
    start_order,
)
from console.core.record.experiment import Experiment
from console.core.record.views import RunView
from console.engine.session import Session
from console.tui import figures
from console.tui.paint import lines, plain, say
from console.tui.words import Words


def stop_text(run: RunView, words: Words) -> Text:
    """Every process that a stop of the run ends."""
    rows = [say(words("stop.how"))]
    for job in run.jobs.values():
        if job.state in ("starting", "running"):
            rows += _kill_rows(run.id, job.node, job.pid, words)
    for launch in run.launches:
        rows.append(say((f"  {plain(launch.node)}: {plain(' '.join(launch.argv))}", "grey62")))
    return lines(rows)


def restore_text(experiment: Experiment, words: Words) -> Text:
    """Which jobs end and which commands then run, node by node in their order."""
    jobs = experiment.running_jobs
    rows = [say((words("restore.ends") if jobs else words("restore.no_jobs"), "bold"))]
    for run_id, node in jobs:
        rows += _kill_rows(run_id, node, experiment.runs[run_id].jobs[node].pid, words)
    rows.append(say((words("restore.runs"), "bold")))
    spec = experiment.profile.service
    for node in start_order(spec, list(experiment.nodes)):
        on_node = for_node(spec, node)
        if not isinstance(on_node, DockerService | ComposeService | SystemdService | CommandService):
            continue
        command = recorded_command(experiment, node) or start_command(on_node)
        rows.append(
            say((f"  {words('confirm.on')} {plain(node)}: ", "bold cyan"), (plain(command), "bold yellow"))
        )
    return lines(rows)


def recorded_command(experiment: Experiment, node: str) -> str:
    """The commands noted when the service was inspected, before it was stopped; empty when none were."""
    records = experiment.service.details.get("records")
    record = records.get(node) if isinstance(records, dict) else None
    commands = record.get("commands", {}).get("start", ()) if isinstance(record, dict) else ()
    return "; ".join(shlex.join(command) for command in commands)


def start_command(service: BorrowedService) -> str:
    """The command that starts the service, as its profile gives it."""
    match service:
        case DockerService():
            argv: tuple[str, ...] = (*service.docker, "start", service.container)
        case ComposeService():
            argv = service.start_command or (
                *service.docker,
                "compose",
                "-p",
                service.project,
                "start",
                service.service,
            )
        case SystemdService():
            user = ("--user",) if service.user else ()
            argv = (*service.systemctl, *user, "start", service.unit)
        case CommandService():
            argv = service.start
    return shlex.join(argv)


def leaving_matters(session: Session) -> bool:
    """Whether this console still does something that its user may want it to go on with."""
    experiment = session.experiment
    under_way = experiment.outcome is None or bool(experiment.running_jobs) or experiment.service.owed
    return under_way and not session.read_only


def leave_text(session: Session, return_command: str, words: Words) -> Text:
    """Which jobs go on, where, what happens to the service, and how to come back."""
    experiment = session.experiment
    jobs = experiment.running_jobs
    rows = [say((words("quit.running") if jobs else words("quit.idle"), "bold"))]
    for run_id, node in jobs:
        job = experiment.runs[run_id].jobs[node]
        where = f"{run_id} {words('confirm.on')} {node}  pid {job.pid or '?'}  {job.run_dir}"
        rows.append(say((f"  {plain(where)}", "cyan")))
    if experiment.service.owed and not session.read_only:
        rows.append(say((words("quit.stopped"), "bold yellow")))
        leases = [node.lease_until for node in experiment.nodes.values() if node.lease_until]
        if leases:
            when = figures.time_of_day(min(leases))
            rows.append(say((words("quit.lease", when=when), "yellow")))
    rows.append(say((words("quit.return") + " ", "bold"), (plain(return_command), "bold green")))
    return lines(rows)


def refusal_text(error: LabError, words: Words) -> Text:
    """What happened, on which node, why, and what to do next."""
    head = f"{error.node}: {error.what}" if error.node else error.what
    rows = [say((head, "bold red"))]
    if error.why:
        rows.append(say((words("notice.why") + ": ", "bold"), error.why))
    if error.next_step:
        rows.append(say((words("notice.next") + ": ", "bold"), (error.next_step, "green")))
    return lines(rows)


def _kill_rows(run_id: str, node: str, pid: int | None, words: Words) -> list[Text]:
    what = f"pid {pid}" if pid else "pid ?"
    return [
        say(
            (f"  {words('confirm.on')} {plain(node)}: ", "bold cyan"),
            (f"SIGTERM → {what} ({plain(run_id)}), SIGKILL", "bold yellow"),
        )
    ]
