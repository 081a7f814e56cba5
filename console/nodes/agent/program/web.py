"""The service's HTTP interface: bounded requests, its models, its counters, and one completion."""

from __future__ import annotations

import http.client
import json
import os
import re
import time
from urllib.parse import urlsplit

from .answers import Doc

_BODY_LIMIT = 4 << 20
_METRIC = re.compile(r"^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{[^}]*\})?\s+([0-9.eE+-]+|NaN)")
_COUNTERS = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:generation_tokens_total": "generated_tokens_total",
}


class NoAnswer(Exception):
    """The service did not answer, or not in time."""


def api_key(request: Doc) -> str | None:
    """The key that came with the request, else the one of the file or variable that the service names."""
    if request.get("api_key"):
        return str(request["api_key"])
    spec = request.get("spec", {})
    path, name = spec.get("api_key_file"), spec.get("api_key_env")
    if path:
        try:
            with open(os.path.expanduser(path), encoding="utf-8") as file:
                return file.read().strip() or None
        except OSError:
            return None
    return os.environ.get(name) if name else None


class Web:
    """One service address, with its key kept in memory only."""

    def __init__(self, base_url: str, key: str | None) -> None:
        parts = urlsplit(base_url)
        self.base_url = base_url
        self._secure = parts.scheme == "https"
        self._address = parts.hostname or "127.0.0.1"
        self._port = parts.port or (443 if self._secure else 80)
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def request(
        self, method: str, path: str, *, timeout: float, body: Doc | None = None
    ) -> tuple[int, bytes]:
        """Status and body. The limit holds for the whole answer, however it drips. Raises `NoAnswer`."""
        deadline = time.monotonic() + timeout
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._address, self._port, timeout=timeout)
        headers = dict(self._headers)
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        try:
            connection.request(method, self._prefix + path, body=data, headers=headers)
            response = connection.getresponse()
            parts: list[bytes] = []
            size = 0
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise NoAnswer(f"{path}: no complete answer within {timeout:.0f} s")
                if connection.sock is not None:
                    connection.sock.settimeout(left)
                part = response.read1(65536)
                if not part:
                    return response.status, b"".join(parts)
                parts.append(part)
                size += len(part)
                if size > _BODY_LIMIT:
                    raise NoAnswer(f"{path}: the answer is longer than {_BODY_LIMIT} bytes")
        except TimeoutError:
            raise NoAnswer(f"{path}: no answer within {timeout:.0f} s") from None
        except OSError as trouble:
            timed_out = "timed out" in str(trouble)
            reason = f"no answer within {timeout:.0f} s" if timed_out else str(trouble)
            raise NoAnswer(f"{path}: {reason}") from None
        except http.client.HTTPException as trouble:
            raise NoAnswer(f"{path}: not HTTP ({type(trouble).__name__})") from None
        finally:
            connection.close()

    def document(self, method: str, path: str, *, timeout: float, body: Doc | None = None) -> Doc:
        """The JSON object of a 200 answer. Raises `NoAnswer` for anything else."""
        status, data = self.request(method, path, timeout=timeout, body=body)
        if status == 401:
            raise NoAnswer(f"{path}: 401, the API key is missing or wrong (api_key_env or api_key_file)")
        if status != 200:
            raise NoAnswer(f"{path}: HTTP status {status}")
        try:
            document = json.loads(data)
        except ValueError:
            raise NoAnswer(f"{path}: the answer is not JSON") from None
        if not isinstance(document, dict):
            raise NoAnswer(f"{path}: the answer is not a JSON object")
        return document

    def model_ids(self) -> list[str]:
        entries = self.document("GET", "/v1/models", timeout=10).get("data", [])
        return [str(entry["id"]) for entry in entries if isinstance(entry, dict) and "id" in entry]

    def counters(self) -> Doc:
        """Requests running and waiting, and tokens generated. Raises `NoAnswer`."""
        status, data = self.request("GET", "/metrics", timeout=10)
        if status != 200:
            raise NoAnswer(f"/metrics: HTTP status {status}")
        return parse_counters(data.decode("utf-8", "replace"))

    def completion(self, model: str, canary: Doc, *, tokens: int) -> Doc:
        """One temperature-0 completion: text, tokens, seconds, tokens/s. Raises `NoAnswer`."""
        chat = canary["endpoint"] == "chat"
        body: Doc = {"model": model, "max_tokens": tokens, "temperature": 0}
        if chat:
            body["messages"] = [{"role": "user", "content": canary["prompt"]}]
        else:
            body["prompt"] = canary["prompt"]
        path = "/v1/chat/completions" if chat else "/v1/completions"
        began = time.monotonic()
        answer = self.document("POST", path, timeout=canary["timeout_seconds"], body=body)
        seconds = time.monotonic() - began
        try:
            choice = answer["choices"][0]
            text = str(choice["message"]["content"] if chat else choice["text"])
        except (KeyError, IndexError, TypeError):
            raise NoAnswer(f"{path}: the answer holds no choice") from None
        made = (answer.get("usage") or {}).get("completion_tokens")
        count = int(made) if isinstance(made, (int, float)) and made > 0 else None
        return {
            "text": text[:2000],
            "tokens": count,
            "seconds": seconds,
            "tokens_per_second": count / seconds if count and seconds > 0 else None,
        }


def parse_counters(text: str) -> Doc:
    """The three counters of a Prometheus text, summed over their labels; None where a counter is absent."""
    sums: dict[str, float] = {}
    for line in text.splitlines():
        found = _METRIC.match(line)
        name = _COUNTERS.get(found.group(1)) if found else None
        if found and name and found.group(2) != "NaN":
            sums[name] = sums.get(name, 0.0) + float(found.group(2))
    return {name: sums.get(name) for name in _COUNTERS.values()}


def in_flight(counters: Doc) -> float | None:
    """Requests running and waiting; None when the service does not count them."""
    if counters.get("running") is None and counters.get("waiting") is None:
        return None
    return float((counters.get("running") or 0) + (counters.get("waiting") or 0))
