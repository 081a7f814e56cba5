"""known_hosts: read leniently, judged strictly."""

import base64
import hashlib
import hmac
import stat
from pathlib import Path

import asyncssh
import pytest

from console.core.errors import InputError
from console.nodes.hostkeys import accept, host_names, known_hosts_line, read_known_hosts

KEY = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()
OTHER = asyncssh.generate_private_key("ssh-ed25519").convert_to_public()
PORT_NAME = "[spark.lab]:2222"


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def data_of(key: asyncssh.SSHKey) -> str:
    return known_hosts_line("x", key).split(" ", 1)[1]


def hashed(name: str) -> str:
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


@pytest.mark.parametrize(
    ("patterns", "name", "state"),
    [
        ("spark.lab", "spark.lab", "trusted"),
        ("SPARK.lab,10.0.0.1", "spark.lab", "trusted"),
        ("*.lab", "spark.lab", "trusted"),
        ("*.lab,!spark.lab", "spark.lab", "new"),
        ("spark.la?", "spark.lab", "trusted"),
        (PORT_NAME, PORT_NAME, "trusted"),
        ("spark.lab", PORT_NAME, "new"),
        ("[spark.lab]:22222", PORT_NAME, "new"),
        (hashed("spark.lab"), "spark.lab", "trusted"),
        (hashed(PORT_NAME), PORT_NAME, "trusted"),
        (hashed("other.lab"), "spark.lab", "new"),
        ("other.lab", "spark.lab", "new"),
    ],
)
def test_a_line_speaks_of_the_hosts_it_names(tmp_path: Path, patterns: str, name: str, state: str) -> None:
    known = read_known_hosts([written(tmp_path / "known_hosts", f"{patterns} {data_of(KEY)}")])
    assert known.judge((name,), KEY)[0] == state


def test_the_four_states_are_told_apart(tmp_path: Path) -> None:
    path = written(
        tmp_path / "known_hosts",
        f"one {data_of(KEY)}",
        f"two {data_of(OTHER)}",
        f"three {data_of(KEY)}",
        f"@revoked * {data_of(OTHER)}",
        f"@revoked three {data_of(KEY)}",
    )
    known = read_known_hosts([path])
    states = {name: known.judge((name,), KEY)[0] for name in ("one", "two", "three", "four")}
    assert states == {"one": "trusted", "two": "changed", "three": "revoked", "four": "new"}
    assert known.judge(("four",), OTHER)[0] == "revoked"


def test_a_malformed_line_is_skipped_with_a_warning(tmp_path: Path) -> None:
    path = written(
        tmp_path / "known_hosts",
        "# comment",
        "",
        "broken",
        "host ssh-ed25519 AAAAnot-base64!",
        "@unknown host ssh-ed25519 AAAA",
        "|1|zz host ssh-ed25519 AAAA",
        f"good {data_of(KEY)} a comment",
    )
    known = read_known_hosts([tmp_path / "missing", path])
    assert known.judge(("good",), KEY)[0] == "trusted"
    assert [warning.split(":")[1] for warning in known.warnings] == ["3", "4", "5", "6"]


def test_a_file_called_none_is_refused() -> None:
    with pytest.raises(InputError, match="would not be checked"):
        read_known_hosts([Path("none")])


def test_accepting_appends_a_whole_line_with_mode_600(tmp_path: Path) -> None:
    path = tmp_path / "ssh" / "known_hosts"
    accept(known_hosts_line("one", KEY), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text(path.read_text().rstrip("\n"))
    accept(known_hosts_line(PORT_NAME, OTHER), path)
    known = read_known_hosts([path])
    assert known.judge(("one",), KEY)[0] == known.judge((PORT_NAME,), OTHER)[0] == "trusted"
    assert known.warnings == ()


def test_the_port_is_part_of_the_name_unless_it_is_22() -> None:
    assert host_names("spark.lab", 22) == ("spark.lab",)
    assert host_names("spark.lab", 2222) == (PORT_NAME,)
