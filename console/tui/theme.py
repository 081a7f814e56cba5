"""Colours that stay apart when a terminal has sixteen of them."""

from rich.terminal_theme import TerminalTheme
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

ANSI = TerminalTheme(
    (16, 16, 16),
    (228, 228, 228),
    [
        (0, 0, 0),
        (255, 85, 85),
        (85, 255, 85),
        (255, 255, 85),
        (95, 175, 215),
        (255, 85, 255),
        (85, 255, 255),
        (208, 208, 208),
    ],
    [
        (128, 128, 128),
        (255, 85, 85),
        (135, 255, 135),
        (255, 255, 135),
        (135, 175, 255),
        (255, 135, 255),
        (135, 255, 255),
        (255, 255, 255),
    ],
)
"""What the named colours of states mean; with sixteen colours each comes out under its own name again."""
