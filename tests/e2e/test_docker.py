"""The main flows on a real Docker engine: agents, models, several steps, sidecars, walls, cheats, and a killed host."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("benchflow_sandbox_docker", reason="the Docker sandbox is not installed")

from benchflow_sandbox_docker.plugin import benchflow_sandbox

FOUND = benchflow_sandbox().available()
pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not FOUND.ok, reason=f"no Docker engine: {FOUND.reason}"),
    pytest.mark.xdist_group("docker"),
]
ASK = Path(__file__).parents[2] / "examples" / "docker" / "ask-the-service"
OUTSIDE = "import socket; socket.create_connection(('1.1.1.1', 53), 3)"


@pytest.fixture
def run(bench, name, tmp_path):
    """`bench eval create` on the engine, in the cache that all tests of this module share: images are built once."""
    cache = tmp_path.parent / "docker-cache"

    def run_(task, agent, *args, more=None, code=0, timeout=280):
        argv = ["eval", "create", "-t", task, "-a", agent, "--sandbox", name("docker"), *args]
        done = bench(*argv, more={"BENCHFLOW_CACHE": str(cache), **(more or {})}, timeout=timeout)
        assert done.code == code, (done.out, done.err)
        return done

    return run_


def changed(task: Path, target: Path, **replaced: str) -> Path:
    """A copy of a task with files written anew; `__` in a name is a `/`."""
    shutil.copytree(task, target)
    for name, text in replaced.items():
        path = target / name.replace("__", "/").replace("_dot_", ".")
        path.write_text(text)
        path.chmod(0o755)
    return target


def test_a_compose_file_that_is_refused_is_not_ready(run, name, tmp_path):
    """A dry run says now what the run would say."""
    text = (ASK / "environment/docker-compose.yaml").read_text().replace("  main:", "  main:\n    privileged: true", 1)
    task = shutil.copytree(ASK, tmp_path / "ask")
    (task / "environment/docker-compose.yaml").write_text(text)
    said = run(task, name("oracle"), "--dry-run", code=1).out
    assert "'privileged' of service 'main' is refused" in said and "Ready" not in said


def ours(kind: str, mark: str) -> list[str]:
    """Containers, networks or volumes of ours whose labels hold `mark`: other tests use the same engine."""
    argv = {"network": ["network", "ls"], "volume": ["volume", "ls"], "container": ["container", "ls", "--all"]}[kind]
    labels = '{{.Label "io.benchflow.owner"}} {{.Label "io.benchflow.labels"}} {{json .}}'
    found = subprocess.run(
        ["docker", *argv, "--filter", "label=io.benchflow.owner", "--format", labels],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [line for line in found.stdout.splitlines() if mark in line]


@pytest.mark.parametrize("spoils", [False, True])
def test_a_state_too_large_to_be_captured_is_scored_in_its_own_box(run, name, examples, result_of, spoils):
    """`spoils`: it also takes the verifier's shell away. Neither gets it out of its zero."""
    steps = [{"run": "truncate -s 33G /app/x"}, *([{"run": "rm -f /bin/bash /bin/sh"}] if spoils else [])]
    run(examples / "hello-file", name("scripted"), "--agent-option", f"script={json.dumps(steps)}")
    result = result_of()
    assert result["rewards"] == {"reward": 0.0}, result["error"]
    assert result["verifier_isolation"] == "shared"
    assert "state-not-captured" in [finding["code"] for finding in result["findings"]]
    assert ("nothing-left-to-verify" in result["flags"]) is spoils


@pytest.mark.parametrize("task", ["hello-file", "two-step-notes"])
def test_the_reference_passes_on_the_task_s_own_image(run, name, examples, task, result_of):
    run(examples / task, name("oracle"))
    result = result_of()
    assert result["rewards"]["reward"] == 1.0
    assert result["image_fidelity"] == "exact"


def test_doing_nothing_scores_nothing(run, name, examples):
    assert "Score: 0/1" in run(examples / "hello-file", name("nop")).out


def test_an_agent_over_acp(run, name, examples, result_of):
    task = examples / "fix-the-script"
    run(task, name("scripted"), "--agent-option", f"script={task}/scripted/solve.yaml", "--sandbox-user", "agent")
    assert result_of()["rewards"] == {"reward": 1.0}


def test_without_a_network_the_agent_still_reaches_its_model(
    run, examples, somebodys, local_model, result_of, tmp_path
):
    config = (examples / "hello-file" / "task.toml").read_text() + '\n[environment]\nnetwork_mode = "no-network"\n'
    task = changed(examples / "hello-file", tmp_path / "cut-off", task_dot_toml=config)
    (task / "environment" / "Dockerfile").write_text("FROM python:3.12-slim\nWORKDIR /app\nCOPY name.txt .\n")
    work = f'python3 -c "{OUTSIDE}" && exit 1; echo "Hello, Ada!" > /app/hello.txt'
    local_model.script("work", [{"text": "I do it.", "tools": [{"name": "bash", "args": {"command": work}}]}])
    run(task, "somebodys", "-m", "openai/some-model", "--prompt", "[[fake:work]]", more=somebodys)
    result = result_of()
    assert result["rewards"] == {"reward": 1.0}
    assert result["agent_result"]["total_tokens"] > 0 and len(local_model.log) == 1


def test_a_compose_task_with_a_sidecar(run, name, result_of, tmp_path):
    run(ASK, name("oracle"), "-o", tmp_path / "solved")
    result = result_of(tmp_path / "solved")
    assert result["rewards"] == {"reward": 1.0}
    assert result["verifier_isolation"] == "fresh", "the verifier asks the same service, from a box of its own"
    cheat = tmp_path / "cheat.yaml"
    cheat.write_text("- run: echo 7 > /app/total.txt; printf '#!/bin/sh\\necho 7\\n' > $(readlink -f $(which awk))\n")
    run(ASK, name("scripted"), "--agent-option", f"script={cheat}", "-o", tmp_path / "cheat")
    cheated = result_of(tmp_path / "cheat")
    assert cheated["rewards"] == {"reward": 0.0}
    assert ["awk" in culprit["path"] for culprit in cheated["verification"]["culprits"]] == [True], "it is named"
    job = f'"job": "{result["dir"].parent.name}"'
    assert [line for kind in ("container", "network", "volume") for line in ours(kind, job)] == []


def test_a_compose_file_that_asks_for_the_host_is_refused_before_anything_starts(run, name, tmp_path):
    file = "services:\n  main:\n    volumes:\n      - /var/run/docker.sock:/var/run/docker.sock\n"
    task = changed(ASK, tmp_path / "greedy", **{"environment__docker-compose_dot_yaml": file})
    done = run(task, name("oracle"), code=1)
    assert "docker-compose.yaml:4" in done.out + done.err and "engine itself" in done.out + done.err


def test_fresh_verification_undoes_a_cheat_that_shared_believes(run, name, examples, result_of, tmp_path):
    script = tmp_path / "cheat.yaml"
    fake = "#!/bin/bash\\ncase $1 in */hello.txt) echo Hello, Ada!;; *) while read -r l; do echo $l; done <$1;; esac\\n"
    script.write_text(
        "- run: touch /app/hello.txt; echo x > /app/hello.txt; mv /usr/bin/cat /usr/bin/cat.old; "
        f"printf '{fake}' > /usr/bin/cat; chmod +x /usr/bin/cat\n"
    )
    option = ("--agent-option", f"script={script}")
    run(examples / "hello-file", name("scripted"), *option, "--isolation", "shared", "-o", tmp_path / "shared")
    assert result_of(tmp_path / "shared")["rewards"] == {"reward": 1.0}
    run(examples / "hello-file", name("scripted"), *option, "--isolation", "fresh", "-o", tmp_path / "fresh")
    assert result_of(tmp_path / "fresh")["rewards"] == {"reward": 0.0}


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def test_a_killed_host_leaves_no_container_network_or_volume(bench, env, name, tmp_path):
    slow = "#!/bin/sh\necho started > /app/started\nsleep 98765\n"
    task = changed(ASK, tmp_path / "slow", solution__solve_dot_sh=slow)
    argv = [sys.executable, "-m", "benchflow_core.cli.main", "eval", "create", "-t", str(task), "-a", name("oracle")]
    host = subprocess.Popen(
        [*argv, "--sandbox", name("docker")], cwd=tmp_path, env=env, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    mark = f'"{host.pid}"'

    def running() -> int:
        return sum('"State":"running"' in line for line in ours("container", mark))

    try:
        assert wait_for(lambda: running() >= 2, 240)
        assert len(ours("network", mark)) == 1
    finally:
        os.kill(host.pid, signal.SIGKILL)
        host.wait()
    assert wait_for(lambda: not running()), "boxes outlived the host"
    assert bench("cleanup").code == 0
    assert [line for kind in ("container", "network", "volume") for line in ours(kind, mark)] == []
