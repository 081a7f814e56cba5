"""The runs screen: link, stream and job apart, and no figure older than ten seconds without its age."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.waiting import until

from console.core.record import events as ev
from console.core.record.views import NodeView
from console.tui.screens.runs_text import contact_text
from console.tui.words import Words
from tui.conftest import Opener
from tui.support import FakeSession, at, screen_text, settle, story


def contact_of(text: str, node: str) -> str:
    return next(line for line in text.split("\n") if line.startswith(f" {node}  "))


async def test_link_stream_and_job_stand_apart_each_with_its_age(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="runs") as (pilot, app, _):
        await pilot.press("v")
        await until(lambda: "rank 0" in screen_text(app), "both logs")
        line = contact_of(screen_text(app), "a")
        assert "link ● up, heard " in line
        assert "stream ● live 3 s ago" in line
        assert "job ▶ running 3m" in line


async def test_after_ten_seconds_every_figure_has_its_age(opened: Opener, folder: Path) -> None:
    session = story(folder)
    async with opened(session, screen="runs") as (_, app, _seen):
        fresh = screen_text(app).split("\n")
        assert not any(" ago" in line for line in fresh if "step 61" in line or "memory" in line)
        session.clock += timedelta(seconds=25)
        app.lab_screen.charts.redraw_soon()  # type: ignore[attr-defined]
        await until(lambda: "last step 28 s ago" in screen_text(app), "the step's age")
        await until(lambda: "memory, GiB  " in screen_text(app), "the charts")
        text = screen_text(app).split("\n")
        titles = next(line for line in text if "memory, GiB" in line)
        assert titles.count(" s ago  ━") == 2, titles
        assert "heard 31 s ago  stream ● live 28 s ago" in contact_of("\n".join(text), "spark-b")


async def test_without_contact_nothing_looks_fresh(opened: Opener, folder: Path) -> None:
    session = story(folder)
    session.happen(
        ev.LinkChanged(at=session.clock, node="spark-b", state="down", why="no answer"),
        ev.StreamChanged(at=session.clock, node="spark-b", state="lost"),
    )
    session.clock += timedelta(seconds=40)
    async with opened(session, screen="runs", size=(100, 30)) as (_, app, _seen):
        line = next(x for x in screen_text(app).split("\n") if "link ✗ down 40 s" in x)
        assert "stream ✗ lost 43 s ago" in line
        assert "job ▶ running 4" in line
        assert line.rstrip().endswith(" s ago"), "the job as it was when it was last seen"


async def test_a_run_that_ended_says_so_instead_of_an_age(opened: Opener, folder: Path) -> None:
    session = story(folder)
    session.clock += timedelta(minutes=9)
    async with opened(session, screen="runs") as (pilot, app, _):
        await pilot.press("e")
        await until(lambda: "✓ done 14:30 · spark-a exit 0 log not complete" in screen_text(app), "its end")
        body = screen_text(app).split("\n", 1)[1]
        assert " ago" not in body


async def test_a_mirror_written_after_the_time_shown_has_no_age(opened: Opener, folder: Path) -> None:
    session: FakeSession = story(folder)
    later = (session.clock + timedelta(days=2)).timestamp()
    os.utime(session.log_path("E1-1", "spark-b"), times=(later, later))
    async with opened(session, screen="runs") as (_, app, _seen):
        assert "stream ● live –" in screen_text(app)


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_a_planned_run_without_readings_or_logs_draws(opened: Opener, folder: Path, lang: str) -> None:
    session = story(folder)
    run = session.experiment.runs["E1-1"]
    session.readings.clear()
    session.happen(
        ev.RunPlanned(
            at=at(40),
            run="E2-1",
            config="E2",
            attempt=1,
            purpose="matrix",
            launches=run.launches,
            log_node="spark-b",
            settings={},
        )
    )
    settle(session)
    async with opened(session, screen="runs", lang=lang) as (pilot, app, _):
        await pilot.press("v", "v")
        await until(lambda: ("no log yet" if lang == "en" else "还没有日志") in screen_text(app), "the word")
        assert ("heard –" if lang == "en" else "读数 –") in screen_text(app)


def test_of_many_nodes_those_in_trouble_have_a_row_each(folder: Path) -> None:
    session = story(folder)
    experiment, now = session.experiment, session.clock
    nodes = {f"n-{n}": NodeView(f"n-{n}", link="up", link_since=now, stream="live") for n in range(16)}
    nodes["n-7"] = replace(nodes["n-7"], link="down")
    nodes["n-9"] = replace(nodes["n-9"], stream="stalled")
    heard = {name: now - timedelta(seconds=3) for name in nodes}
    heard["n-7"] = now - timedelta(seconds=50)
    many = replace(experiment, nodes=nodes)
    run = experiment.runs["E1-1"]
    rows = contact_text(many, run, heard, dict(heard), now, Words("en")).plain.split("\n")
    assert rows[0].startswith(" 7  link ✗ down 0 s, heard 50 s ago")
    assert "stream ○ stalled 3 s ago" in rows[1]
    assert rows[3:] == [" 13 others: 13 links up, readings at most 3 s ago"]
