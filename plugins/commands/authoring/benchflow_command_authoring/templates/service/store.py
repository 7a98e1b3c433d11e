"""The service: a program that runs in the box. `store.py PORT FILE`."""

from __future__ import annotations

import http.server
import json
import pathlib
import sys
import threading


class Store(http.server.BaseHTTPRequestHandler):
    file = pathlib.Path()
    lock = threading.Lock()

    def do_GET(self) -> None:
        if self.path == "/health":
            return self.reply(200, b"ok")
        value = self.load().get(self.path)
        return self.reply(404, b"") if value is None else self.reply(200, value.encode())

    def do_PUT(self) -> None:
        value = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
        with self.lock:
            self.file.write_text(json.dumps({**self.load(), self.path: value}))
        self.reply(204, b"")

    def load(self) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.file.read_text()) if self.file.exists() else {}
        return found

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


if __name__ == "__main__":
    Store.file = pathlib.Path(sys.argv[2])
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Store).serve_forever()
