"""Nothing survives a crash, a time-out or Ctrl-C: no process, no box, no folder, no secret."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

MARK = "benchflow-teardown-mark"


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def hanging(tmp_path, examples):
    """A task whose solution starts a background process and never ends."""
    import shutil

    task = shutil.copytree(examples / "hello-file", tmp_path / "hanging")
    (task / "solution" / "solve.sh").write_text(f"#!/bin/sh\n(exec -a {MARK} sleep 987) &\necho started\nsleep 987\n")
    (task / "solution" / "solve.sh").write_text(
        "#!/bin/bash\nsetsid nohup sleep 98765 >/dev/null 2>&1 &\necho started > /app/started\nsleep 98765\n"
    )
    return task


def sleepers() -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                args = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"98765" in args:
                found.append(entry.name)
    return found


def wait_for(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.xdist_group("teardown")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_tears_down_and_still_writes_its_result(command, env, name, hanging, tmp_path, number):
    argv = [*command, "eval", "create", "-t", str(hanging), "-a", name("oracle"), "-o", str(tmp_path / "jobs")]
    (tmp_path / "home").mkdir()
    run = subprocess.Popen(
        argv, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert wait_for(lambda: len(sleepers()) >= 2), run.communicate(timeout=5)
    run.send_signal(number)
    if number == signal.SIGINT:  # the first drains, the second stops
        assert wait_for(lambda: any("draining" in p.read_text() for p in tmp_path.glob("jobs/*/journal.jsonl")))
        run.send_signal(number)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert "Traceback" not in err
    assert wait_for(lambda: not sleepers(), 5)
    results = [json.loads(p.read_text()) for p in (tmp_path / "jobs").glob("*/*/result.json")]
    assert [r["error_info"]["kind"] for r in results] == ["cancelled"]
    assert list((tmp_path / "cache" / "work").iterdir()) == []


@pytest.mark.xdist_group("teardown")
def test_a_killed_run_leaves_nothing_after_the_next(bench, command, env, name, hanging, examples, tmp_path):
    argv = [*command, "eval", "create", "-t", str(hanging), "-a", name("oracle"), "-o", str(tmp_path / "jobs")]
    (tmp_path / "home").mkdir(exist_ok=True)
    run = subprocess.Popen(
        argv, env=env, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert wait_for(lambda: len(sleepers()) >= 2)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    assert wait_for(lambda: not sleepers(), 10), "processes of the box outlived their owner"
    assert bench("cleanup").code == 0
    assert bench("eval", "create", "-t", examples / "hello-file", "-a", name("oracle")).code == 0
    boxes = bench("sandbox", "list", "--boxes", "--json").json
    assert [box for box in boxes if box["sandbox"] == name("local")] == []
    assert list((tmp_path / "cache" / "work").iterdir()) == []


def test_secrets_reach_no_artifact(bench, name, examples, tmp_path):
    script = tmp_path / "leak.yaml"
    script.write_text(
        "turns:\n  - steps:\n      - run: 'echo $MY_API_KEY; echo $MY_API_KEY > /logs/agent/leak.txt; "
        "echo $MY_API_KEY > /logs/artifacts/leak.txt'\n      - say: done\n"
    )
    secret = 'top/"secret"-value-4711'
    done = bench(
        "eval",
        "create",
        "-t",
        examples / "hello-file",
        "-a",
        name("scripted"),
        "--agent-option",
        f"script={script}",
        "--agent-env",
        f"MY_API_KEY={secret}",
        more={"MY_API_KEY": secret},
    )
    assert done.code == 0, done.err
    written = b"".join(p.read_bytes() for p in (tmp_path / "jobs").rglob("*") if p.is_file())
    assert b"[redacted]" in written
    for form in (secret, json.dumps(secret)[1:-1], "secret%22-value-4711"):
        assert form.encode() not in written
    assert secret not in done.out + done.err
