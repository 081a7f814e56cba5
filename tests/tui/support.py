"""A session made by hand: events folded as the journal would, a still clock, mirrors in a folder."""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from textual.app import App

from console.core.errors import LabError
from console.core.plan.checklist import ItemState, Judgement, Verdict
from console.core.plan.custody import MemoryReading, Sample
from console.core.plan.matrix import hypothesis_hash
from console.core.reading.diagnosis import Finding
from console.core.record import events as ev
from console.core.record.experiment import Experiment
from console.core.record.figures import Row, Source
from console.core.record.folding import apply, fold
from console.engine.listeners import Listeners
from console.engine.session import Listener, LogListener

DATA = Path(__file__).parent / "data"
OPENED = datetime(2026, 11, 29, 14, 0, tzinfo=UTC)
GIB = 1 << 30
TOTAL = int(121.6 * GIB)
NODES = ("spark-a", "spark-b")
RUNS = {"E0": "E0-1", "E1": "E1-1"}


def at(minutes: float) -> datetime:
    """So many minutes after the experiment was opened."""
    return OPENED + timedelta(minutes=minutes)


class FakeSession:
    """Keeps what was asked of it in `asked`; `refuse` makes it refuse everything."""

    def __init__(
        self, events: Sequence[ev.Event], folder: Path, *, now: datetime, read_only: bool = False
    ) -> None:
        self.read_only = read_only
        self.folder = folder
        self.clock = now
        self.asked: list[tuple[str, ...]] = []
        self.refuse: LabError | None = None
        self.readings: dict[str, list[tuple[datetime, Sample]]] = {}
        self._experiment = fold(events)
        self._listeners: list[Listener] = []
        self.log_listeners = Listeners[str, str]()

    @property
    def experiment(self) -> Experiment:
        return self._experiment

    def now(self) -> datetime:
        return self.clock

    def listen(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def happen(self, *events: ev.Event) -> None:
        """Let events arrive."""
        for event in events:
            self._experiment = apply(self._experiment, event)
            for listener in tuple(self._listeners):
                listener(self._experiment, event)

    def samples(self, node: str, *, since: datetime | None = None) -> Sequence[tuple[datetime, Sample]]:
        return [r for r in self.readings.get(node, []) if since is None or r[0] >= since]

    def log_path(self, run: str, node: str) -> Path:
        return self.folder / "logs" / node / f"{run}.log"

    def log_grows(self, run: str, node: str, data: bytes) -> None:
        """Let bytes of a log arrive."""
        with self.log_path(run, node).open("ab") as stream:
            stream.write(data)
        self.log_listeners.tell(run, node)

    def listen_logs(self, listener: LogListener) -> Callable[[], None]:
        return self.log_listeners.add(listener)

    async def answer(self, decision: str, choice: str, reason: str) -> None:
        self._take("answer", decision, choice, reason)
        self.happen(
            ev.DecisionMade(at=self.clock, decision=decision, choice=choice, reason=reason, by="person")
        )

    async def write_hypotheses(self, texts: dict[str, str]) -> None:
        self._take("hypotheses", *texts.values())
        self.happen(ev.HypothesesWritten(at=self.clock, texts=texts, sha256=hypothesis_hash(texts)))

    async def stop_run(self, run: str, reason: str) -> None:
        self._take("stop", run, reason)

    async def restore_now(self, reason: str) -> None:
        self._take("restore", reason)

    async def leave(self) -> None:
        self._take("leave")

    def _take(self, *wish: str) -> None:
        if self.refuse:
            raise self.refuse
        self.asked.append(wish)


def opening() -> list[ev.Event]:
    """Opened, both links up, service inspected."""
    events: list[ev.Event] = [
        ev.ExperimentOpened(
            at=OPENED,
            name="spark-pair",
            profile_text=(DATA / "profile.yaml").read_text(),
            profile_file="spark-pair.yaml",
            checklist_text=(DATA / "checklist.yaml").read_text(),
            window_ends=OPENED + timedelta(hours=4),
            console_version="0.1.0",
        ),
        ev.ConsoleAttached(at=OPENED, pid=4711, host="laptop", headless=False),
    ]
    for node, rtt in zip(NODES, (0.012, 0.014), strict=True):
        events.append(ev.LinkChanged(at=at(0.1), node=node, state="up", rtt_seconds=rtt))
    events.append(ev.ServiceChanged(at=at(1), state="serving"))
    return events


def walk() -> list[ev.Event]:
    """The checklist as far as item 4, whose FP8 part fails and is closed, and on to the end."""
    events: list[ev.Event] = [ev.WalkStarted(at=at(1.2), box_seconds=2400)]
    clock = 1.2
    for item, minutes in (("baseline", 2.5), ("environment", 1.1), ("swift", 0.8)):
        events += _item(item, clock, minutes)
        clock += minutes
    events += item_four(clock)
    clock += 3.0
    for item, minutes in (("ordinary", 4.0), ("smallest", 5.0), ("pair", 1.0)):
        events += _item(item, clock, minutes)
        clock += minutes
    events.append(ev.WalkEnded(at=at(clock), verdict=Verdict.MAIN_LINE, seconds=clock * 60))
    return events


def item_four(clock: float, *, ends: bool = True) -> list[ev.Event]:
    """Megatron components: transformer_engine can't be imported on one node, megatron.core can."""
    raw = "ImportError: libnvrtc.so.13: undefined symbol: nvrtcGetSupportedArchs, version libnvrtc.so.13"
    events: list[ev.Event] = [
        ev.ItemStarted(at=at(clock), item="megatron", box_seconds=900),
        ev.StepEnded(
            at=at(clock + 1),
            item="megatron",
            step="te",
            node="spark-a",
            command="python probe components",
            outcome="noted",
            seconds=31.2,
            exit_status=1,
            error=raw,
            output="Traceback (most recent call last):\n" + raw,
            judgements=(
                Judgement(
                    value="transformer_engine",
                    seen=None,
                    expected="present",
                    passed=False,
                    why="FP8 needs it; attention falls back to fused, E2 and E3 still work.",
                ),
            ),
            evidence="evidence/megatron-te-spark-a.txt",
        ),
        ev.StepEnded(
            at=at(clock + 2),
            item="megatron",
            step="core",
            node="spark-a",
            command="python probe components",
            outcome="passed",
            seconds=3.1,
            exit_status=0,
            judgements=(
                Judgement(value="megatron.core", seen="0.18.0", expected="present", passed=True, why=""),
            ),
        ),
    ]
    if ends:
        events.append(
            ev.ItemEnded(
                at=at(clock + 3),
                item="megatron",
                state=ItemState.NOTED,
                seconds=180,
                reason="transformer_engine: ImportError",
                closes=("TE/FP8",),
            )
        )
    return events


def _item(item: str, start: float, minutes: float) -> list[ev.Event]:
    return [
        ev.ItemStarted(at=at(start), item=item, box_seconds=900),
        ev.ItemEnded(at=at(start + minutes), item=item, state=ItemState.PASSED, seconds=minutes * 60),
    ]


def stopped_service() -> list[ev.Event]:
    return [
        ev.ServiceChanged(at=at(9), state="stopped", words="drained, exit 0"),
        ev.ServiceChanged(
            at=at(10),
            state="memory free",
            words="driver holds 1.3 GiB",
            details={"restore_seconds": 660, "restore_source": "profile"},
        ),
        *(
            ev.GuardSeen(at=at(10), node=node, state="ok", lease_until=at(85), floor_bytes=12 * GIB)
            for node in NODES
        ),
    ]


def hypotheses() -> list[ev.Event]:
    texts = {
        "E0": "about 6.4 s/it, bound by compute",
        "E1": "1.8 times E0: one all-reduce per step",
        "E2": "slower than E0: all-reduce in every layer",
        "E3": "between the two, one boundary",
    }
    return [ev.HypothesesWritten(at=at(19), texts=texts, sha256=hypothesis_hash(texts))]


def planned(config: str, start: float) -> list[ev.Event]:
    """Planned and started on its nodes."""
    nodes = NODES[:1] if config == "E0" else NODES
    run = RUNS[config]
    launches = tuple(
        ev.NodeLaunch(node=node, rank=rank, argv=("megatron", "sft", "--tuner_type", "lora"), env={})
        for rank, node in enumerate(nodes)
    )
    events: list[ev.Event] = [
        ev.RunPlanned(
            at=at(start),
            run=run,
            config=config,
            attempt=1,
            purpose="matrix",
            launches=launches,
            log_node=nodes[-1],
            settings={"micro_batch": 1, "global_batch": 16},
        )
    ]
    for node in nodes:
        events.append(
            ev.JobStarted(
                at=at(start + 0.2),
                run=run,
                node=node,
                pid=20311,
                rung="systemd",
                run_dir=f"/home/lab/.lab/spark-pair/{run}",
            )
        )
        events.append(ev.StreamChanged(at=at(start + 0.3), node=node, state="live"))
    return events


def log_text(run: str, steps: int, total: int, seconds: float) -> bytes:
    """A mirror as Megatron-SWIFT writes one, with a bar drawn over itself."""
    lines = [
        b"[INFO:swift] Start time of running main: 2026-11-29 22:20:01",
        b"Map:  10%|#         | 150/1500\rMap:  55%|#####     | 825/1500\rMap: 100%|##########| 1500/1500",
        b"[INFO:swift] Dataset Token Length: 512.300000+-210.100000, min=64, max=2048, size=1500",
    ]
    for step in range(1, steps + 1):
        loss = 2.1 * 0.985**step
        line = (
            f"{{'loss': {loss:.4f}, 'grad_norm': {0.9 + 0.01 * (step % 7):.2f}, 'learning_rate': 8.1e-05, "
            f"'iteration': '{step}/{total}', 'elapsed_time': '{step * seconds:.0f}s'}}"
        )
        lines.append(line.encode())
    return b"\n".join(lines) + b"\n"


def steps_of(config: str, start: float, count: int, total: int, seconds: float) -> list[ev.Event]:
    """Steps as the log has them, with their bytes."""
    data = log_text(RUNS[config], count, total, seconds)
    starts = [0]
    for line in data.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    events: list[ev.Event] = [
        ev.DatasetMeasured(
            at=at(start),
            run=RUNS[config],
            mean_tokens=512.3,
            max_tokens=2048,
            samples=1500,
            source=Source(words="read"),
        ),
        ev.ParametersCounted(
            at=at(start), run=RUNS[config], total=7.656e9, trainable=40.4e6, source=Source(words="read")
        ),
    ]
    for step in range(1, count + 1):
        events.append(
            ev.StepLogged(
                at=at(start + step * seconds / 60),
                run=RUNS[config],
                step=step,
                total=total,
                loss=2.1 * 0.985**step,
                grad_norm=0.9 + 0.01 * (step % 7),
                learning_rate=8.1e-5,
                elapsed_seconds=step * seconds,
                memory_gib=38.2,
                start_byte=starts[step + 2],
                end_byte=starts[step + 3],
                line=step + 3,
            )
        )
    return events


def e0_done() -> list[ev.Event]:
    end = 20.5 + 93 * 6.42 / 60
    source = Source(
        words="median of 87 differences after 5 warm-up steps",
        file="logs/spark-a/E0-1.log",
        node="spark-a",
        start_byte=700,
        end_byte=820,
        line=8,
        sha256="9f" * 32,
    )
    row = Row(
        id="E0",
        title="one node",
        run="E0-1",
        parallel="TP1",
        steady_step_seconds=6.42,
        tokens_per_second=1277.0,
        tokens_per_step=8197.0,
        peak_memory_bytes={"spark-a": int(38.2 * GIB)},
        mfu_6n=0.651,
        mfu_lora=0.436,
        peak_tflops=90.0,
        peak_source="measured matmul on the node",
        final_loss=0.5155,
        steps=93,
        notes=("TE/FP8 closed",),
        sources={"steady_step_seconds": (source,), "final_loss": (source,)},
    )
    return [
        *planned("E0", 20),
        *steps_of("E0", 20.5, 93, 93, 6.42),
        ev.JobSeen(at=at(end), run="E0-1", node="spark-a", state="ended", exit_code=0),
        ev.RunEnded(at=at(end + 0.1), run="E0-1", outcome="done"),
        ev.RowRecorded(at=at(end + 0.2), row=row),
    ]


def e1_running(steps: int = 61) -> list[ev.Event]:
    finding = Finding(
        id="one_rail",
        severity="warning",
        title="One rail of two",
        seen="one rail of two in use (NCCL lists one HCA)",
        suspects=("second port is down",),
        first_action="bring up enP2p1s0f1np1; E1 is still valid",
        facts_link="dgx-spark",
        node="spark-b",
        since=0.0,
        line=9,
        start_byte=900,
        end_byte=1000,
    )
    return [
        *planned("E1", 31),
        *steps_of("E1", 31.5, steps, 93, 3.21),
        ev.FindingRaised(at=at(32), node="spark-b", run="E1-1", finding=finding),
    ]


def decision() -> ev.DecisionAsked:
    return ev.DecisionAsked(
        at=at(34),
        decision="item-megatron-1",
        subject="item 4, Megatron components, failed",
        what_happened="flash_attn can't be imported on spark-a; the other components can.",
        raw_error="ImportError: /opt/lab/lib/flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDevice",
        choices=(
            ev.Choice(
                id="retry",
                words="try the item again",
                leads_to="6:12 of its box is left; nothing is installed anew",
            ),
            ev.Choice(
                id="go on",
                words="go on, FP8 closed",
                leads_to="attention falls back to fused; E2 and E3 are still possible",
            ),
            ev.Choice(
                id="degrade",
                words="degrade to the A100 path",
                leads_to="E0 and two single-device variables on a rented A100",
            ),
        ),
        recommended="go on",
    )


def sample(n: int, moment: datetime, used: float, **gpu: float) -> tuple[datetime, Sample]:
    memory = MemoryReading(
        total_bytes=TOTAL, available_bytes=int(TOTAL - used * GIB), free_bytes=int(60 * GIB)
    )
    return moment, Sample(n=n, at=moment.timestamp(), memory=memory, **gpu)


def story(folder: Path, *extra: ev.Event, steps: int = 61, read_only: bool = False) -> FakeSession:
    """Two Sparks, walk done, service stopped, E0 done, E1 at step 61 of 93."""
    events = [*opening(), *walk(), *stopped_service(), *hypotheses(), *e0_done(), *e1_running(steps), *extra]
    now = max(event.at for event in events) + timedelta(seconds=3)
    events += [
        ev.GuardSeen(
            at=now - timedelta(seconds=3 + n),
            node=node,
            state="ok",
            lease_until=now + timedelta(minutes=14),
            floor_bytes=12 * GIB,
        )
        for n, node in enumerate(NODES)
    ]
    session = FakeSession(events, folder, now=now, read_only=read_only)
    for node, used in zip(NODES, (41.2, 40.8), strict=True):
        start = at(20)
        count = int((now - start).total_seconds() // 5)
        session.readings[node] = [
            sample(
                n,
                start + timedelta(seconds=5 * n + 2),
                min(used, 8 + n * 0.9),
                gpu_utilisation_percent=96.0,
                gpu_power_watts=42.0 + n % 3,
                gpu_sm_clock_mhz=1905.0,
            )
            for n in range(count)
        ]
    for run, node, count, seconds in (
        ("E0-1", "spark-a", 93, 6.42),
        ("E1-1", "spark-b", steps, 3.21),
        ("E1-1", "spark-a", 0, 3.21),
    ):
        path = session.log_path(run, node)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(log_text(run, count, 93, seconds))
    settle(session)
    return session


def settle(session: FakeSession) -> None:
    """Make all mirrors as if their last bytes had come three seconds ago."""
    written = session.clock.timestamp() - 3
    for path in session.folder.glob("logs/*/*.log"):
        os.utime(path, times=(written, written))


def screen_text(app: App[Any]) -> str:
    """What stands on the screen, as text."""
    lines = app.screen._compositor.render_strips(app.size)
    return "\n".join("".join(segment.text for segment in strip) for strip in lines)


def page(experiment: Experiment, lang: str) -> str:
    """A one page of the shape that the report has."""
    rows = "\n".join(f"| {r.id} | {r.parallel} | {r.steady_step_seconds} |" for r in experiment.rows.values())
    title = "一页纸" if lang == "zh" else "One page"
    table = f"| config | parallel | s/it |\n|---|---|---|\n{rows}"
    return f"# {title}: {experiment.name}\n\n{table}\n\n1. Fastest: E0.\n"


ATTACKS = (
    "\x1b]52;c;aG9zdGlsZQ==\x07",
    "\x1b]0;hostile\x07",
    "\x1b[6n\x1b[5n\x1b[c",
    "\x1bc",
    "\x9b31;77m\x9d0;hostile\x9c",
    "\x1bP+q544e\x1b\\",
    "\x1b[?1049l\x1b[2J\x1b[31;77m",
    "\x1b]8;;http://hostile\x1b\\click\x1b]8;;\x1b\\",
    "\x00\x05\x07\x08\x0e\x7f\x85",
    "\u202eevil\u2066\u200b",
    "[bold]markup[/bold] [@click=app.leave]x[/] [/] ]",
    "\r\x1b[A\x1b[K overwritten",
    "\x1b]0;never ended",
)


def hostile_story(folder: Path) -> FakeSession:
    """The story with every text that came from outside full of attacks on the terminal."""
    bad = " ".join(ATTACKS)
    session = story(folder)
    finding = session.experiment.findings[0].finding.model_copy(
        update={"id": "hostile", "seen": bad, "first_action": bad, "title": bad}
    )
    now = session.clock
    row = session.experiment.rows["E0"]
    source = row.sources["final_loss"][0].model_copy(update={"words": bad, "start_byte": 0, "end_byte": 4000})
    session.happen(
        ev.FindingRaised(at=now, node="spark-a", run="E1-1", finding=finding),
        ev.LinkChanged(at=now - timedelta(seconds=30), node="spark-a", state="down", why=bad),
        ev.GuardSeen(at=now, node="spark-b", state=bad, lease_until=now + timedelta(minutes=9)),
        ev.ServiceChanged(at=now, state="stopped", words=bad),
        ev.Noted(at=now, words=bad, level="warning"),
        ev.Degraded(at=now, reason=bad),
        ev.ItemStarted(at=now, item="pair", box_seconds=900),
        ev.StepEnded(
            at=now,
            item="pair",
            step="reach",
            command=bad,
            outcome="failed",
            seconds=1.0,
            output=bad,
            error=bad,
            judgements=(Judgement(value=bad, seen=bad, expected=bad, passed=False, why=bad),),
            evidence=bad,
        ),
        ev.ItemEnded(at=now, item="pair", state=ItemState.FAILED, seconds=3, reason=bad, closes=(bad,)),
        ev.RowRecorded(
            at=now,
            row=row.model_copy(
                update={
                    "parallel": bad,
                    "notes": (bad,),
                    "title": bad,
                    "peak_source": bad,
                    "sources": {"steady_step_seconds": (source,)},
                    "blanks": {"final_loss": bad},
                }
            ),
        ),
        ev.DecisionAsked(
            at=now,
            decision="hostile",
            subject=bad,
            what_happened=bad,
            raw_error=bad,
            choices=(ev.Choice(id="a", words=bad, leads_to=bad), ev.Choice(id="b", words="b", leads_to=bad)),
            recommended="a",
        ),
    )
    for node in NODES:
        with session.log_path("E1-1", node).open("ab") as stream:
            for attack in ATTACKS:
                stream.write(attack.encode() + b"\n" + attack.encode("latin-1", "replace") + b"\n")
            stream.write(bytes(range(256)) * 4 + b"\n")
    return session
