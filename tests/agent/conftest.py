"""A node without SSH, and the home folder of a guard."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.local_node import LocalNode
from support.processes import end_processes_of


@pytest.fixture
def node(tmp_path: Path) -> Iterator[LocalNode]:
    home = tmp_path / "home"
    home.mkdir()
    yield LocalNode(home)
    end_processes_of(tmp_path)
