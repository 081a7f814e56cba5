"""The health ladder. /health stays green while an engine is dead-locked: only an answer proves it."""

from __future__ import annotations

import time
from typing import Callable

from . import commands, web
from .answers import Doc
from .kinds import Kind, View
from .masking import mask_text
from .recording import model_to_ask

NAMES = ("running", "health", "model", "completion", "speed", "counter")
_LOOP_RESTARTS = 2
_TRIES = 3


class _Ended(Exception):
    """A rung failed: nothing above it is reached."""


class Ladder:
    """One climb. `wait_seconds` is how long the service may take to become ready (0: ready now)."""

    def __init__(
        self,
        kind: Kind,
        record: Doc | None,
        key: str | None,
        *,
        answers: bool,
        wait_seconds: float,
        note: Callable[[str, str], None],
    ) -> None:
        self._kind, self._spec, self._record = kind, kind.spec, record or {}
        self._web = web.Web(kind.spec["base_url"], key)
        self._answers = answers
        self._began = time.monotonic()
        self._deadline = self._began + wait_seconds
        self._since = time.time()
        self._note = note
        self._rungs: list[Doc] = []
        self._models: list[str] = []
        self._speed: float | None = None
        self._counter_before: float | None = None
        self._first_restarts: int | None = None

    def climb(self) -> Doc:
        """The health document."""
        steps = (self._running, self._health, self._model, self._completion, self._faster, self._counter)
        try:
            for name, step in zip(NAMES, steps):
                self._step(name, step)
        except _Ended:
            pass
        reached = {rung["name"] for rung in self._rungs}
        for name in NAMES:
            if name not in reached:
                self._rungs.append({"name": name, "state": "not reached", "detail": "", "seconds": 0.0})
        return {
            "healthy": all(rung["state"] in ("passed", "skipped") for rung in self._rungs),
            "rungs": self._rungs,
            "tokens_per_second": self._speed,
            "seconds": time.monotonic() - self._began,
        }

    def _step(self, name: str, step: Callable[[], tuple[str, str]]) -> None:
        began = time.monotonic()
        if name != "running" and not self._answers:
            state, detail = "skipped", "this node does not answer requests"
        else:
            try:
                state, detail = step()
            except (web.NoAnswer, commands.Failed) as trouble:
                state, detail = "failed", str(trouble)
        rung = {"name": name, "state": state, "detail": detail, "seconds": time.monotonic() - began}
        self._rungs.append(rung)
        self._note(f"health: {name} {state}", detail)
        if state == "failed":
            raise _Ended

    def _over(self) -> bool:
        return time.monotonic() >= self._deadline

    def _fault(self, view: View) -> str | None:
        """Why this view can't become healthy by waiting; None while it may."""
        if self._first_restarts is None:
            self._first_restarts = view.restart_count
        restarts = (view.restart_count or 0) - (self._first_restarts or 0)
        if restarts >= _LOOP_RESTARTS:
            return f"crash loop: restarted {restarts} times since the start"
        if view.running or view.looping or view.status.startswith("activating"):
            return None
        ended = f", exit code {view.exit_code}" if view.exit_code is not None else ""
        return f"not running: {view.status}{ended}" + self._last_words()

    def _last_words(self) -> str:
        try:
            text = mask_text(self._kind.log(self._since - 1, 2000))
        except commands.Failed:
            return ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return f"; last log line: {lines[-1][:300]}" if lines else ""

    def _running(self) -> tuple[str, str]:
        """It runs, and goes on running under the same identity for the settling time."""
        steady_since, marks = time.monotonic(), None
        while True:
            view = self._kind.look()
            fault = self._fault(view)
            if fault:
                return "failed", fault
            now = time.monotonic()
            if not view.running or view.marks != marks:
                steady_since, marks = now, view.marks if view.running else None
            elif now - steady_since >= self._spec["settle_seconds"]:
                return "passed", f"{view.status}, restart count {_shown(view.restart_count)} stable"
            if not view.running and self._over():
                return "failed", f"not running: {view.status}"
            time.sleep(0.2)

    def _health(self) -> tuple[str, str]:
        """/health says 200. Until then the service may still be loading, as long as it runs."""
        while True:
            try:
                left = min(10.0, max(2.0, self._deadline - time.monotonic()))
                status, _ = self._web.request("GET", "/health", timeout=left)
                reason = f"/health says {status}"
            except web.NoAnswer as trouble:
                status, reason = 0, str(trouble)
            if status == 200:
                return "passed", "/health says 200"
            fault = self._fault(self._kind.look())
            if fault:
                return "failed", fault
            if self._over():
                return "failed", f"not ready in time: {reason}"
            time.sleep(0.5)

    def _model(self) -> tuple[str, str]:
        self._models = self._web.model_ids()
        wanted = self._spec.get("model_id") or next(iter(self._record.get("model_ids") or []), None)
        if wanted is None:
            return "skipped", "no model id was recorded or configured"
        if wanted in self._models:
            return "passed", f"serves {wanted}"
        return "failed", f"serves {', '.join(self._models) or 'no model'}, expected {wanted}"

    def _completion(self) -> tuple[str, str]:
        """A temperature-0 completion with the expected answer."""
        canary = self._spec["canary"]
        self._counter_before = self._generated()
        answer = self._ask(canary["max_tokens"])
        text = str(answer["text"])
        expected = canary.get("expected") or (self._record.get("reference") or {}).get("text")
        if expected is None:
            return (
                ("passed", "answered; no expected answer known")
                if text.strip()
                else ("failed", "empty answer")
            )
        if expected.strip() in text:
            return "passed", f"answered {text.strip()[:60]!r}"
        return "failed", f"answered {text.strip()[:60]!r}, expected {expected.strip()[:60]!r}"

    def _ask(self, tokens: int) -> Doc:
        """A completion; an error answer right after the start is asked again, silence is not."""
        model = model_to_ask(self._spec, self._models)
        if model is None:
            raise web.NoAnswer("the service lists no model")
        for attempt in range(_TRIES):
            try:
                return self._web.completion(model, self._spec["canary"], tokens=tokens)
            except web.NoAnswer as trouble:
                if attempt == _TRIES - 1 or "HTTP status 5" not in str(trouble):
                    raise
                time.sleep(2.0)
        raise AssertionError("unreachable")

    def _faster(self) -> tuple[str, str]:
        """Tokens/s of the best of three, against the reference taken before the stop."""
        reference = (self._record.get("reference") or {}).get("tokens_per_second")
        best: float | None = None
        for _ in range(_TRIES):
            speed = self._ask(self._spec["canary"]["speed_tokens"])["tokens_per_second"]
            best = max(best or 0.0, speed) if speed else best
            if reference is None or (best and best >= reference * self._spec["min_speed_fraction"]):
                break
        self._speed = best
        if reference is None:
            why = self._record.get("reference_missing") or "no record"
            return "skipped", f"no reference to compare with ({why}); now {_rate(best)}"
        share = (best or 0.0) / reference
        detail = f"{_rate(best)}, {share:.0%} of the reference {_rate(reference)}"
        return ("passed" if share >= self._spec["min_speed_fraction"] else "failed"), detail

    def _generated(self) -> float | None:
        try:
            value = self._web.counters()["generated_tokens_total"]
        except web.NoAnswer:
            return None
        return None if value is None else float(value)

    def _counter(self) -> tuple[str, str]:
        """The engine's own count of generated tokens rose by these requests."""
        after = self._generated()
        if after is None or self._counter_before is None:
            had = (self._record.get("requests") or {}).get("generated_tokens_total") is not None
            if had:
                return "failed", "/metrics counted generated tokens before the stop and does not now"
            return "skipped", "the service does not count generated tokens"
        if after > self._counter_before:
            return "passed", f"generated tokens rose by {after - self._counter_before:.0f}"
        return "failed", f"generated tokens stayed at {after:.0f}"


def _rate(value: float | None) -> str:
    return "no tokens/s" if value is None else f"{value:.1f} tokens/s"


def _shown(value: int | None) -> str:
    return "unknown" if value is None else str(value)
