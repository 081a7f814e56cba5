"""A user's expression matches as expected, is refused, or is given up; it never holds up what comes after."""

import signal

import pytest

from console.tui.widgets.expressions import BadExpression, TooSlow, expression, matching


def test_lines_that_match() -> None:
    assert matching(expression(r"(?i)loss\b"), ["a loss", "lossless", "LOSS"]) == [0, 2]


@pytest.mark.parametrize("text", ["(", "a{999999999}", "((a{1000}){1000,}){,1000}", "a{" + "9" * 5000 + "}"])
def test_what_is_no_expression_or_repeats_too_often(text: str) -> None:
    with pytest.raises(BadExpression):
        expression(text)


@pytest.mark.parametrize("text", ["(x+x+)+[YZ]", r"(\S+\s*)+[YZ]", "(x|x)*[YZ]"])
def test_a_slow_expression_names_its_line_and_leaves_no_timer(text: str) -> None:
    slow = "x" * 5000
    with pytest.raises(TooSlow) as given_up:
        matching(expression(text), ["y", slow, "z"])
    assert given_up.value.line == slow
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
    assert matching(expression("z"), ["y", slow, "z"]) == [2]
