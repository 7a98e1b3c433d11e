"""`bench view`: a job of 10,000 rollouts in Chromium, a trajectory of 100,000 events, and what the server holds.

Needs Chromium and playwright; without them only the server is measured. Wall times are the browser's own clock, minimum
over several loads; on a busy machine only the ratios say something.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.perf import metrics
from benchmarks.perf._measure import Measure

EVENTS = 100_000
ROLLOUT = "task-0__00000000"
PLAIN = "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)\n"


def _events() -> Iterator[dict[str, Any]]:
    place = {"scene": "main", "role": "coder", "turn": 1, "session": "s"}
    yield {"kind": "turn_started", **place, "data": {"prompt": "go"}}
    for n in range(EVENTS // 4):
        call = {"toolCallId": str(n), "title": f"ls /folder/{n}", "kind": "execute", "rawInput": {"command": f"ls {n}"}}
        text = {"type": "content", "content": {"type": "text", "text": "a line of output\n" * (n % 20)}}
        yield {"kind": "agent_thought_chunk", **place, "data": {"content": {"type": "text", "text": f"thought {n}"}}}
        yield {"kind": "tool_call", **place, "data": call}
        yield {"kind": "tool_call_update", **place, "data": {**call, "status": "completed", "content": [text]}}
        yield {"kind": "agent_message_chunk", **place, "data": {"content": {"type": "text", "text": f"said {n}"}}}


def _make(job: Path) -> None:
    metrics._make(job)
    for trial in range(10):
        shutil.copytree(job / f"task-1__{trial:08x}", job.parent / "small" / f"task-1__{trial:08x}")
    with (job / ROLLOUT / "events.jsonl").open("w") as log:
        for number, event in enumerate(_events(), 1):
            stamp = {"v": 1, "seq": number, "time": "2026-01-01T00:00:00+00:00", "at": number / 100}
            log.write(json.dumps({**stamp, **event}) + "\n")


class _Server:
    def __init__(self, job: Path, env: dict[str, str]) -> None:
        command = [sys.executable, "-m", "benchflow_core.cli.main", "view", str(job), "--no-open"]
        self._process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout
        self.url = self._process.stdout.readline().strip()

    def get(self, key: str) -> Any:
        with urllib.request.urlopen(f"{self.url}data/{key}.json") as answer:
            return json.load(answer)

    def megabytes(self) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1000

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=20)


@contextmanager
def _serving(job: Path, env: dict[str, str]) -> Iterator[_Server]:
    server = _Server(job, env)
    try:
        yield server
    finally:
        server.close()


def _server_measures(server: _Server, job: Path, runs: int) -> list[Measure]:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", PLAIN, str(job / ROLLOUT / "events.jsonl")], check=True)
    plain = time.perf_counter() - began
    first = server.megabytes()
    began = time.perf_counter()
    while not server.get(f"rollout/{job.name}/{ROLLOUT}")["complete"]:
        pass
    whole = time.perf_counter() - began
    held = server.megabytes()
    pages = server.get(f"rollout/{job.name}/{ROLLOUT}")["steps"] // 100
    for number in range(0, pages, max(1, pages // 200)):
        server.get(f"steps/{job.name}/{ROLLOUT}/{number}")
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        server.get(f"job/{job.name}")
        took.append(time.perf_counter() - began)
    return [
        Measure("100,000 events to steps / plain json", whole / plain, "x", 12.0, f"plain: {plain:.2f} s"),
        Measure("memory for 100,000 events", held - first, "MB", 120.0, f"events.jsonl: {_size(job):.0f} MB"),
        Measure("memory gained by 200 pages", server.megabytes() - held, "MB", 20.0),
        Measure("document of 10,000 rollouts, warm", min(took), "s", 0.5),
    ]


def _size(job: Path) -> float:
    return (job / ROLLOUT / "events.jsonl").stat().st_size / 1e6


def _browser_measures(server: _Server, job: Path, runs: int) -> list[Measure]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        return []
    flags = ["--no-sandbox", "--disable-background-networking"]
    flags += ["--enable-precise-memory-info", "--js-flags=--expose-gc"]
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=program, args=flags)
        page = browser.new_page()
        loads: dict[str, list[float]] = {job.name: [], "small": []}
        for number in range(max(3, min(runs, 10))):
            for name, took in loads.items():
                page.goto(f"{server.url}?{name}{number}#/job/{name}")
                page.wait_for_selector(".rows .tr", timeout=120_000)
                took.append(page.evaluate("performance.getEntriesByName('rows')[0].startTime") / 1000)
        large, small = min(loads[job.name]), min(loads["small"])
        page.goto(f"{server.url}?last#/job/{job.name}")
        page.wait_for_selector(".rows .tr", timeout=120_000)
        sort = page.evaluate(
            "() => { const t = performance.now(); document.querySelectorAll('.th button')[4].click();"
            " return performance.now() - t; }"
        )
        page.goto(f"{server.url}#/rollout/{job.name}/{ROLLOUT}")
        page.wait_for_selector(".feed .step .body", timeout=120_000)
        heap = "(gc(), performance.memory.usedJSHeapSize / 1e6)"
        before = page.evaluate(heap)
        for part in range(1, 60):
            page.evaluate(f"window.scrollTo(0, document.documentElement.scrollHeight * {part} / 60)")
            page.wait_for_timeout(20)
        gained, steps = page.evaluate(heap) - before, page.locator(".feed .step").count()
        browser.close()
    return [
        Measure("first rows of 10,000, warm", large, "s", 1.0),
        Measure("first rows of 10,000 / of 10", large / small, "x", 4.0, f"of 10: {small:.2f} s"),
        Measure("sorting 10,000 rows", sort / 1000, "s", 0.1),
        Measure("page's memory gained by scrolling", gained, "MB", 12.0),
        Measure("steps on the page at once", steps, "", 120.0),
    ]


def measure(runs: int) -> list[Measure]:
    with tempfile.TemporaryDirectory(prefix="benchflow-perf-") as temporary:
        job = Path(temporary, "jobs", "job")
        _make(job)
        time.sleep(2.5)  # the index does not remember files that are younger
        env = {**os.environ, "BENCHFLOW_CACHE": str(Path(temporary, "cache"))}
        with _serving(job.parent, env) as server:
            server.get(f"job/{job.name}")
            return [*_server_measures(server, job, runs), *_browser_measures(server, job, runs)]
