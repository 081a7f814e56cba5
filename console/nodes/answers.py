"""What an answer means: the document in it, or the error that says why there is none."""

import json
from typing import Any

from console.core.errors import AnswerUnreadable, NodeError, ScriptFailed, ScriptTimedOut, Unreachable
from console.nodes.channel import WholeSession
from console.nodes.shell import Answer
from console.nodes.text import clean, redact


def failed(node: str, answer: Answer) -> ScriptFailed:
    """A script that ended by itself, but not well."""
    return ScriptFailed(
        node,
        f"a script ended with status {answer.exit_status}",
        exit_status=answer.exit_status,
        why=last_words(answer.error_text) or last_words(answer.text),
    )


def timed_out(node: str, session: WholeSession, timeout: float) -> ScriptTimedOut:
    """A script that was ended at its limit, or a shell that never came up."""
    if session.out.pid is None:
        return ScriptTimedOut(
            node,
            f"the shell did not come up within {timeout:g} s",
            why=last_words(clean(session.out.content + session.err.content))
            or "a start-up file of the login shell may wait for input",
            next_step="check the login shell's start-up files: none may wait without a terminal",
        )
    return ScriptTimedOut(
        node,
        f"a script was ended after {timeout:g} s",
        why=last_words(clean(session.err.content)) or last_words(clean(session.out.content)),
    )


def unreadable(node: str, session: WholeSession) -> NodeError:
    """A script whose last marker never came."""
    if session.lost:
        return Unreachable(
            node,
            "the link was lost while a script ran",
            why=session.lost,
            next_step="the console connects again by itself",
        )
    printed = last_words(clean(session.err.content)) or last_words(clean(session.out.content))
    if session.out.pid is None:
        return AnswerUnreadable(
            node,
            f"no bash answered (status {session.exit_status})",
            why=printed,
            next_step="the node needs bash, coreutils (timeout, head) and a login shell that runs them",
        )
    return AnswerUnreadable(
        node,
        "a script's answer was cut short",
        why=printed or "its last marker is missing: it was killed on the node",
        next_step="look for the out-of-memory killer in the node's kernel log, then try again",
    )


def document(node: str, answer: Answer, interpreter: str) -> dict[str, Any]:
    """The JSON object that a program printed whole, or on its last line, with its strings cleaned."""
    lines = [line for line in answer.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
    for candidate in (answer.stdout.decode("utf-8", "replace"), lines[-1] if lines else ""):
        try:
            document = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(document, dict):
            cleaned: dict[str, Any] = _cleaned(document)
            return cleaned
    raise AnswerUnreadable(
        node,
        f"a program run by {interpreter} gave no JSON document",
        why=last_words(answer.text) or "it printed nothing",
        next_step=f"run `{interpreter} --version` on {node}: it may not be Python",
    )


def last_words(text: str, lines: int = 5, width: int = 400) -> str:
    """The last lines of a text, short enough for a message, without secrets."""
    kept = [line[-width:] for line in text.strip().splitlines()[-lines:]]
    return redact("\n       ".join(kept))[0]


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(str(key)): _cleaned(item) for key, item in value.items()}
    return value
