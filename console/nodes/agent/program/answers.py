"""What a subcommand may say: a JSON document, or a refusal with its reason."""

from __future__ import annotations

import json
import sys
from typing import Any, Dict

Doc = Dict[str, Any]


class Refused(Exception):
    """The request is not carried out. `kind` is `input` (a mistake of the caller) or `service` (decide)."""

    def __init__(self, what: str, *, why: str = "", next_step: str = "", kind: str = "service") -> None:
        super().__init__(what)
        self.document = {"kind": kind, "what": what, "why": why, "next": next_step}


def read_request() -> Doc:
    """The request on standard input. Raises `Refused` when it is not a JSON object."""
    try:
        document = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    except ValueError as trouble:
        raise Refused("the request is not JSON", why=str(trouble), kind="input") from None
    if not isinstance(document, dict):
        raise Refused("the request is not a JSON object", kind="input")
    return document


def print_answer(document: Doc) -> None:
    sys.stdout.write(json.dumps({"answer": document}) + "\n")
    sys.stdout.flush()


def print_refusal(refusal: Refused) -> None:
    sys.stdout.write(json.dumps({"refused": refusal.document}) + "\n")
    sys.stdout.flush()
