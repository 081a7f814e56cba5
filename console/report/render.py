"""Templates, and how values get into them: masked first, then shortened, then escaped for Markdown.

Jinja's autoescaping is on so that macros and filters hand on `Markup`; the escaping itself is `finalize`'s.
"""

import re
from collections.abc import Callable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from console.core.record.acceptance import Lang
from console.core.record.notes_zh import in_chinese
from console.report import figures
from console.report.redaction import Redactor

_MARKDOWN = str.maketrans(
    {
        "\\": r"\\",
        "|": r"\|",
        "`": r"\`",
        "*": r"\*",
        "[": r"\[",
        "]": r"\]",
        "#": r"\#",
        "<": "&lt;",
        ">": "&gt;",
        "&": "&amp;",
        "~": r"\~",
        "\n": " ",
        "\t": " ",
    }
)
_GAPS = re.compile(r"\n{3,}")
_LOOSE_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")

_PAUSED = re.compile(r"([.,:;!?]); ")
"""A line that ends with a mark of its own needs no other where the next one follows it."""


def render(template: str, lang: Lang, redactor: Redactor, context: dict[str, Any]) -> str:
    """The template of that language, e.g. `summary.en.md.j2`."""
    text = _environment(redactor).get_template(f"{template}.{lang}.md.j2").render(context)
    return _GAPS.sub("\n\n", text).rstrip("\n") + "\n"


def _environment(redactor: Redactor) -> Environment:
    environment = Environment(
        loader=PackageLoader("console.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=lambda value: _shown(value, redactor),
    )

    def short(value: str, length: int) -> Markup:
        """One line of at most `length` characters; masked before it is cut: no half secret is left."""
        lines = [" ".join(line.split()) for line in redactor(value).splitlines()]
        masked = _PAUSED.sub(r"\1 ", "; ".join(line for line in lines if line))
        cut = masked if len(masked) <= length else masked[: length - 1].rstrip() + "…"
        return Markup(escape(cut))

    environment.filters |= {
        "number": _ready(figures.number),
        "size": _ready(figures.size),
        "percent": _ready(figures.percent),
        "times": _ready(figures.times),
        "short": short,
        "in_chinese": in_chinese,
    }
    return environment


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _LOOSE_UNDERSCORE.sub(r"\_", text.translate(_MARKDOWN))


def _ready(format_value: Callable[[float | None], str]) -> Callable[[float | None], Markup]:
    return lambda value: Markup(format_value(value))


def _shown(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return Markup(escape(redactor(value)))
    return value
