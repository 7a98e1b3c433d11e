"""Jobs on disk of the shape the core writes, `bench view` as a process, and a real Chromium to look at it with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(sys.executable).with_name("bench")
CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)


# --- data -----------------------------------------------------------------------------------------------------


def result(task: str, name: str, **more: Any) -> dict[str, Any]:
    """`result.json` of a rollout that passed, unless `more` says otherwise."""
    from benchflow_core.contracts.common import Usage
    from benchflow_core.rollout.result import RolloutResult

    usage = Usage(input_tokens=1200, output_tokens=300, cost_usd=0.02, source="provider_response")
    plugins = [{"kind": "agent", "name": "some", "distribution": "benchflow-agent-some", "version": "1.0"}]
    base = RolloutResult(
        task_name=task,
        rollout_name=name,
        agent="some",
        model="provider/model-1",
        sandbox="local",
        rewards={"reward": 1.0},
        usage=usage,
        timing={"agent_execution": 3.0, "total": 4.5},
        isolation="fresh",
        task_digest=f"sha256:{sum(map(ord, task)):064x}",
        plugins=plugins,
        started_at="2026-01-01T00:00:00+00:00",
        finished_at="2026-01-01T00:00:05+00:00",
        core_version="1.0",
    ).to_json()
    return {**base, **more}


def make_rollout(job: Path, name: str, events: Sequence[Mapping[str, Any]] = (), **more: Any) -> Path:
    folder = job / name
    folder.mkdir(parents=True, exist_ok=True)
    task = more.pop("task", name.partition("__")[0])
    (folder / "result.json").write_text(json.dumps(result(task, name, **more)))
    (folder / "config.json").write_text("{}")
    write_events(folder / "events.jsonl", events)
    return folder


def write_events(path: Path, events: Sequence[Mapping[str, Any]]) -> None:
    lines = []
    for number, event in enumerate(events, 1):
        at = event.get("at", number / 10)
        moment = f"2026-01-01T00:{int(at) // 60 % 60:02d}:{int(at) % 60:02d}.{int(at % 1 * 1e6):06d}+00:00"
        lines.append(json.dumps({"v": 1, "seq": number, "time": moment, "at": at, **event}))
    path.write_text("".join(f"{line}\n" for line in lines))


def unscored(kind: str, code: str) -> dict[str, Any]:
    info = {"kind": kind, "code": code, "message": "it broke", "remedy": None, "retryable": True, "details": {}}
    return {"rewards": None, "error": "it broke", "error_info": info}


WHERE = {"scene": "main", "role": "coder", "turn": 1, "session": "s"}
TALK: list[dict[str, Any]] = [
    {"kind": "phase_started", "at": 0.0, "data": {"phase": "execute"}},
    {"kind": "turn_started", "at": 0.1, **WHERE, "data": {"prompt": "Write the file, please."}},
    {"kind": "agent_thought_chunk", "at": 0.5, **WHERE, "data": {"content": {"type": "text", "text": "I should "}}},
    {"kind": "agent_thought_chunk", "at": 0.6, **WHERE, "data": {"content": {"type": "text", "text": "look first."}}},
    {
        "kind": "tool_call",
        "at": 1.0,
        **WHERE,
        "data": {
            "toolCallId": "c1",
            "title": "ls /app",
            "kind": "execute",
            "status": "pending",
            "rawInput": {"command": "ls"},
        },
    },
    {
        "kind": "tool_call_update",
        "at": 2.5,
        **WHERE,
        "data": {
            "toolCallId": "c1",
            "status": "completed",
            "content": [
                {"type": "content", "content": {"type": "text", "text": "name.txt"}},
                {"type": "diff", "path": "/app/a.txt", "oldText": "one\ntwo\n", "newText": "one\nthree\n"},
            ],
        },
    },
    {"kind": "agent_message_chunk", "at": 3.0, **WHERE, "data": {"content": {"type": "text", "text": "All done."}}},
    {"kind": "turn_finished", "at": 3.1, **WHERE, "data": {"stop_reason": "end_turn", "seconds": 3.0, "usage": None}},
    {"kind": "phase_finished", "at": 3.2, "data": {"phase": "execute", "seconds": 3.2, "error": None}},
]

EXCHANGE = {
    "request": {
        "timestamp": "2026-01-01T00:00:00.700000+00:00",
        "method": "POST",
        "path": "/v1/messages",
        "headers": {},
        "body": {"model": "m", "messages": [{"role": "user", "content": "the whole question"}]},
    },
    "response": {
        "timestamp": "2026-01-01T00:00:00.950000+00:00",
        "status_code": 200,
        "headers": {},
        "body": {"content": [{"type": "text", "text": "the whole answer"}]},
    },
    "duration_ms": 250.0,
    "usage": {"input_tokens": 12, "output_tokens": 3},
    "error": None,
    "metadata": {
        "request_model": "m",
        "provider_model": "m-1",
        "call_type": "anthropic",
        "call_purpose": "agent",
        **WHERE,
    },
}


CONTESTED: dict[str, Any] = {
    "policy": "fresh",
    "contested": True,
    "settled_by": None,
    "scored": "clean",
    "readings": {"as_left": {"rewards": {"reward": 1.0}}, "clean": {"rewards": {"reward": 0.0}}},
    "scores": {"as-left": {"reward": 1.0}, "clean": {"reward": 0.0}},
    "culprits": [
        {
            "path": "/usr/local/bin/checker",
            "change": "modified",
            "row": "program",
            "why": "it came with the image",
            "diff": "--- image\n+++ as left\n@@ -1 +1 @@\n-grep -q 42 answer\n+exit 0",
        }
    ],
}


@pytest.fixture(scope="session")
def jobs(tmp_path_factory) -> Path:
    """Two jobs of the same three tasks: one task flipped, one was not scored."""
    root = tmp_path_factory.mktemp("view") / "jobs"
    before, after = root / "before", root / "after"
    tests = [{"name": "test_a", "status": "passed", "message": "", "score": None}]
    tests.append({"name": "test_b", "status": "failed", "message": "expected 3, got 4", "score": None})
    for trial in (1, 2):
        make_rollout(before, f"alpha__0000000{trial}", TALK, trial=trial)
        make_rollout(before, f"beta__0000000{trial}", TALK, trial=trial, rewards={"reward": 0.0}, tests=tests)
        make_rollout(before, f"gamma__0000000{trial}", TALK, trial=trial)
        make_rollout(after, f"alpha__1000000{trial}", TALK, trial=trial, rewards={"reward": 0.0})
        make_rollout(after, f"beta__1000000{trial}", TALK, trial=trial, rewards={"reward": 0.0})
        make_rollout(after, f"gamma__1000000{trial}", TALK, trial=trial, **unscored("provider", "overloaded"))
    rich = before / "beta__00000001"
    (rich / "verifier").mkdir()
    (rich / "verifier" / "test-stdout.txt").write_text("collected 2 items\n\x1b[31mFAILED\x1b[0m test_b\n")
    (rich / "trajectory").mkdir()
    (rich / "trajectory" / "llm_trajectory.jsonl").write_text(json.dumps(EXCHANGE) + "\n")
    (rich / "artifacts").mkdir()
    (rich / "artifacts" / "notes.txt").write_text("a note\n")
    return root


@pytest.fixture
def many_files(tmp_path) -> Iterator[Path]:
    """A folder in memory where there is one: a disk may take half a minute for ten thousand small files, and as long
    again to take them away."""
    memory = Path("/dev/shm")
    if not (memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 28):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="benchflow-view-") as folder:
        yield Path(folder)


# --- the command ----------------------------------------------------------------------------------------------


class Viewer:
    """`bench view` as a process of its own, until `close`."""

    def __init__(self, prefix: Sequence[str], args: Sequence[Any], env: Mapping[str, str]) -> None:
        command = [*prefix, str(BENCH), "view", *map(str, args), "--no-open"]
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout and self.process.stderr
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://127.0.0.1:"), self.process.stderr.read()

    def memory(self) -> int:
        """Kilobytes it holds now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    def close(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(10)
        finally:
            self.process.kill()
            self.process.communicate()


@pytest.fixture(scope="session")
def quiet_net() -> Iterator[list[str]]:
    """A network of its own for server and browser: nothing else is in it, and nothing that happens outside disturbs
    it (Chromium drops its requests whenever any network of the host comes or goes). Empty where that is not allowed."""
    script = "import socket, fcntl, struct, sys; s = socket.socket(); "
    script += "fcntl.ioctl(s, 0x8914, struct.pack('16sh14x', b'lo', 0x49)); print('up', flush=True); sys.stdin.read()"
    command = ["unshare", "--net", sys.executable, "-c", script]
    try:
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        yield []
        return
    assert holder.stdin and holder.stdout
    up = holder.stdout.readline() == b"up\n"
    yield ["nsenter", "-t", str(holder.pid), "--net", "--"] if up else []
    holder.stdin.close()
    holder.wait(10)


@pytest.fixture(scope="session")
def view_env(tmp_path_factory) -> dict[str, str]:
    return {**os.environ, "BENCHFLOW_CACHE": str(tmp_path_factory.mktemp("view-cache"))}


@pytest.fixture
def viewer(quiet_net, view_env) -> Iterator[Callable[..., Viewer]]:
    opened: list[Viewer] = []

    def start(*args: Any, net: bool = True, env: Mapping[str, str] | None = None) -> Viewer:
        opened.append(Viewer(quiet_net if net else [], args, {**view_env, **(env or {})}))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture(scope="session")
def shared_viewer(quiet_net, view_env, jobs) -> Iterator[Viewer]:
    """One server over both jobs, for tests that change nothing."""
    one = Viewer(quiet_net, [jobs], view_env)
    yield one
    one.close()


# --- the browser ----------------------------------------------------------------------------------------------


@pytest.fixture(
    scope="module"
)  # not longer: while Playwright runs, this thread has a running event loop, and others want theirs
def chromium(quiet_net, tmp_path_factory) -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt-get install chromium")
    launcher = tmp_path_factory.mktemp("chromium") / "chromium"
    launcher.write_text(f'#!/bin/sh\nexec {" ".join(quiet_net)} {CHROMIUM} "$@"\n')
    launcher.chmod(0o755)
    flags = [
        "--no-sandbox",
        "--disable-background-networking",
        "--enable-precise-memory-info",
        "--js-flags=--expose-gc",
    ]
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=str(launcher), args=flags)
        yield browser
        browser.close()


class Watched:
    """A page, and everything that must not happen on it."""

    def __init__(self, context: Any) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(20_000)
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, url: str, wait: str = "html[data-ready]") -> Any:
        self.page.goto(url)
        self.page.wait_for_selector(wait, state="attached")
        return self.page

    def outside(self, url: str) -> list[str]:
        return [one for one in self.asked if not one.startswith((url, "data:", "blob:"))]


@pytest.fixture
def watched(chromium) -> Iterator[Callable[..., Watched]]:
    contexts = []

    def make(**options: Any) -> Watched:
        contexts.append(chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}))
        return Watched(contexts[-1])

    yield make
    for context in contexts:
        context.close()


def wait_until(check: Callable[[], Any], seconds: float = 20.0) -> Any:
    until = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)
    return found
