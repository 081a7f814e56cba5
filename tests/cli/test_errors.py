"""Every way to call `lab` wrongly: one message, the documented exit code, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from console.cli.files import shipped
from console.cli.main import app

EMBEDDED = (shipped("profiles") / "embedded.yaml").read_text(encoding="utf-8")
EXAMPLE = Path(__file__).parents[2] / "examples" / "h200-pair"
MODULE = [sys.executable, "-m", "console.cli.main"]

WRONG = [
    ("run nosuch", "no profile nosuch"),
    ("run ./nosuch.yaml", "no profile ./nosuch.yaml"),
    ("run folder", "folder is a folder, not a profile"),
    ("run unknown.yaml", "nosuch"),
    ("run broken.yaml", "broken.yaml:2: not readable as YAML"),
    ("run empty.yaml", "empty.yaml: empty"),
    ("run binary.yaml", "UTF-8"),
    ("run device.yaml", "H999"),
    ("run forever.yaml", "lease_seconds"),
    ("plan endless.yaml", "lease_seconds"),
    ("plan variable.yaml", "env.A B; touch x"),
    ("plan deep.yaml", "nested too deeply"),
    ("plan /dev/zero", "more than 4 MiB"),
    ("ledger memory --config /dev/zero", "more than 4 MiB"),
    ("run embedded --out file", "file is not a folder"),
    ("run embedded --out file/x", "Not a directory"),
    ("run embedded --out /proc/lab", "/proc/lab"),
    ("run embedded --out foreign", "holds other things and no experiment"),
    ("run embedded --only E9", "choose among E0"),
    ("run embedded --only ,", "names no configuration"),
    ("run embedded --lang xx", "en or zh"),
    ("run embedded --window 5", "4h or 90m"),
    ("run", "PROFILE"),
    ("plan embedded --only E9", "choose among E0"),
    ("plan embedded --only ,", "names no configuration"),
    ("plan folder", "not a profile"),
    ("doctor nosuch", "no profile nosuch"),
    ("open embedded", "run embedded"),
    ("demo", "demo --headless"),
    ("watch nosuch", "no experiment nosuch"),
    ("watch example", "--json"),
    ("replay foreign", "no experiment foreign"),
    ("replay example", "--json"),
    ("replay example --lang xx", "en or zh"),
    ("replay example --until 0", "--until"),
    ("export foreign", "no experiment foreign"),
    ("export file", "no experiment file"),
    ("export example --format xx", "json, csv, md, html"),
    ("export example --lang xx", "en or zh"),
    ("export example --out file", "can't write to file"),
    ("recount foreign", "no experiment foreign"),
    ("service status embedded", "names no service"),
    ("service stop spark-pair --out foreign", "holds other things"),
    ("service stop nosuch", "no profile nosuch"),
    ("parse-log nosuch", "can't be read"),
    ("parse-log folder", "is a folder"),
    ("ledger memory --model nosuch", "unknown model"),
    ("ledger memory --model Qwen2.5-7B --tp x", "--tp"),
    ("ledger memory --model Qwen2.5-7B --tp 0", "tp 0"),
    ("ledger memory --model Qwen2.5-7B --seq -1", "seq -1"),
    ("ledger memory --config folder", "can't be read"),
    ("ledger mfu --params nan --tokens-per-second 1 --peak-tflops 1", "params nan"),
    ("ledger memory --model Qwen2.5-7B --resident-gib -50", "resident gib -50.0: must be a finite number, 0"),
    ("ledger time --probe x", "MICRO_BATCHES:SECONDS"),
    ("ledger topology --world 0", "world 0"),
    ("ledger choose --memory-gib -1", "above 0"),
    ("ledger choose --memory-gib 80 --table folder", "can't be read"),
    ("ledger cost --hours inf", "finite"),
    ("nosuch", "nosuch"),
]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every kind of wrong file, to work in."""
    for name in ("folder", "foreign"):
        (tmp_path / name).mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("not ours")
    (tmp_path / "file").write_text("x")
    (tmp_path / "unknown.yaml").write_text(EMBEDDED + "nosuch: 1\n", encoding="utf-8")
    (tmp_path / "device.yaml").write_text(EMBEDDED + "device: H999\n", encoding="utf-8")
    (tmp_path / "forever.yaml").write_text(EMBEDDED.replace("lease_seconds: 900", "lease_seconds: .inf"))
    (tmp_path / "endless.yaml").write_text(EMBEDDED.replace("lease_seconds: 900", "lease_seconds: 1.0e+9"))
    (tmp_path / "variable.yaml").write_text(EMBEDDED + '  "A B; touch x": "1"\n', encoding="utf-8")
    (tmp_path / "deep.yaml").write_text("[" * 5000)
    (tmp_path / "broken.yaml").write_text("name: [\n")
    (tmp_path / "empty.yaml").touch()
    (tmp_path / "binary.yaml").write_bytes(b"name: \xff\xfe\n")
    (tmp_path / "example").symlink_to(EXAMPLE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


@pytest.mark.parametrize(("call", "says"), WRONG, ids=[call for call, _ in WRONG])
def test_wrong_use_is_told_in_one_message(desk: Path, call: str, says: str) -> None:
    before = sorted(path.name for path in (desk / "foreign").iterdir())
    result = CliRunner().invoke(app, call.split())
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert "Traceback" not in result.output
    assert "an error of its own" not in result.output
    assert sorted(path.name for path in (desk / "foreign").iterdir()) == before


def called(*words: str, shell: str = '"$@"', **env: str) -> subprocess.CompletedProcess[bytes]:
    """`lab` as a process of its own, through a shell that arranges its streams."""
    command = ["bash", "-o", "pipefail", "-c", shell, "lab", *MODULE, *words]
    surroundings = {key: value for key, value in os.environ.items() if not key.startswith("LC_")}
    return subprocess.run(command, capture_output=True, timeout=60, env=surroundings | env)


@pytest.mark.parametrize(
    "env",
    [
        {"LANG": "C", "PYTHONIOENCODING": "ascii"},
        {"LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"NO_COLOR": "1", "TERM": "dumb"},
        {"COLUMNS": "40"},
    ],
    ids=lambda env: " ".join(f"{key}={value}" for key, value in env.items()),
)
@pytest.mark.parametrize(
    ("call", "code"), [("plan embedded", 0), ("plan nosuch", 2), ("ledger memory --tp x", 2)]
)
def test_plain_terminals(desk: Path, env: dict[str, str], call: str, code: int) -> None:
    done = called(*call.split(), **env)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stdout + done.stderr
    assert b"\x1b[3" not in done.stdout + done.stderr or "NO_COLOR" not in env


@pytest.mark.parametrize(
    ("shell", "call", "code"),
    [
        ('"$@" <&-', "plan embedded", 0),
        ('"$@" >&-', "plan embedded --json", 0),
        ('"$@" >&- 2>&-', "plan embedded", 0),
        ('"$@" <&- >&- 2>&-', "plan nosuch", 2),
        ('"$@" <&-', "replay example", 2),
        ('"$@" | true', "plan embedded", 141),
        ('"$@" | head -n 1', "replay example --json", 141),
        ('"$@" > /dev/full', "plan embedded", 3),
    ],
)
def test_closed_streams(desk: Path, shell: str, call: str, code: int) -> None:
    done = called(*call.split(), shell=shell)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


@pytest.mark.parametrize("call", ["plan embedded", "ledger cost --hours 4", "--help", "--version"])
def test_output_without_room(desk: Path, call: str) -> None:
    done = called(*call.split(), shell='"$@" > /dev/full')
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith(b"No space left on device: standard output\n")
    assert b"Traceback" not in done.stderr
