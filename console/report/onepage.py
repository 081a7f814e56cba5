"""The one page: the seed's four questions answered from the rows."""

from console.core.record.acceptance import Lang
from console.core.record.experiment import Experiment


def one_page(experiment: Experiment, lang: Lang = "en") -> str:
    """Markdown of at most one printed page, correct for any outcome."""
    raise NotImplementedError
