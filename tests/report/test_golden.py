"""Reports word for word. After a wanted change: `python tests/report/cases.py`, and read the difference."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cases import CASES, GOLDEN, reports


@pytest.mark.parametrize("case", CASES)
def test_reports_are_as_they_were_read_and_approved(case: str) -> None:
    for name, text in reports(CASES[case]()).items():
        assert text == (GOLDEN / case / name).read_text(encoding="utf-8"), f"{case}/{name}"
