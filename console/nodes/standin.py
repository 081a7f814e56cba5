"""A stand-in for a model server, for labs on machines that serve nothing: it answers what vLLM answers.

`python -m console.nodes.standin --port 18080 [--ready-seconds 3]`, standard library only.
"""

import argparse
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "stand-in"
SECONDS_PER_TOKEN = 0.002
CANARY_ANSWER = " 204"


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    generated = 0
    lock = threading.Lock()

    def do_GET(self) -> None:
        if self.path == "/health":
            self._send(200, b"")
        elif self.path == "/v1/models":
            self._send(200, json.dumps({"data": [{"id": MODEL}]}).encode())
        elif self.path == "/metrics":
            names = {
                "num_requests_running": 0,
                "num_requests_waiting": 0,
                "generation_tokens_total": self.generated,
            }
            lines = (f'vllm:{name}{{model_name="{MODEL}"}} {value}.0\n' for name, value in names.items())
            self._send(200, "".join(lines).encode(), "text/plain")
        else:
            self._send(404, b"{}")

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        tokens = int(request.get("max_tokens", 16))
        time.sleep(tokens * SECONDS_PER_TOKEN)
        with self.lock:
            _Answers.generated += tokens
        choice = {"text": CANARY_ANSWER, "message": {"role": "assistant", "content": CANARY_ANSWER}}
        document: dict[str, Any] = {"choices": [choice], "usage": {"completion_tokens": tokens}}
        self._send(200, json.dumps(document).encode())

    def log_message(self, format: str, *parts: object) -> None:
        """Requests are not worth a line."""

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ready-seconds", type=float, default=3.0)
    options = parser.parse_args()
    time.sleep(options.ready_seconds)
    print("Application startup complete.", flush=True)
    ThreadingHTTPServer(("127.0.0.1", options.port), _Answers).serve_forever()


if __name__ == "__main__":
    main()
