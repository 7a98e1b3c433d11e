"""What a task, an agent or a stop reason says never reaches the terminal as a command: on a real one."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading

import pytest

BAD = [
    "\x1b[2J\x1b[1;1H",
    "\x1b]0;owned\x07",
    "\x1b]52;c;b3duZWQ=\x07",
    "\x1b]8;;http://attacker.invalid\x1b\\link\x1b]8;;\x1b\\",
    "\x9b31m\x90q\x9c",
    "\x1bc\x1b[?1049h\x1b(0",
    "[bold red]markup[/] [link=http://attacker.invalid]x[/link]",
    "user\u202etxt.exe \u2066\u2067\u2069\u200f",
    "line\r\x0b\x0cfeed\x08\x08\x08\x7f",
    "lone \ud83d half",
    "x" * 20_000,
]
SHOW = """
import json, sys, time
from benchflow_core.cli.progress import Progress
from benchflow_core.cli.ui import Ui
bad = json.loads(sys.stdin.read())
progress = Progress(Ui())
progress.hear("planned", {"total": len(bad) * 2, "done": 0, "sandbox": bad[0], "isolation": bad[1], "chosen": True,
    "seed": 0, "concurrency": 2, "cpus": 2.0, "memory_mb": 100, "job_dir": "jobs/" + bad[2]})
for n, one in enumerate(bad):
    progress.hear("started", {"rollout": f"r{n}", "task": one, "attempt": 2, "arm": one})
row = {"turn": 1, "tool_calls": 2, "seconds": 3.0, "quiet_sec": 1.0, "tokens": 10}
rows = [{"rollout": f"r{n}", "task": one, "arm": one, "phase": one[:30], **row} for n, one in enumerate(bad)]
progress.hear("live", {"running": rows, "tokens": 5, "cost_usd": 0.1, "left": 1, "stopping": None})
time.sleep(0.6)
for n, one in enumerate(bad):
    info = {"kind": one, "code": one, "message": one, "remedy": one, "retryable": False, "details": {}}
    progress.hear("finished", {"task_name": one, "rollout_name": f"r{n}", "rewards": None, "error": one, "error_info": info,
        "verifier_error": None, "verifier_error_info": None, "timing": {"total": 1.0}, "trial": 1, "arm": one,
        "notices": [one], "flags": [one], "agent": one, "model": one, "tokens": None, "cost_usd": None,
        "image_fidelity": "exact", "verifier_isolation": "fresh"})
progress.hear("draining", {"reason": bad[3] + bad[7], "running": 2})
time.sleep(0.6)
progress.close()
"""
OURS = re.compile(r"\x1b\[(?:\d+(?:;\d+)*)?m|\x1b\[\d*[AK]|\x1b\[2K|\x1b\[\?25[lh]")
"""Colours, up, clear the line, hide and show the cursor: what the live view itself needs."""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_the_live_view_shows_everything_and_runs_nothing():
    import json

    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "160", "LINES": "50"}
    env.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-c", SHOW], env=env, stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, text=True
    )
    os.close(theirs)
    parts: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(ours, 65536):
                parts.append(data)
        except OSError:
            return

    reader = threading.Thread(target=read)
    reader.start()
    process.communicate(json.dumps(BAD), timeout=60)
    reader.join(10)
    os.close(ours)
    shown = b"".join(parts).decode("utf-8", "replace")
    assert process.returncode == 0, shown
    assert "TASK" in shown and "PHASE" in shown, "the live view was drawn"
    rest = OURS.sub("", shown)
    assert "\x1b" not in rest and "\x07" not in rest and "\x9b" not in rest and "\x90" not in rest
    assert not re.search(r"[\u200f\u202a-\u202e\u2066-\u2069]", rest) and "\x08" not in rest
    assert "[bold red]markup" in rest, "markup is text"
