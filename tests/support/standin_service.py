"""A stand-in for an inference server: standard library only, runs in a container or as a plain process.

`--control FOLDER` holds `mode.json`, read at the start and at every request:
    ready_seconds   time until /health says 200
    completions     ok, hang, wrong, error, slow
    everything      ok, hang
    crash           exit 1 instead of becoming ready
    ignore_term     outlive SIGTERM
    in_flight       requests that /metrics reports as running
    key             API key that /v1 demands
    ballast_mb      memory a child keeps when the service itself has ended
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MODEL = "stand-in-7b"
_SECONDS_PER_TOKEN = 0.002
_BALLAST = "import sys, time; kept = b'x' * (int(sys.argv[1]) << 20); time.sleep(600)"

arguments = argparse.ArgumentParser()
arguments.add_argument("--port", type=int, required=True)
arguments.add_argument("--control", required=True)
arguments.add_argument("--api-key", default="")
options = arguments.parse_args()
began = time.monotonic()
generated = 0
lock = threading.Lock()


def mode() -> dict[str, Any]:
    try:
        with (Path(options.control) / "mode.json").open(encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
            return found
    except (OSError, ValueError):
        return {}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *parts: object) -> None:
        pass

    def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def held(self) -> bool:
        current = mode()
        if current.get("everything") == "hang":
            time.sleep(600)
        key = current.get("key")
        if key and self.path.startswith("/v1") and self.headers.get("Authorization") != f"Bearer {key}":
            self.answer(401, b'{"error": "unauthorized"}')
            return True
        return False

    def do_GET(self) -> None:
        if self.held():
            return
        if self.path == "/health":
            self.answer(200, b"")
        elif self.path == "/v1/models":
            self.answer(200, json.dumps({"data": [{"id": MODEL}]}).encode())
        elif self.path == "/metrics":
            in_flight = mode().get("in_flight", 0)
            self.answer(
                200,
                f'vllm:num_requests_running{{model_name="{MODEL}"}} {in_flight}.0\n'
                f'vllm:num_requests_waiting{{model_name="{MODEL}"}} 0.0\n'
                f'vllm:generation_tokens_total{{model_name="{MODEL}"}} {generated}.0\n'.encode(),
                "text/plain",
            )
        else:
            self.answer(404, b"{}")

    def do_POST(self) -> None:
        global generated
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if self.held():
            return
        how = mode().get("completions", "ok")
        if how == "hang":
            time.sleep(600)
        if how == "error":
            self.answer(500, b'{"error": "engine dead"}')
            return
        tokens = int(request["max_tokens"])
        time.sleep(tokens * _SECONDS_PER_TOKEN * (8 if how == "slow" else 1))
        with lock:
            generated += tokens
        text = "7" if how == "wrong" else " 204"
        document = {"choices": [{"text": text}], "usage": {"completion_tokens": tokens}}
        self.answer(200, json.dumps(document).encode())


def main() -> None:
    if mode().get("ignore_term"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
    ballast = mode().get("ballast_mb")
    if ballast:
        subprocess.Popen([sys.executable, "-c", _BALLAST, str(ballast)], start_new_session=True)
    say("INFO 06-07 13:19:30 [model.py:555] Resolved architecture: StandInForCausalLM")
    for percent in (0, 50, 100):
        say(f"Loading safetensors checkpoint shards: {percent:3d}% Completed | {percent // 50}/2")
        time.sleep(float(mode().get("ready_seconds", 0.3)) / 3)
    if mode().get("crash"):
        say("ValueError: Free memory on device cuda:0 (8.88/121.69 GiB) on startup is less than desired")
        sys.exit(1)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    say("INFO:     Application startup complete.")
    server.serve_forever()


main()
