"""Files: strict JSON, CSV that no spreadsheet runs, whole or not at all, secrets masked and counted."""

import csv
import io
import json
import math
import stat
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from support.lab_story import Story, demo, train_log

sys.path.insert(0, str(Path(__file__).parent))

from cases import CASES

from console.core.errors import InputError
from console.core.record import events as ev
from console.report import export as export_module
from console.report.document import record_document
from console.report.export import FORMATS, export, rendered
from console.report.sheet import FORMULA_STARTS, sheet_csv

SECRETS = {
    "hugging face": "hf_" + "aB3" * 11,
    "ngc": "nvapi-" + "x9_" * 10,
    "github": "ghp_" + "A1b2" * 9,
    "openai": "sk-" + "q7" * 16,
    "aws": "AKIA" + "ABCDEFGH12345678",
    "bearer": "Authorization: Bearer abcdef0123456789",
    "password": "password=hunter2hunter2",
    "url": "https://user:s3cretpw@example.org/x",
    "wandb": "WANDB_API_KEY=" + "0123456789" * 4,
    "pem": "-----BEGIN PRIVATE KEY-----\nMIIEvQ\nabc\n-----END PRIVATE KEY-----",
}
CANARIES = (
    *("hf_aB3", "nvapi-x9", "ghp_A1", "sk-q7", "AKIAABC"),
    *("abcdef0123456789", "hunter2", "s3cretpw", "0123456789012", "MIIEvQ"),
)


def test_all_formats_are_written_whole_and_readable(tmp_path: Path) -> None:
    written = export(demo().experiment, tmp_path / "exports")
    names = ["record.json", "record.csv", "summary.md", "record.md", "summary.html"]
    assert [path.name for path in written] == names
    assert sorted(path.name for path in (tmp_path / "exports").iterdir()) == sorted(names)
    for path in written:
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        assert path.read_text(encoding="utf-8").strip()


def test_the_document_has_what_was_promised() -> None:
    document = json.loads(rendered(demo().experiment, "json"))
    assert [row["id"] for row in document["rows"]] == ["E0", "E1"]
    row = document["rows"][1]
    for field in (
        "parallel",
        "steady_step_seconds",
        "tokens_per_second",
        "tokens_per_step",
        "mfu_6n",
        "mfu_lora",
        "peak_tflops",
        "peak_source",
    ):
        assert row[field], field
    assert set(row["peak_memory_bytes"]) == {"node-a", "node-b"}
    assert {"notes", "sources", "blanks"} <= row.keys()
    assert row["sources"]["steady_step_seconds"][0]["sha256"]
    assert [one["number"] for one in document["acceptance"]] == [1, 2, 3, 4, 5]
    assert document["verdict"].startswith("Accepted")
    assert document["schema"] == 1
    assert document["environment"]["degraded"] == "CPU nodes without a GPU"
    assert document["environment"]["nodes"]["node-a"]["boot_id"] == "b00t"
    sealed = document["hypotheses"]
    assert len(sealed["sha256"]) == 64
    assert sealed["texts"][1]["outcome"] == "agrees"
    assert [item["state"] for item in document["checklist"]] == ["passed", "passed"]
    assert document["redactions"] == 0


def test_raw_errors_and_decisions_are_in_the_document() -> None:
    story = CASES["failed"]()
    story.add(
        ev.DecisionAsked,
        decision="walk",
        subject="main line down",
        what_happened="pair failed",
        raw_error="gloo: connect refused",
        choices=(ev.Choice(id="degrade", words="Degrade", leads_to="x"),),
        recommended="degrade",
    )
    story.add(ev.DecisionMade, decision="walk", choice="degrade", reason="no GPU", by="policy")
    document = record_document(story.experiment)
    assert document["checklist"][1]["steps"][0]["error"] == "gloo: connect refused | `x` <b>bold</b>"
    assert document["decisions"][0]["choice"] == "degrade"
    assert document["decisions"][0]["by"] == "policy"
    assert document["without_row"] == {"E1": "not run"}


@pytest.mark.parametrize("case", CASES)
def test_json_is_strict(case: str) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    story = CASES[case]()
    story.add(ev.NodeDescribed, node="node-a", facts={"odd": math.nan, "deep": [{"x": math.inf}]})
    document = json.loads(rendered(story.experiment, "json"), parse_constant=refuse)
    assert document["environment"]["nodes"]["node-a"]["odd"] is None


@pytest.mark.parametrize(
    "start", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", " =1", "＝1", "%0A=1", "|x"]
)
def test_no_cell_starts_a_formula(start: str) -> None:
    story = Story()
    story.run("E0", b"", outcome="failed", cause="x", record=False)
    story.add(
        ev.RowRecorded,
        run="E0-1",
        row={
            "id": "E0",
            "title": start,
            "run": start,
            "parallel": start,
            "peak_source": start,
            "notes": (start,),
            "blanks": {start: start},
            "peak_memory_bytes": {start: None},
        },
    )
    cells = [cell for line in csv.reader(io.StringIO(sheet_csv(story.experiment))) for cell in line]
    assert any(cell.startswith("'") for cell in cells)
    for cell in cells:
        assert not cell.lstrip().startswith(FORMULA_STARTS), cell


def test_csv_reads_back_with_its_numbers() -> None:
    head, *lines = csv.reader(io.StringIO(sheet_csv(demo().experiment)))
    rows = [dict(zip(head, line, strict=True)) for line in lines]
    assert [row["id"] for row in rows] == ["E0", "E1"]
    assert float(rows[0]["steady_step_seconds"]) == pytest.approx(0.8)
    assert rows[0]["peak_memory_bytes node-b"] == ""
    assert int(rows[1]["peak_memory_bytes node-b"]) == 700 << 20


def leaky() -> Story:
    """Secrets in every place that a node's or a person's text can reach."""
    every = " ; ".join(SECRETS.values())
    story = Story(title="Two nodes")
    story.add(ev.NodeDescribed, node="node-a", facts={"kernel": every, "HF_TOKEN": "plainlookingvalue"})
    story.hypotheses(E0=every, E1=SECRETS["github"])
    story.walk()
    story.run("E0", train_log([0.5] * 12), outcome="failed", cause=every)
    story.run("E1", b"", outcome="failed", cause=every, record=False)
    story.add(
        ev.DecisionAsked,
        decision="run:E1-1",
        subject="E1 failed",
        what_happened=every,
        raw_error=every,
        choices=(),
        recommended="go on",
    )
    story.add(ev.DecisionMade, decision="run:E1-1", choice="go on", reason=every, by="person")
    return story


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_secret_leaves_the_console(form: export_module.Format, lang: str) -> None:
    text = rendered(leaky().experiment, form, "zh" if lang == "zh" else "en")
    for canary in (*CANARIES, "plainlookingvalue"):
        assert canary not in text
    assert "redacted" in text


def test_every_document_says_how_many_secrets_were_masked() -> None:
    experiment = leaky().experiment
    document = json.loads(rendered(experiment, "json"))
    assert document["redactions"] >= 3 * len(SECRETS)
    for form in ("md", "html"):
        assert "Secrets were masked in" in rendered(experiment, form)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_html_loads_nothing_and_runs_nothing() -> None:
    story = Story(title="A <img src=x onerror=alert(1)> lab")
    cause = "<script>alert(1)</script> ![i](http://h/p.png) [l](javascript:alert(1)) <http://h>"
    story.run("E0", b"", outcome="failed", cause=cause)
    text = rendered(story.experiment, "html")
    tags = Tags()
    tags.feed(text)
    assert tags.names.isdisjoint({"script", "img", "iframe", "link", "a", "object"})
    assert tags.attributes.isdisjoint({"src", "href", "onerror"})
    assert "url(" not in text
    assert "@import" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_a_crash_while_writing_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(demo().experiment, tmp_path, ("json",))
    before = (tmp_path / "record.json").read_bytes()

    def stop(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(export_module.os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        export(Story().experiment, tmp_path, ("json",))
    assert (tmp_path / "record.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]


def test_a_folder_that_can_t_be_written_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError) as caught:
        export(demo().experiment, tmp_path / "file" / "exports")
    assert "can't write to" in caught.value.what
    assert "--out" in caught.value.next_step


def test_an_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    unknown: Any = "pdf"
    with pytest.raises(InputError) as caught:
        export(demo().experiment, tmp_path, (unknown,))
    assert "json, csv, md, html" in caught.value.next_step
    assert not list(tmp_path.iterdir())
