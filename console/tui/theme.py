"""Colours that stay apart when a terminal has sixteen of them."""

from textual.theme import Theme

THEME = Theme(
    name="lab",
    primary="#5fafd7",
    secondary="#5f87af",
    accent="#ffd75f",
    success="#5fd75f",
    warning="#ffd75f",
    error="#ff5f5f",
    foreground="#e4e4e4",
    background="#101010",
    surface="#1c1c1c",
    panel="#262626",
    boost="#303030",
    dark=True,
)
