"""The claw services: how soon one answers, and that fifty clients at once lose nothing.

Each client writes and reads by turns over one kept connection for CLAWS_SECONDS (default 30); afterwards the rows in
the database are counted against the writes that were answered with success."""

from __future__ import annotations

import http.client
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.perf._measure import Measure, main

CLIENTS = 50
SECONDS = float(os.environ.get("CLAWS_SECONDS", "30"))


@dataclass(frozen=True)
class Subject:
    name: str
    write: str
    body: bytes
    read: str
    table: str
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def argv(self) -> list[str]:
        return [sys.executable, "-c", f"from benchflow_service_claw_{self.name}.cli import main; main()"]


SUBJECTS = (
    Subject(
        "gmail",
        "/upload/gmail/v1/users/me/messages?uploadType=media",
        b"From: a@b.example\r\nSubject: load\r\n\r\nsome words\r\n",
        "/gmail/v1/users/me/labels",
        "messages",
        "message/rfc822",
    ),
    Subject(
        "gcal",
        "/calendar/v3/calendars/primary/events",
        json.dumps({"summary": "load", "start": {"date": "2026-03-10"}, "end": {"date": "2026-03-11"}}).encode(),
        "/calendar/v3/users/me/calendarList",
        "events",
    ),
    Subject("gdrive", "/drive/v3/files", b'{"name": "load"}', "/drive/v3/about?fields=user", "drive_files"),
    Subject("gdoc", "/v1/documents", b'{"title": "load"}', "/health", "documents"),
    Subject(
        "slack",
        "/api/chat.postMessage",
        b"channel=general&text=load",
        "/api/conversations.list",
        "messages",
        "application/x-www-form-urlencoded",
        {"Authorization": "Bearer xoxb-load"},
    ),
)


@contextmanager
def serving(subject: Subject, folder: Path) -> Iterator[tuple[int, float, subprocess.Popen[bytes]]]:
    """Its port, the seconds until /health answered, and the process."""
    db, log = folder / f"{subject.name}.db", folder / f"{subject.name}.log"
    began = time.monotonic()
    with log.open("wb") as sink:
        process = subprocess.Popen([*subject.argv, "--db", str(db), "serve", "--port", "0", "--no-mcp"], stderr=sink)
    try:
        while "http://" not in (text := log.read_text()):
            if process.poll() is not None:
                raise RuntimeError(text)
            time.sleep(0.005)
        port = int(text.split("http://")[1].split(",")[0].rsplit(":", 1)[1])
        while not _healthy(port):
            time.sleep(0.005)
        yield port, time.monotonic() - began, process
    finally:
        process.terminate()
        process.wait(10)


def cpu(process: subprocess.Popen[bytes]) -> float:
    """Processor seconds of a running process: what a busy machine does not change much."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _healthy(port: int) -> bool:
    try:
        return _ask(http.client.HTTPConnection("127.0.0.1", port, timeout=5), "GET", "/health")[0] == 200
    except OSError:
        return False


def _ask(
    connection: http.client.HTTPConnection,
    verb: str,
    path: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
) -> tuple[int, bytes]:
    connection.request(verb, path, body or None, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read()


def kept_against_new(port: int, requests: int = 60) -> float:
    """The median time of a request on a kept connection, as a share of one on a connection of its own."""
    kept = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    times: dict[bool, list[float]] = {True: [], False: []}
    for number in range(requests):
        new = number % 2 == 0
        began = time.perf_counter()
        _ask(http.client.HTTPConnection("127.0.0.1", port, timeout=5) if new else kept, "GET", "/health")
        times[new].append(time.perf_counter() - began)
    kept.close()
    return statistics.median(times[False]) / statistics.median(times[True])


def load(subject: Subject, port: int, seconds: float) -> tuple[int, int, list[str]]:
    """Requests, successful writes, and what went wrong."""
    counts, errors, lock = [0, 0], [], threading.Lock()
    until = time.monotonic() + seconds

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Content-Type": subject.kind, **subject.headers}
        asked = written = 0
        try:
            while time.monotonic() < until:
                status, answer = _ask(connection, "POST", subject.write, subject.body, headers)
                if status != 200 or b'"ok":false' in answer.replace(b" ", b""):
                    raise RuntimeError(f"{status} {answer[:200]!r}")
                written += 1
                status, answer = _ask(connection, "GET", subject.read, headers=subject.headers)
                if status != 200:
                    raise RuntimeError(f"{status} {answer[:200]!r}")
                asked += 2
        except Exception as error:
            with lock:
                errors.append(repr(error))
        finally:
            connection.close()
            with lock:
                counts[0] += asked
                counts[1] += written

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return counts[0], counts[1], errors


def rows(folder: Path, subject: Subject) -> int:
    with sqlite3.connect(folder / f"{subject.name}.db") as db:
        return int(db.execute(f"SELECT count(*) FROM {subject.table}").fetchone()[0])


def measure_one(subject: Subject, runs: int) -> list[Measure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        starts = []
        for _ in range(max(1, runs // 3)):
            with serving(subject, folder) as (_, seconds, process):
                starts.append((seconds, cpu(process)))
        with serving(subject, folder) as (port, _, process):
            kept = kept_against_new(port)
            before, used = rows(folder, subject), cpu(process)
            began = time.monotonic()
            asked, written, errors = load(subject, port, SECONDS)
            took, used = time.monotonic() - began, cpu(process) - used
        lost = written - (rows(folder, subject) - before)
    return [
        Measure(f"{subject.name} until /health", min(starts)[0], "s", 1.0, f"best of {len(starts)}"),
        Measure(f"{subject.name} processor until /health", min(one for _, one in starts), "s", 0.6),
        Measure(f"{subject.name} on a kept connection", kept, "x", 1.5, "of a connection per request"),
        Measure(f"{subject.name} errors", len(errors), "", 0, errors[0][:120] if errors else f"{CLIENTS} clients"),
        Measure(f"{subject.name} lost writes", abs(lost), "", 0, f"{written} written"),
        Measure(f"{subject.name} requests", asked / took, "/s", None, f"{took:.0f} s, both sides on this machine"),
        Measure(f"{subject.name} processor per request", 1000 * used / max(asked, 1), "ms"),
    ]


def measure(runs: int) -> list[Measure]:
    wanted = os.environ.get("CLAWS", "").split() or [subject.name for subject in SUBJECTS]
    return [one for subject in SUBJECTS if subject.name in wanted for one in measure_one(subject, runs)]


if __name__ == "__main__":
    sys.exit(main({"claws": measure}))
