"""`lab service` beside an experiment that has nothing to give back."""

import re
from pathlib import Path

from typer.testing import CliRunner

from console.cli.files import shipped
from console.cli.main import app

SERVICE = """service:
  kind: command
  name: stand-in
  start: [sleep, "600"]
  pid_file: "~/stand-in.pid"
  log_file: "~/stand-in.log"
  base_url: http://127.0.0.1:9
"""


def test_restore_without_a_stop_says_so_and_shows_what_is(tmp_path: Path) -> None:
    text = (shipped("profiles") / "embedded.yaml").read_text(encoding="utf-8")
    held, count = re.subn(r"service:\n  kind: none\n", SERVICE, text)
    assert count == 1
    (tmp_path / "held.yaml").write_text(held, encoding="utf-8")
    result = CliRunner().invoke(
        app, ["service", "restore", str(tmp_path / "held.yaml"), "--out", str(tmp_path / "experiment")]
    )
    assert result.exit_code == 3, result.output
    assert "nothing to restore" in result.stdout
    assert "node-a: not healthy" in result.stdout
