"""Jobs whose rollouts run in workers: everything about the job holds, and a death of anybody leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchflow_testing_kit.host import host_processes

pytestmark = pytest.mark.timeout(240)


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.1)
    return found


def workers_of(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(c) for c in children if b"benchflow_core.worker" in Path(f"/proc/{c}/cmdline").read_bytes()]


def sleeping(marker):
    """Agents at work. The job itself has the marker among its arguments, and so has a worker that is about to begin."""
    return len(host_processes(f"sleep\0{marker}"))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def slow_job(tmp_path, env, command, examples, name):
    """A job in the background whose agents sleep; the number is in the command line of each."""
    marker = f"7.{os.getpid() % 100000:05d}{time.monotonic_ns() % 1000:03d}"
    running = []

    def start(*more):
        args = ["eval", "create", "-t", examples / "hello-file", "-a", name("scripted"), "-e", name("local")]
        args += ["--agent-option", f"script=- run: sleep {marker}", "--executor", name("processes"), "--job-name", "j"]
        (tmp_path / "home").mkdir(exist_ok=True)
        argv = [*command, *map(str, [*args, *more])]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running.append(subprocess.Popen(argv, cwd=tmp_path, env=env, **quiet))
        return running[-1], marker

    yield start
    for process in running:
        process.kill()
        process.wait()


def test_models_observers_and_budgets_work_through_workers(bench, examples, somebodys, watched, name, tmp_path):
    args = ["--json", "eval", "create", "-t", examples / "hello-file", "-a", "somebodys", "-e", name("local")]
    args += ["-m", "openai/some-model", "--prompt", "[[fake:say text=hi]]", "--job-name", "j", "-c", "3"]
    args += ["--trials", "3", "--executor", name("processes"), "--executor-option", "workers=2"]
    path = os.pathsep.join([somebodys["PYTHONPATH"], watched["PYTHONPATH"]])
    done = bench(*args, more={**somebodys, **watched, "PYTHONPATH": path})
    assert done.code == 0, done.err
    assert done.json["coverage"] == 1.0 and done.json["total_tokens"] > 0
    assert done.json["executor"]["name"] == name("processes")
    job = tmp_path / "jobs" / "j"
    locks = [json.loads(file.read_text()) for file in job.glob("*/lock.json")]
    assert len({lock["worker"]["pid"] for lock in locks}) == 2, "two workers share three rollouts"
    for folder in job.glob("*/lock.json"):
        result = json.loads(folder.with_name("result.json").read_text())
        assert result["agent_result"]["total_tokens"] > 0 and result["agent_result"]["usage_source"] != "unavailable"
    kinds = [line["kind"] for line in lines(job / "journal.jsonl")]
    assert (kinds.count("started"), kinds.count("finished")) == (3, 3)
    heard = [line["event"] for line in lines(tmp_path / "watched.jsonl")]
    assert (heard[0], heard[-1]) == ("JobStarted", "JobFinished"), "observers are in the job's process"
    assert heard.count("RolloutStarted") == heard.count("RolloutFinished") == heard.count("TurnFinished") == 3
    held = "".join(file.read_text(errors="replace") for file in job.rglob("*") if file.is_file())
    assert somebodys["OPENAI_API_KEY"] not in held


def test_rollouts_of_a_killed_worker_are_tried_again(slow_job, tmp_path):
    process, marker = slow_job("--trials", "2", "-c", "2", "--executor-option", "workers=1")
    wait_for(lambda: sleeping(marker) == 2)
    (worker,) = workers_of(process.pid)
    os.kill(worker, signal.SIGKILL)
    assert process.wait(120) == 0
    job = tmp_path / "jobs" / "j"
    kept = [json.loads(file.read_text()) for file in job.glob("attempts/*/result.json")]
    assert [k["error_info"]["code"] for k in kept] == ["worker_lost"] * 2
    assert "signal 9" in kept[0]["error"]
    summary = json.loads((job / "summary.json").read_text())
    assert summary["coverage"] == 1.0 and not host_processes(marker)


def test_workers_of_a_killed_job_end_and_the_job_can_be_resumed(slow_job, bench, tmp_path, env):
    process, marker = slow_job("--trials", "2", "-c", "2")
    wait_for(lambda: sleeping(marker) == 2)
    workers = workers_of(process.pid)
    process.kill()
    process.wait()
    job = tmp_path / "jobs" / "j"
    done = bench("--json", "eval", "resume", job)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()], "it went on while workers were still there"
    assert done.code == 0 and done.json["coverage"] == 1.0, done.err
    assert not host_processes(marker)
    assert len(list((job / "attempts").iterdir())) == 2
    assert not list(job.glob("attempts/*/result.json")), "a worker without an owner writes no result"


def test_bad_input_is_one_line(bench, examples, name):
    def said(*more):
        done = bench("eval", "create", "-t", examples / "hello-file", "-a", name("oracle"), *more)
        assert done.code == 1 and len(done.err.splitlines()) == 1, done.err
        return done.err

    dry = bench("eval", "create", "-t", examples / "hello-file", "-a", name("oracle"), "--executor", "no", "--dry-run")
    assert dry.code == 1 and "Unknown executor 'no'" in dry.out + dry.err
    here = ("--executor", name("processes"), "--executor-option")
    assert "Unknown executor 'cluster'" in said("--executor", "cluster")
    assert "did you mean 'workers'" in said(*here, "worker=2").lower()
    assert "at least 1" in said(*here, "workers=0")
    assert "without --executor" in said("--executor-option", "workers=2")


def test_code_cannot_be_handed_over(tmp_path, examples, name, monkeypatch):
    import asyncio

    from benchflow_core.errors import ConfigurationError
    from benchflow_core.evaluation import Evaluation, EvaluationConfig

    async def hook(sandbox):
        raise AssertionError("it never runs")

    config = EvaluationConfig(
        agent=name("oracle"), sandbox=name("local"), executor=name("processes"), pre_agent_hooks=[hook]
    )
    with pytest.raises(ConfigurationError, match="'pre_agent_hooks' is Python code"):
        asyncio.run(Evaluation(examples / "hello-file", tmp_path / "jobs", config).run())
    assert not (tmp_path / "jobs").exists()


def test_a_worker_takes_items_as_lines_and_refuses_what_is_none(env):
    argv = [sys.executable, "-m", "benchflow_core.worker"]
    done = subprocess.run(argv, env=env, input='{"id": 1}\nnothing\n', capture_output=True, text=True, timeout=60)
    said = [json.loads(line)["result"]["error"] for line in done.stdout.splitlines()]
    assert done.returncode == 1 and [s["kind"] for s in said] == ["configuration"] * 2
    assert "Traceback" not in done.stderr
