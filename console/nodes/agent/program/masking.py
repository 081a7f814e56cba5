"""Secrets out of everything that is written down: names of environment variables and shapes of tokens."""

from __future__ import annotations

import re
from typing import Any

_HIDDEN = "•••"
_SECRET_NAME = re.compile(r"(?i)(key|token|secret|passw|credential|authorization)")
_FLAG = (
    r"(?!--?(?:[a-z0-9_.-]*[_.-])?(?:max|num|min|batched|speculative)[_.-])"
    r"--?[a-z0-9_.-]*(?:(?:api|access|secret)[-_]?key|token|secret|passw(?:or)?d)"
)
_SECRET_FLAG = re.compile(rf"(?i)^{_FLAG}$")
_SHAPES = re.compile(
    r"hf_[A-Za-z0-9]{30,}|nvapi-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{30,}"
    r"|sk-[A-Za-z0-9_-]{16,}|AKIA[0-9A-Z]{16}|(?i:bearer)\s+[A-Za-z0-9._~+/=-]{8,}"
)
_URL_PASSWORD = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")
_ASSIGNED = re.compile(
    r"(?i)((?:api[-_]?key|token|secret|passw(?:or)?d)['\"]?\s*[=:]\s*[\['\"]*)([^\s,'\"}\]]{4,})"
)
_VALUE = r"""(?:\\*"[^"]*"?|\\*'[^']*'?|\S+)"""
_FLAG_IN_TEXT = re.compile(rf"""(?i)(?<![\w.-])({_FLAG}["',]*(?:[\s=]|\\\n)(?:\s|\\\n)*){_VALUE}""")
# In a text only names in capitals are variables: `max_tokens=4096` of a log line hides nothing.
_VARIABLE_IN_TEXT = re.compile(
    r"\b([A-Z_][A-Z0-9_]*?(?:KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTHORIZATION)[A-Z0-9_]*=)" + _VALUE
)


def mask_text(text: str) -> str:
    """Free text (a log line, a command in one piece) with tokens and passwords hidden."""
    text = _SHAPES.sub(_HIDDEN, text)
    for named in (_FLAG_IN_TEXT, _VARIABLE_IN_TEXT, _ASSIGNED):
        text = named.sub(r"\1" + _HIDDEN, text)
    return _URL_PASSWORD.sub(_HIDDEN, text)


def _mask_entry(text: str) -> str:
    name, equals, _ = text.partition("=")
    if equals and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and _SECRET_NAME.search(name):
        return f"{name}={_HIDDEN}"
    if equals and _SECRET_FLAG.match(name):
        return f"{name}={_HIDDEN}"
    if any(map(str.isspace, text)):
        return mask_text(text)
    return _URL_PASSWORD.sub(_HIDDEN, _SHAPES.sub(_HIDDEN, text))


def masked(arguments: list[str]) -> list[str]:
    """A command line or a list of NAME=value with the secret values hidden."""
    result, hide = [], False
    for argument in arguments:
        result.append(_HIDDEN if hide else _mask_entry(argument))
        hide = bool(_SECRET_FLAG.match(argument))
    return result


def mask_document(value: Any) -> Any:
    """Every text of a JSON document, masked; the value of a key that names a secret is hidden whole."""
    if isinstance(value, str):
        return _mask_entry(value)
    if isinstance(value, list):
        if all(isinstance(item, str) for item in value):
            return masked(value)
        return [mask_document(item) for item in value]
    if isinstance(value, dict):
        return {
            key: _HIDDEN
            if isinstance(item, str) and item and _SECRET_NAME.search(key)
            else mask_document(item)
            for key, item in value.items()
        }
    return value
