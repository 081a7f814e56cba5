"""Screen 6: the one page, as it will be exported."""

from datetime import datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Markdown, Static

from console.core.record.experiment import Experiment
from console.core.text import clean
from console.tui.paint import say
from console.tui.screens.base import LabScreen


class SummaryScreen(LabScreen):
    """Written anew when the experiment has changed while the page is in sight."""

    CSS_PATH: ClassVar = ["base.tcss", "summary.tcss"]
    AUTO_FOCUS = "#page-box"
    name_of = "summary"

    def __init__(self) -> None:
        super().__init__()
        self._page = ""

    def compose_body(self) -> ComposeResult:
        yield Static(id="waiting")
        with VerticalScroll(id="page-box", classes="section grow"):
            yield Markdown(id="page", open_links=False)

    def draw(self, experiment: Experiment, now: datetime) -> None:
        self.query_one("#page-box").border_title = self.words("screen.summary")
        self.query_one("#waiting").display = not experiment.rows
        self.put("waiting", say((f" {self.words('summary.waiting')}", "yellow")))
        page = clean(self.lab.one_page(experiment, self.words.lang))
        if page != self._page:
            self._page = page
            self.query_one("#page", Markdown).update(page)
