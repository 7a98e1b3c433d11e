"""A ward with referrals, served on the ports of chi-bench: records, health, notes, audit."""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TASKS = {
    "close-the-referral": {
        "R-17": {"patient": "P. Lind", "status": "open"},
        "R-18": {"patient": "M. Osei", "status": "open"},
    }
}
TASK = os.environ.get("CHI_BENCH_TASK_ID", "")
REFERRALS = TASKS.get(TASK, {})
NOTES = {"R-17": "Seen on 2 March, nothing further needed.", "R-18": "Waiting for the laboratory."}
AUDIT = []
LOCK = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        port = self.server.server_address[1]
        if self.path == "/health":
            self.answer(
                {"status": "ok", "task": TASK} if REFERRALS else {"status": "no such task"}, 200 if REFERRALS else 503
            )
        elif port == 8020 and self.path == "/referrals":
            self.answer(REFERRALS)
        elif port == 8100 and self.path.startswith("/notes/"):
            self.answer({"note": NOTES.get(self.path.removeprefix("/notes/"))})
        elif port == 8200 and self.path == "/audit":
            self.answer({"task": TASK, "referrals": REFERRALS, "audit": AUDIT})
        else:
            self.answer({"error": "not found"}, 404)

    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        name = self.path.removeprefix("/referrals/")
        if (
            self.server.server_address[1] != 8020
            or name not in REFERRALS
            or data.get("status") not in ("open", "closed")
        ):
            self.answer({"error": "not found"}, 404)
            return
        with LOCK:
            REFERRALS[name]["status"] = data["status"]
            AUDIT.append([name, data["status"]])
        self.answer(REFERRALS[name])

    def log_message(self, *args):
        pass


if sys.argv[1:] != ["serve"]:
    sys.exit(f"ward: told to {' '.join(sys.argv[1:])}, can only serve")
print(f"ward: task {TASK!r}, {len(REFERRALS)} referrals", flush=True)
servers = [ThreadingHTTPServer(("0.0.0.0", port), Handler) for port in (8020, 8100, 8200, 8023)]
for server in servers[:-1]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
servers[-1].serve_forever()
