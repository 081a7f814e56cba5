"""The catalogue of titles and labels: key -> English, Chinese. A module for each part of the screens."""

from console.tui.catalogue.figures import FIGURES
from console.tui.catalogue.frame import FRAME
from console.tui.catalogue.keys import KEYS
from console.tui.catalogue.overview import OVERVIEW
from console.tui.catalogue.panels import PANELS
from console.tui.catalogue.runs import RUNS
from console.tui.catalogue.states import STATES

CATALOGUE: dict[str, tuple[str, str]] = {
    **FRAME,
    **KEYS,
    **OVERVIEW,
    **RUNS,
    **FIGURES,
    **PANELS,
    **STATES,
}
