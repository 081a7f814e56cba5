"""Which places of a profile nobody has filled in."""

import pytest

from console.core.plan.unfilled import unfilled

SHIPPED = """\
# Fill in what is marked FILL IN.
nodes:
  - address: spark-a.local   # FILL IN: where the others reach it
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SHIPPED, ["line 3: - address: spark-a.local"]),
        (SHIPPED.replace("spark-a.local", "10.0.0.1"), []),
        (SHIPPED.replace("   # FILL IN: where the others reach it", ""), []),
        (
            "  - address: spark-a.local   # FILL IN: where the others reach it",
            ["line 1: - address: spark-a.local"],
        ),
        ("name: FILL IN", ["line 1: name: FILL IN"]),
    ],
)
def test_places(text: str, found: list[str]) -> None:
    assert unfilled(text, [SHIPPED]) == found
