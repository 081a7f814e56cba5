"""Untrusted bytes to safe text: the one sanitiser between a node, or its mirror, and everything else."""

import re
from typing import NewType

SafeText = NewType("SafeText", str)
"""Text in which no character below 0x20 except newline and tab, nor 0x7f-0x9f, nor a bidi control is left."""

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_INVISIBLE = (
    "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e01ef"
)
_LINE_BREAKS = "\u2028\u2029"
_SURROGATES = "\ud800-\udfff"

_SAFE_BYTES = bytes([0x09, 0x0A, *range(0x20, 0x7F)])
_ANY_UNSAFE = re.compile(f"[{_CONTROLS}{_INVISIBLE}{_LINE_BREAKS}{_SURROGATES}]")

# An unended string sequence stops at the end of its line: a terminal would swallow the rest of the log.
_UNSAFE = re.compile(
    "(?P<sequence>"
    r"(?:\x1b\[|\x9b)[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x18\x1a\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[\x20-\x2f]*[\x30-\x7e]"
    ")"
    r"|(?P<carriage>\r\n?)"
    r"|(?P<c0>[\x00-\x08\x0b-\x1f\x7f])"
    f"|(?P<breaks>[{_LINE_BREAKS}])"
    f"|(?P<surrogate>[{_SURROGATES}])"
    f"|[\x80-\x9f{_INVISIBLE}]"
)


def clean(data: bytes | str) -> SafeText:
    """Return `data` without anything a terminal could act on.

    Bytes are decoded as UTF-8, undecodable ones shown as U+FFFD. ANSI sequences (CSI, OSC, DCS and the
    other string kinds, 7-bit and 8-bit, ended or not) are removed; a carriage return ends the line;
    other control characters are shown in caret notation; bidi and invisible format characters are removed.
    """
    if isinstance(data, bytes) and not data.translate(None, _SAFE_BYTES):
        return SafeText(data.decode("ascii"))
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    if _ANY_UNSAFE.search(text) is None:
        return SafeText(text)
    return SafeText(_UNSAFE.sub(_shown, text))


def _shown(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "c0":
        return "^" + chr(ord(match.group()) ^ 0x40)
    if kind in ("carriage", "breaks"):
        return "\n"
    if kind == "surrogate":
        return "\ufffd"
    return ""


_VALUE = r"['\"]?(?P<secret>[^\s\"'&,;@\[\]]{4,})"
_IS = r"['\"]?\s*[=:]\s*"

# Commit hashes and checkpoint names must not match.
_SECRETS = (
    re.compile(
        r"(?s:(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)))"
    ),
    re.compile(
        r"(?<![A-Za-z0-9_-])(?P<secret>hf_[A-Za-z0-9]{30,}|nvapi-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{36,}"
        r"|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}"
        r"|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])"
        r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})"
    ),
    re.compile(r"(?i:wandb_api_key\W{1,4}|wandb login (?:--\S+ )*)(?P<secret>[0-9a-f]{40,})\b"),
    re.compile(rf"(?i:\bauthorization{_IS}['\"]?(?:bearer|basic|token)\s+)(?P<secret>[^\s\"'\[]{{4,}})"),
    re.compile(r"(?i:[a-z][a-z0-9+.-]*://[^\s:/@]*):(?P<secret>[^\s/@\[]+)@"),
    re.compile(rf"\b[A-Z][A-Z0-9_]*(?:_TOKEN|_SECRET|_PASSWORD|_API_KEY|_SECRET_KEY){_IS}{_VALUE}"),
    re.compile(
        r"(?i:\b(?:password|passwd|client_secret|aws_secret_access_key|(?:api|access|secret)[_-]?key"
        r"|(?:api|access|auth|hub|hf|refresh)[_-]?token)"
        rf"(?:{_IS}|\s+(?=[a-z0-9_-]{{16,}}\b))){_VALUE}"
    ),
)


def redact(text: str) -> tuple[str, int]:
    """Replace secrets (tokens, keys, passwords in URLs, PEM blocks) by `[redacted]`; also how many were."""
    count = 0
    for pattern in _SECRETS:
        text, replaced = pattern.subn(_without_secret, text)
        count += replaced
    return text, count


def _without_secret(match: re.Match[str]) -> str:
    start, end = match.span("secret")
    whole, offset = match.group(), match.start()
    return f"{whole[: start - offset]}[redacted]{whole[end - offset :]}"


_SECRET_NAME = re.compile(r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|CREDENTIALS?)(?:_|$)")


def is_secret_name(name: str) -> bool:
    """Whether the name of an environment variable says that its value must not be written down."""
    return _SECRET_NAME.search(name.upper()) is not None
