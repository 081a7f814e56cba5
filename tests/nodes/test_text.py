"""The sanitiser: nothing a terminal could act on comes through, and secrets are found."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.nodes.text import clean, is_secret_name, redact

FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)

ESCAPES = [
    (b"\x1b[31mred\x1b[0m", "red"),
    (b"\x1b]0;pwned\x07title", "title"),
    (b"\x1b]52;c;aGk=\x1b\\clip", "clip"),
    (b"\x1bP1$r0m\x1b\\dcs", "dcs"),
    (b"\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\x", "x"),
    (b"\x1bcreset", "reset"),
    (b"\x1b(Bcharset", "charset"),
    (b"\x1b[6n\x1b[A\x1b[2Kup", "up"),
    ("\x9b31mc1\x9b0m \x9d0;t\x9cosc".encode(), "c1 osc"),
    (b"before\x1b]0;never ended\nnext line", "before\nnext line"),
    (b"cut \x1b[3", "cut "),
    (b"cut \x1b", "cut ^["),
    (b"\x1b\x1b[0m[31m", "^[[31m"),
    (b"a\x00b\x08c\x7fd", "a^@b^Hc^?d"),
    (b"12%\r34%\r\nend\n", "12%\n34%\nend\n"),
    ("abc\u202edef\u2066x\u200b".encode(), "abcdefx"),
    (b"good \xff\xfe bad", "good \ufffd\ufffd bad"),
    ("tab\tstays ü 漢字 🙂\n".encode(), "tab\tstays ü 漢字 🙂\n"),
]


@pytest.mark.parametrize(("data", "shown"), ESCAPES)
def test_escapes_are_removed_and_text_stays(data: bytes, shown: str) -> None:
    assert clean(data) == shown


@given(st.binary(max_size=300))
def test_no_control_byte_survives_from_any_bytes(data: bytes) -> None:
    assert FORBIDDEN.search(clean(data)) is None


_PIECES = st.sampled_from([*"\x1b[]P\x9b\x9d\x07\\\x9cm\n\r\tx\u202e\ud800", "0;"])


@settings(max_examples=500)
@given(st.one_of(st.lists(_PIECES, max_size=30).map("".join), st.text(max_size=100)))
def test_no_control_character_survives_from_any_text(text: str) -> None:
    once = clean(text)
    assert FORBIDDEN.search(once) is None
    assert clean(once) == once


def test_lines_are_neither_lost_nor_joined() -> None:
    lines = [f"\x1b[1mline {n}\x1b]8;;http://x" for n in range(1000)]
    assert clean("\n".join(lines)).splitlines() == [f"line {n}" for n in range(1000)]


HEX40 = "0123456789abcdef0123456789abcdef01234567"
CANARIES = [
    "token hf_abcdefghijklmnopqrstuvwxyzABCDEF01 end",
    f"WANDB_API_KEY={HEX40}",
    f"$ wandb login --relogin {HEX40}",
    "key nvapi-abcdefghijklmnopqrstuvwxyz012345",
    "remote ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl_mnop",
    "OPENAI sk-proj-abcdefghijklmnopqrstuv",
    "id AKIAIOSFODNN7EXAMPLE",
    "Authorization: Bearer abc.def-ghi",
    "'authorization': 'Basic dXNlcjpwYXNz'",
    "password=hunter22",
    '{"api_key": "s3cr3t-value"}',
    "MODELSCOPE_API_TOKEN=11112222-3333",
    "--hub_token 0123456789abcdef0123",
    "clone https://user:passw0rd@example.org/x.git",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\nZXkt\n-----END OPENSSH PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEcut",
]
SECRET_PARTS = re.compile(
    "hf_abc|01234567|nvapi-a|ghp_a|_pat_11|sk-proj|IOSFODNN|abc.def|dXNlc|hunter|s3cr3t|1111|89abcdef0123"
    "|passw0rd|b3Bl|MIIE"
)


@pytest.mark.parametrize("text", CANARIES)
def test_a_secret_is_replaced_once_and_stays_replaced(text: str) -> None:
    redacted, count = redact(text)
    assert count == 1
    assert SECRET_PARTS.search(redacted) is None
    assert redact(redacted) == (redacted, 0)


@pytest.mark.parametrize(
    "text",
    [
        f"commit {HEX40}",
        "Saving model checkpoint to output/v0-20261129-180000/checkpoint-93",
        "eos_token: <|im_end|>, pad_token_id=151643, tokens/s=1234.5",
        "task-abcdefghijklmnopqrstuvwx done",
        "{'loss': '6.942', 'token_acc': '0.001212', 'epoch': '0.0678'}",
        "http://127.0.0.1:29500/path@x",
        "add_special_tokens=True max_new_tokens 64",
    ],
)
def test_ordinary_log_text_is_left_alone(text: str) -> None:
    assert redact(text) == (text, 0)


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "db_password", "TOKEN"]
)
def test_names_that_say_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "MASTER_PORT", "KEYBOARD", "MAX_TOKENS"])
def test_names_that_do_not(name: str) -> None:
    assert not is_secret_name(name)
