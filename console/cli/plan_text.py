"""The plan in words: what `lab plan` prints for a person, with commands that can be pasted."""

import shlex
from collections.abc import Iterator
from typing import Any

from console.cli.ledger_text import duration

GIB = 2**30


def plan_lines(document: dict[str, Any]) -> Iterator[str]:
    """The document of `lab plan --json`, line by line."""
    yield f"{document['profile']}: {document['title']}"
    for place in document["unfilled"]:
        yield f"warning: not filled in yet: {place}"
    yield ""
    yield "prerequisites, checked before anything is stopped"
    for check in document["prerequisites"]:
        yield f"  {'blocks ' if check['blocks'] else 'warns  '} {check['words']}"
    yield ""
    yield from _ledger(document["ledger"])
    for config in document["configurations"]:
        yield ""
        yield from _configuration(config)
    if document["degraded_path"]:
        yield f"\nif the main line is down: {', '.join(document['degraded_path'])}"
    yield ""
    yield from _time(document["time"])


def _ledger(ledger: dict[str, Any]) -> Iterator[str]:
    if not ledger["known"]:
        yield f"ledger: {ledger['why']}"
        return
    static = ledger["classic_full_static_bytes"] / 1e9
    yield (
        f"ledger: {ledger['model']}, {ledger['parameters']:,} parameters; full training by the 16 B rule "
        + (f"{static:.0f} GB" if static >= 1 else f"{static * 1e3:.0f} MB")
    )
    if ledger["device"] is None:
        yield "  no device in the profile: no paper figures for memory and step time"


def _configuration(config: dict[str, Any]) -> Iterator[str]:
    batch = (
        f"global {config['global_batch']} = micro {config['micro_batch']} × DP {config['data_parallel']} "
        f"× {config['micro_batches']}"
    )
    how = f"{config['mode']}, {config['parallel']}; varies {config['varies']}"
    yield f"{config['id']}  {config['title']}  [{how}]"
    yield f"  {batch}"
    if config["expect"]:
        yield f"  expected: {config['expect']}"
    paper = config["paper"]
    if paper:
        memory, step = paper["memory_bytes"], paper["step_seconds"]
        yield f"  paper: {_banded(memory, GIB, 1)} GiB, {_banded(step, 1, 2)} s/it"
        yield f"    {paper['fit']}: {paper['fit_reason']}"
        if len(config["nodes"]) > 1:
            yield "    arithmetic alone: traffic between nodes and the pipeline's bubble come on top"
    yield f"  time: {_run_time(config['time'])}"
    for node in config["nodes"]:
        mark = " (its log is shown)" if node["shows_log"] else ""
        yield f"  on {node['node']}, rank {node['rank']}{mark}:"
        yield "    " + " ".join(f"{key}={shell_word(value)}" for key, value in node["env"].items()) + " \\"
        yield "    " + " ".join(shell_word(word) for word in node["argv"])
    for finding in config["lint"]:
        yield f"  {finding['severity']}: {finding['what']}"
        yield f"    if ignored: {finding['if_ignored']}\n    remedy: {finding['remedy']}"


def shell_word(text: str) -> str:
    """`text` as one word of a shell; a leading `~/` still means the home folder there."""
    if text.startswith("~/") and text != "~/":
        return "~/" + shlex.quote(text[2:])
    return text if text in ("~", "~/") else shlex.quote(text)


def _run_time(time: dict[str, Any]) -> str:
    steps = "" if time["steps"] is None else f"{time['steps']} steps, "
    if time["unknown"]:
        return f"{steps}unknown: {time['unknown']}"
    return f"{steps}{_spanned(time)} with {duration(time['startup_seconds'])} allowed for the start"


def _time(time: dict[str, Any]) -> Iterator[str]:
    partly = " without what is unknown" if time["unknown"] else ""
    startup = sum(run["startup_seconds"] for run in time["runs"])
    yield f"time in all: {_spanned(time)}{partly}"
    yield f"  {duration(time['checklist_seconds'])} for the checklist at most"
    yield f"  {duration(startup)} allowed for {len(time['runs'])} starts"
    if time["restore_at_most_seconds"]:
        longest = duration(time["restore_at_most_seconds"])
        how = "" if time["restore_seconds"] else " at most, as the profile gives no restore_seconds"
        yield f"  {longest} for the service to come back{how}"
    if any(run["seconds"] for run in time["runs"]):
        yield f"  {time['basis']}"
    for missing in time["unknown"]:
        yield f"  unknown: {missing}"
    window = time["window_seconds"]
    if window is None:
        yield "  no window: its length is not in the profile; --window 4h compares with one"
    elif time["fit"] in ("does not fit", "may not fit"):
        yield f"  warning: {time['fit']} the window of {duration(window)}"
        yield "    remedy: fewer configurations (--only), fewer steps (max_steps), or a longer window"
    elif time["fit"] == "fits":
        yield f"  fits the window of {duration(window)}"
    else:
        yield f"  whether it fits the window of {duration(window)} can't be told"


def _spanned(time: dict[str, Any]) -> str:
    low, high = duration(time["low"]), duration(time["high"])
    return duration(time["seconds"]) + ("" if low == high else f" ({low} to {high})")


def _banded(value: dict[str, Any], unit: float, digits: int) -> str:
    number, low, high = (value[part] / unit for part in ("number", "low", "high"))
    return f"{number:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
