"""An experiment keeps the profile it was begun with, and a window that is over begins nothing."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from console.cli.files import read_lab
from console.core.errors import InputError
from console.core.plan.profile import Window
from console.engine.opening import LabFiles, open_recorder, window_end

NOW = datetime(2026, 1, 1, 22, tzinfo=UTC)
FILES = read_lab("embedded")


def test_the_same_profile_resumes(tmp_path: Path) -> None:
    open_recorder(tmp_path, FILES).journal.close()
    recorder = open_recorder(tmp_path, FILES)
    assert len(list(recorder.journal.events())) == 1


def test_another_profile_is_refused(tmp_path: Path) -> None:
    open_recorder(tmp_path, FILES).journal.close()
    changed = LabFiles(FILES.profile_text.replace("seed: 42\n", "seed: 43\n"), "x.yaml", FILES.checklist_text)
    with pytest.raises(InputError, match="begun with another profile"):
        open_recorder(tmp_path, changed)


def test_unknown_configuration_begins_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no configuration E9"):
        open_recorder(tmp_path, FILES, only=["E9"])


@pytest.mark.parametrize(
    ("window", "hours", "end"),
    [
        (Window(hours=4), None, NOW + timedelta(hours=4)),
        (Window(hours=4), 1.5, NOW + timedelta(hours=1.5)),
        (Window(), None, None),
        (Window(end=NOW + timedelta(minutes=1)), None, NOW + timedelta(minutes=1)),
    ],
)
def test_window_ends(window: Window, hours: float | None, end: datetime | None) -> None:
    assert window_end(window, NOW, hours) == end


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (Window(end=NOW), "ended at"),
        (Window(start=NOW + timedelta(hours=1), end=NOW + timedelta(hours=2)), "begins at"),
    ],
)
def test_window_over_or_not_begun(window: Window, words: str) -> None:
    with pytest.raises(InputError, match=words):
        window_end(window, NOW)
