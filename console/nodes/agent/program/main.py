"""Subcommands: a JSON request on standard input, one JSON document on standard output.

Exit status 0 with `{"answer": …}`, 3 with `{"refused": …}`. What the guard does not need is imported late:
it has to stay small for hours.
"""

from __future__ import annotations

from typing import Callable

from . import guard, holding, memory, samples
from .answers import Doc, Refused, print_answer, print_refusal, read_request
from .folder import Folder
from .reserve import FULL
from .status import status


def _inspect(folder: Folder, request: Doc) -> Doc:
    from .recording import inspect

    return inspect(request)


def _begin(folder: Folder, request: Doc) -> Doc:
    from .operating import begin

    return begin(folder, request)


def _prove_free(folder: Folder, request: Doc) -> Doc:
    from .stopping import look_free

    return look_free(request)


def _prove_health(folder: Folder, request: Doc) -> Doc:
    from .restoring import prove

    return prove(request)


def _service_log(folder: Folder, request: Doc) -> Doc:
    from . import commands
    from .kinds import kind_of
    from .masking import mask_text

    try:
        return {"text": mask_text(kind_of(request["spec"]).log(request["since"], request["limit_bytes"]))}
    except commands.Failed as trouble:
        raise Refused("the service's log can't be read", why=str(trouble)) from None


def _follow(folder: Folder, request: Doc) -> Doc:
    taken = samples.since(folder.file("samples.jsonl"), request["since"], request["limit"])
    return {"status": status(folder, {}), "samples": taken}


def _account(folder: Folder, request: Doc) -> Doc:
    return {"lines": folder.account_since(request["since"])}


def _end_jobs(folder: Folder, request: Doc) -> Doc:
    ended = guard.end_jobs(folder, request["docker"], request["grace_seconds"], "asked")
    return {"pids": sorted(ended)}


def _sample(folder: Folder, request: Doc) -> Doc:
    return {"memory": memory.reading()}


_SUBCOMMANDS: dict[str, Callable[[Folder, Doc], Doc]] = {
    "inspect": _inspect,
    "begin": _begin,
    "prove-free": _prove_free,
    "prove-health": _prove_health,
    "service-log": _service_log,
    "guard-start": holding.start,
    "guard-end": holding.end,
    "lease": holding.renew,
    "status": status,
    "follow": _follow,
    "sample": _sample,
    "account": _account,
    "end-jobs": _end_jobs,
}


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["guard-run"]:
        return guard.run(int(arguments[1]))
    if arguments[:1] == ["operation"]:
        from .operating import run

        return run(int(arguments[1]))
    try:
        subcommand = _SUBCOMMANDS.get(arguments[0] if arguments else "")
        if subcommand is None:
            raise Refused(f"no such subcommand; there are {', '.join(sorted(_SUBCOMMANDS))}", kind="input")
        request = read_request()
        folder = Folder(str(request.get("root") or "~/.lab"), str(request.get("experiment") or "none"))
        print_answer(subcommand(folder, request))
    except Refused as refusal:
        print_refusal(refusal)
        return 3
    except OSError as trouble:
        print_refusal(_of_the_disk(trouble))
        return 3
    return 0


def _of_the_disk(trouble: OSError) -> Refused:
    if trouble.errno in FULL:
        return Refused(
            "no space left on the disk of ~/.lab",
            why=str(trouble),
            next_step="free disk space for this user on the node (see `df -h ~`), then start again",
        )
    return Refused(
        "the guard's folder can't be used",
        why=str(trouble),
        next_step="see that ~/.lab and all in it belong to this user and can be written",
    )
