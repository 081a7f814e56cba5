"""The one page: the seed's four questions answered from the rows."""

from typing import Any

from console.core.record.acceptance import Lang, criteria, verdict
from console.core.record.experiment import Experiment
from console.core.record.gaps import degradation, ended_well, rows_in_order, without_row
from console.core.record.network import network_of
from console.report.answers import memory, speed
from console.report.choice import choice
from console.report.environment import node_lines
from console.report.expectations import expectations
from console.report.notes import notes
from console.report.predicted import predicted
from console.report.published import PUBLISHED, utilisation
from console.report.redaction import Redactor
from console.report.render import render


def one_page(experiment: Experiment, lang: Lang = "en") -> str:
    """Markdown of at most one printed page, correct for any outcome. Secrets are masked and counted."""
    redactor = Redactor()
    body = render("summary", lang, redactor, _context(experiment, lang))
    return body + render("masked", lang, redactor, {"count": redactor.count})


def _context(experiment: Experiment, lang: Lang) -> dict[str, Any]:
    profile = experiment.profile
    which = 1 if lang == "zh" else 0
    return {
        "experiment": experiment,
        "profile": profile,
        "nodes": node_lines(experiment),
        "degraded": degradation(experiment),
        "network": network_of(experiment),
        "predicted": predicted(experiment, lang),
        "rows": rows_in_order(experiment),
        "notes": {row.id: notes(experiment, row, lang) for row in rows_in_order(experiment)},
        "ended_well": {row.id: ended_well(experiment, row) for row in rows_in_order(experiment)},
        "without_row": {config: why[which] for config, why in without_row(experiment).items()},
        "verdict": verdict(experiment, lang),
        "criteria": criteria(experiment, lang),
        "rule": "LoRA" if profile.settings.tuner == "lora" else "Megatron",
        "speed": speed(experiment),
        "expectations": expectations(experiment),
        "memory": memory(experiment),
        "choice": choice(experiment),
        "mfu": utilisation(experiment),
        "published": PUBLISHED,
    }
