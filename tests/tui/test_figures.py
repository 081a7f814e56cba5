"""Numbers and glyphs: nothing missing looks like zero, nothing takes two cells."""

import math
from datetime import timedelta

import pytest
from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.color import ColorSystem

from console.tui import figures, signs
from console.tui.actions import GLOBAL, LOCAL
from console.tui.theme import ANSI
from tui.support import OPENED


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (9.9, "9 s"), (61, "1m 01s"), (7860, "2h 11m"), (90000, "1d 1h"), (-5, "0 s")],
)
def test_span(seconds: float, words: str) -> None:
    assert figures.span(seconds) == words


def test_ages_are_told_only_when_older_than_ten_seconds() -> None:
    assert figures.stale(OPENED, OPENED + timedelta(seconds=10)) == ""
    assert figures.stale(OPENED, OPENED + timedelta(seconds=11)) == "11 s"
    assert figures.stale(OPENED, OPENED - timedelta(seconds=50)) == "", "a node's clock may be ahead"


def test_missing_and_not_finite_are_never_zero() -> None:
    assert figures.number(None) == figures.gib(None) == figures.percent(None) == "–"
    assert figures.number(math.nan) == "nan"
    assert figures.number(math.inf) == "inf"


@pytest.mark.parametrize(
    ("value", "words"),
    [(6.42, "6.420"), (1277.0, "1277"), (0.5155, "0.5155"), (0.0, "0.000"), (8.1e-5, "8.100e-05")],
)
def test_number(value: float, words: str) -> None:
    assert figures.number(value) == words


def test_short_names() -> None:
    assert figures.short_names(["spark-a", "spark-b"]) == {"spark-a": "a", "spark-b": "b"}
    assert figures.short_names(["node-10", "node-11"]) == {"node-10": "10", "node-11": "11"}
    assert figures.short_names(["left", "right"]) == {"left": "left", "right": "right"}
    assert figures.short_names(["alone"]) == {"alone": "alone"}


def test_every_glyph_is_one_cell() -> None:
    tables = [
        v
        for v in vars(signs).values()
        if isinstance(v, dict) and v and isinstance(next(iter(v.values())), signs.Sign)
    ]
    glyphs = {sign.glyph for table in tables for sign in table.values()} | set("█░▢◆×━─▶→…·")
    assert len(tables) >= 8
    assert all(cell_len(glyph) == 1 for glyph in glyphs)


@pytest.mark.parametrize(
    ("place", "name"), [(1, "bright_red"), (2, "bright_green"), (3, "bright_yellow"), (6, "bright_cyan")]
)
def test_state_colours_stay_apart_with_sixteen_colours(place: int, name: str) -> None:
    shown = RichColor.from_triplet(ANSI.ansi_colors[place]).downgrade(ColorSystem.STANDARD)
    assert shown.number == RichColor.parse(name).number


def test_every_key_has_a_name_a_person_can_press() -> None:
    for action in (*GLOBAL, *(a for actions in LOCAL.values() for a in actions)):
        assert "_" not in action.shown_keys, action.id
