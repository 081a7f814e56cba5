"""The stories whose reports stand word for word in `golden/`; `python tests/report/cases.py` writes them."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.lab_story import GIB, Story, demo, seven_b_log, spark, train_log

from console.core.plan.checklist import ItemState
from console.core.record import events as ev
from console.report.onepage import one_page
from console.report.sheet import sheet_csv, sheet_json, sheet_markdown

GOLDEN = Path(__file__).parent / "golden"


def machines() -> Story:
    """Five configurations on GPU machines; one run failed, one hypothesis was wrong."""
    story = spark(only=("E0", "E1", "R1", "G1", "P2"))
    story.add(ev.ServiceChanged, state="serving")
    story.add(ev.ServiceChanged, state="stopped")
    story.walk(ItemState.NOTED)
    story.hypotheses(
        E0="The baseline.",
        E1="Nearly half the step time of E0.",
        R1="Slower than E0.",
        G1="Hard to say.",
        P2="Between E1 and E0.",
    )
    story.run("E0", seven_b_log(4.0))
    story.run("E1", seven_b_log(2.2), peaks={"node-a": 21 * GIB, "node-b": 21 * GIB})
    story.run("R1", seven_b_log(3.1), peaks={"node-a": 40 * GIB})
    story.run("G1", seven_b_log(2.05, 1600))
    story.run("P2", seven_b_log(3.0, losses={3: "nan"}), outcome="failed", cause="RuntimeError: peer gone")
    story.add(ev.ServiceChanged, state="healthy", words="answers 204 at 41 tokens/s")
    story.close("fell short")
    return story


def failed() -> Story:
    """The walk went down, the only run failed after three steps, nothing else was tried."""
    story = Story()
    story.walk(ItemState.FAILED, "gloo: connect refused | `x` <b>bold</b>")
    log = train_log([0.5] * 3, mean_tokens=None, parameters=None, end=False)
    story.run("E0", log, outcome="failed", cause="ValueError: bad\nsecond line", peaks={"node-a": None})
    story.close("fell short")
    return story


CASES: Mapping[str, Callable[[], Story]] = {
    "demo": demo,
    "machines": machines,
    "failed": failed,
    "empty": Story,
}


def reports(story: Story) -> dict[str, str]:
    """Every text form of a story's report, by file name."""
    experiment = story.experiment
    return {
        "summary.en.md": one_page(experiment, "en"),
        "summary.zh.md": one_page(experiment, "zh"),
        "record.en.md": sheet_markdown(experiment, "en"),
        "record.zh.md": sheet_markdown(experiment, "zh"),
        "record.csv": sheet_csv(experiment),
        "record.json": sheet_json(experiment),
    }


if __name__ == "__main__":
    for case, make in CASES.items():
        (GOLDEN / case).mkdir(parents=True, exist_ok=True)
        for name, text in reports(make()).items():
            (GOLDEN / case / name).write_text(text, encoding="utf-8")
