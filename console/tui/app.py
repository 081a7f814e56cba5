"""The app: six screens over one session, the panels that ask, and the way out."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic

from textual import work
from textual.app import App, SystemCommand
from textual.filter import LineFilter
from textual.screen import Screen
from textual.widgets import Input

from console.core.errors import LabError
from console.core.record.events import Event
from console.core.record.experiment import Experiment
from console.core.text import clean
from console.engine.session import Session
from console.report.onepage import one_page as report_page
from console.tui import collector, wishes
from console.tui.actions import GLOBAL, SCREENS, ScreenName, actions_of, bindings, possible
from console.tui.messages import ExperimentChanged, WishGranted, WishRefused, WorkFailed
from console.tui.next_action import hypotheses_due
from console.tui.paint import OnlyPrintable, say
from console.tui.readings import Readings
from console.tui.screens.base import WIDE, LabScreen
from console.tui.screens.checklist import ChecklistScreen
from console.tui.screens.ledger import LedgerScreen
from console.tui.screens.record import RecordScreen
from console.tui.screens.runs import RunsScreen
from console.tui.screens.summary import SummaryScreen
from console.tui.screens.window import WindowScreen
from console.tui.size import LEAST_CELLS, LEAST_ROWS, can_be_asked
from console.tui.theme import ANSI, THEME
from console.tui.widgets.confirm import ConfirmPanel, QuitPanel
from console.tui.widgets.decision_panel import Answer, DecisionPanel
from console.tui.widgets.help import HelpPanel
from console.tui.widgets.hypotheses_form import HypothesesForm, sealed_panel
from console.tui.widgets.panel import Panel, TextPanel
from console.tui.words import Lang, Words

PageWriter = Callable[[Experiment, Lang], str]
"""Writes the one page of an experiment as Markdown, in the given language."""
REPAINT_SECONDS = 0.1
TICK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Left:
    """How the user left. `running` lists (run, node) of the jobs that go on without the console."""

    running: tuple[tuple[str, str], ...] = ()


class LabApp(App[Left]):
    """The console on a live, watched or replayed experiment. `run()` returns a `Left`.

    `return_command` is what a person types to come back; it is shown when leaving with jobs running.
    """

    TITLE = "lab"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS = [*bindings(GLOBAL)]
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (LEAST_CELLS, "-narrow"), (WIDE, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (LEAST_ROWS, "-short"), (36, "-tall")]

    def __init__(
        self,
        session: Session,
        lang: str = "en",
        *,
        return_command: str = "",
        one_page: PageWriter | None = None,
    ) -> None:
        super().__init__()
        self.one_page = one_page or report_page
        self.session = session
        self.words = Words(lang)
        self.readings = Readings(session)
        self.return_command = return_command or f"lab open {session.experiment.profile.name}"
        self._lab_screens: dict[ScreenName, LabScreen] = {
            "window": WindowScreen(),
            "checklist": ChecklistScreen(),
            "runs": RunsScreen(),
            "ledger": LedgerScreen(),
            "record": RecordScreen(),
            "summary": SummaryScreen(),
        }
        self._drawn_at = float("-inf")
        self._draw_planned = False
        self.failure: LabError | None = None
        """Why nobody conducts the experiment any more; None while somebody does, or when it ended well."""
        self._asked: set[str] = set()
        self._draft: dict[str, str] = {}

    @property
    def lab_screen(self) -> LabScreen:
        """The screen under any panels."""
        return next(s for s in reversed(self.screen_stack) if isinstance(s, LabScreen))

    def get_line_filters(self) -> Sequence[LineFilter]:
        """The last net before the terminal comes after all other filters."""
        return [*super().get_line_filters(), _ONLY_PRINTABLE]

    def raise_fault(self) -> None:
        """Raise the error of the console's own that ended the screens, if one did."""
        if self._exception is not None:
            raise self._exception

    def _fatal_error(self) -> None:
        """End the screens at once and leave the telling to whoever opened them.

        Textual would draw the traceback with all locals, whole experiments among them: minutes of work in
        the loop that renews the leases, and nothing that a user can read.
        """
        self._close_messages_no_wait()

    async def on_mount(self) -> None:
        collector.settle()
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self._leave_unasked)
        self.register_theme(THEME)
        self.theme = THEME.name
        self.ansi_theme_dark = ANSI
        for name, screen in self._lab_screens.items():
            self.install_screen(screen, name)
        await self.push_screen("window")
        self._end_listening = self.session.listen(self._event_arrived)
        self.set_interval(TICK_SECONDS, self._tick)
        self.call_later(self._draw)
        self._open_what_waits(self.session.experiment)

    def on_unmount(self) -> None:
        self._end_listening()

    def _event_arrived(self, experiment: Experiment, event: Event) -> None:
        self.post_message(ExperimentChanged())

    def on_experiment_changed(self) -> None:
        """Draw now, or as soon as the last drawing is a tenth of a second old."""
        self._open_what_waits(self.session.experiment)
        if self._draw_planned:
            return
        wait = REPAINT_SECONDS - (monotonic() - self._drawn_at)
        if wait <= 0:
            self._draw()
        else:
            self._draw_planned = True
            self.set_timer(wait, self._draw)

    def _tick(self) -> None:
        """Ages and countdowns move without events."""
        if monotonic() - self._drawn_at >= TICK_SECONDS / 2:
            self._draw()

    def _draw(self) -> None:
        self._draw_planned = False
        self._drawn_at = monotonic()
        if self.is_running:
            self.lab_screen.redraw()

    def _open_what_waits(self, experiment: Experiment) -> None:
        """A new decision, and the hypotheses before the first run, come to the user by themselves, once."""
        if self.session.read_only or self.failure or isinstance(self.screen, Panel):
            return
        decision = experiment.open_decision
        if decision:
            if decision.id not in self._asked:
                self._asked.add(decision.id)
                self.action_decide()
        elif hypotheses_due(experiment) and "hypotheses" not in self._asked:
            self._asked.add("hypotheses")
            self.action_hypotheses()

    def tell(self, words: str, severity: str = "information") -> None:
        """A short word in the corner, never read as markup."""
        kind = "warning" if severity == "warning" else "information"
        self.notify(clean(words), markup=False, severity=kind, timeout=4)  # type: ignore[arg-type]

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: everything the registry has for the screen in sight."""
        experiment, read_only = self.session.experiment, self.session.read_only
        for action in actions_of(self.lab_screen.name_of):
            if action.id != "palette" and possible(action, experiment, read_only=read_only):
                title = self.words(f"action.{action.id}")
                yield SystemCommand(title, action.shown_keys, lambda call=action.call: self._call(call))

    async def _call(self, call: str) -> None:
        await self.run_action(call, default_namespace=self.lab_screen)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return can_be_asked(action, self.size)

    def action_show(self, name: ScreenName) -> None:
        """Go to a screen; panels that are open are put off, a decision only while no reason is typed."""
        panel = self.screen
        if isinstance(panel, DecisionPanel) and any(field.value for field in panel.query(Input)):
            self.tell(self.words("decision.typed"))
            return
        self._close_panels()
        if self.screen is not self._lab_screens[name]:
            self.switch_screen(name)

    def _close_panels(self) -> None:
        while isinstance(self.screen, Panel):
            self.screen.dismiss(None)

    def action_keys(self) -> None:
        panel = HelpPanel(self.lab_screen.name_of, self.words, self.session)
        self.push_screen(panel)

    def action_language(self) -> None:
        self.words = Words("en" if self.words.lang == "zh" else "zh")
        self._draw()

    def action_decide(self) -> None:
        decision = self.session.experiment.open_decision
        if decision is None:
            self.tell(self.words("decision.none"))
            return
        panel = DecisionPanel(decision, self.words, read_only=self.session.read_only)
        self.push_screen(panel, self._decided)

    def _decided(self, answer: Answer | None) -> None:
        if answer:
            wish = self.session.answer(answer.decision, answer.choice, answer.reason)
            self._wish(answer.choice, wish)
        self._open_what_waits(self.session.experiment)

    def action_hypotheses(self) -> None:
        experiment = self.session.experiment
        if experiment.hypotheses_at is not None:
            self.push_screen(sealed_panel(experiment, self.words))
        elif not self.session.read_only:
            configurations = [
                experiment.profile.configuration(config_id) for config_id in experiment.configurations
            ]
            form = HypothesesForm(configurations, self.words, self._draft, self._keep_draft)
            self.push_screen(form, self._hypotheses_written)

    def _hypotheses_written(self, texts: dict[str, str] | None) -> None:
        if texts:
            self._wish(self.words("action.hypotheses"), self.session.write_hypotheses(texts))
        self._open_what_waits(self.session.experiment)

    def _keep_draft(self, texts: dict[str, str]) -> None:
        self._draft = texts

    def action_stop(self) -> None:
        run = self.session.experiment.current_run
        if run is None:
            self.tell(self.words("stop.none"))
            return
        title = self.words("stop.title", run=run.config)
        panel = ConfirmPanel(title, wishes.stop_text(run, self.words), self.words)
        run_id = run.id

        def confirmed(reason: str | None) -> None:
            if reason:
                self._wish(title, self.session.stop_run(run_id, reason))

        self.push_screen(panel, confirmed)

    def action_restore(self) -> None:
        if isinstance(self.screen, ConfirmPanel):
            return
        experiment = self.session.experiment
        service = experiment.profile.service
        if service.kind == "none":
            self.tell(self.words("restore.nothing"))
            return
        title = self.words("restore.title", name=clean(service.name))
        panel = ConfirmPanel(title, wishes.restore_text(experiment, self.words), self.words)

        def confirmed(reason: str | None) -> None:
            if reason:
                self._wish(title, self.session.restore_now(reason))

        self.push_screen(panel, confirmed)

    def action_leave(self) -> None:
        """Asks first, unless nothing depends on this console any more."""
        if not wishes.leaving_matters(self.session):
            self._end_in_order()
            return
        body = wishes.leave_text(self.session, self.return_command, self.words)
        self.push_screen(QuitPanel(body, self.words), self._left)

    def _left(self, sure: bool | None) -> None:
        if sure:
            self._end_in_order()

    def _leave_unasked(self) -> None:
        """End the screens as `q` does: the terminal comes back, and whoever opened them says goodbye."""
        self.exit(Left(self.session.experiment.running_jobs))

    @work(group="wishes")
    async def _end_in_order(self) -> None:
        running = self.session.experiment.running_jobs
        try:
            await self.session.leave()
        except LabError as error:
            self.post_message(WishRefused(self.words("action.quit"), error))
            return
        self.exit(Left(running))

    @work(group="wishes")
    async def _wish(self, wish: str, asking: Awaitable[None]) -> None:
        """Ask the session; what comes of it is told by message."""
        try:
            await asking
        except LabError as error:
            self.post_message(WishRefused(wish, error))
        else:
            self.post_message(WishGranted(wish))

    def on_wish_granted(self, message: WishGranted) -> None:
        self.tell(self.words("notice.done", wish=message.wish))
        self._draw()

    def on_wish_refused(self, message: WishRefused) -> None:
        title = f"{self.words('notice.title')}: {clean(message.wish)}"
        body = wishes.refusal_text(message.error, self.words)
        self.push_screen(TextPanel(title, body, self.words("help.close"), danger=True))

    def on_work_failed(self, message: WorkFailed) -> None:
        """Nothing goes on from here: say so at once, and for as long as the screens are open."""
        self.failure = message.error
        self._close_panels()
        body = wishes.refusal_text(message.error, self.words)
        body.append_text(say(f"\n\n{self.words('failure.leave')}"))
        self.push_screen(TextPanel(self.words("failure.title"), body, self.words("help.close"), danger=True))
        self._draw()


_ONLY_PRINTABLE = OnlyPrintable()


async def render_screenshot(
    session: Session,
    screen: ScreenName,
    size: tuple[int, int],
    lang: str = "en",
    *,
    one_page: PageWriter | None = None,
) -> str:
    """One screen as SVG, drawn without a terminal and without panels. `size` is (columns, rows)."""
    if screen not in SCREENS:
        raise ValueError(f"no screen {screen}; there are {', '.join(SCREENS)}")
    app = LabApp(session, lang, one_page=one_page)
    async with app.run_test(size=size) as pilot:
        app.action_show(screen)
        await pilot.pause()
        await app.workers.wait_for_complete()
        app.lab_screen.redraw()
        await pilot.pause()
        return app.export_screenshot(title=clean(session.experiment.name))
