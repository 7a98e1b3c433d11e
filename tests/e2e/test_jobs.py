"""A job that is interrupted, killed, extended or watched: nothing is lost, nothing is repeated, nothing is left."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import random
import shutil
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

SEEDS = int(os.environ.get("BENCHFLOW_KILL_SEEDS", "4"))


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def processes_with(word: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(entry.name)
            except OSError:
                continue
    return found


def journal(job: Path) -> list[dict]:
    try:
        lines = (job / "journal.jsonl").read_text().splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines if line.endswith("}")]


def kinds(job: Path, kind: str) -> list[dict]:
    return [line["data"] for line in journal(job) if line["kind"] == kind]


@pytest.fixture
def sleepy(tmp_path, examples):
    """Makes a task whose solution takes that long; the number is found again among the processes."""

    def make(seconds: str, name: str = "sleepy") -> Path:
        task = shutil.copytree(examples / "hello-file", tmp_path / "tasks" / name)
        solve = task / "solution" / "solve.sh"
        solve.write_text(solve.read_text().replace("#!/bin/sh", "").replace("#!/bin/bash", "") + f"\nsleep {seconds}\n")
        solve.write_text("#!/bin/bash\n" + solve.read_text().lstrip())
        return task

    return make


@pytest.fixture
def begin(command, env, tmp_path):
    """Start `bench …` in a session of its own, as a shell would."""
    (tmp_path / "home").mkdir(exist_ok=True)
    started = []

    def run(*args: str | Path) -> subprocess.Popen:
        process = subprocess.Popen(
            [*command, *map(str, args)],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def create(name, task, *more):
    return ("eval", "create", "-t", task, "-a", name("oracle"), "-e", name("local"), "--job-name", "j", *more)


def results(job: Path) -> dict[str, dict]:
    return {p.parent.name: json.loads(p.read_text()) for p in job.glob("*/result.json")}


def test_ctrl_c_once_finishes_what_runs_and_resume_does_the_rest(begin, bench, name, sleepy, tmp_path):
    job = tmp_path / "jobs" / "j"
    run = begin(*create(name, sleepy("2"), "--trials", 3, "-c", 1))
    assert wait_for(lambda: kinds(job, "started"))
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 1, err
    assert "nothing new starts, 1 running are finished" in err
    assert "bench eval resume" in out
    assert [r["rewards"] for r in results(job).values()] == [{"reward": 1.0}]
    summary = json.loads((job / "summary.json").read_text())
    assert (summary["stopped"], summary["not_run"], summary["total"]) == ("interrupted", 2, 3)
    first = {p: p.stat().st_mtime_ns for p in job.glob("*/result.json")}

    done = bench("eval", "resume", job, cwd=tmp_path / "tasks")
    assert done.code == 0, done.err
    assert "3 rollouts, 1 of them finished before" in done.err
    assert len(results(job)) == 3 and not (job / "attempts").exists()
    assert {p: p.stat().st_mtime_ns for p in first} == first


def test_closing_the_terminal_stops_and_tears_down(command, env, name, sleepy, tmp_path):
    """What would still be printed goes nowhere, and the exit code is that of every other interruption."""
    job, mark = tmp_path / "jobs" / "j", "32.5"
    (tmp_path / "home").mkdir()
    window, inside = pty.openpty()
    run = subprocess.Popen(
        [*command, *map(str, create(name, sleepy(mark)))],
        cwd=tmp_path,
        env={**env, "TERM": "xterm"},
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(inside)
    assert wait_for(lambda: processes_with(mark)), os.read(window, 10_000)
    os.close(window)
    assert run.wait(timeout=60) == 130
    assert not processes_with(mark)
    assert [r["error_info"]["kind"] for r in results(job).values()] == ["cancelled"]


def test_a_stopped_rollout_runs_again_and_the_stopped_attempt_is_kept(begin, bench, name, sleepy, tmp_path):
    job, mark = tmp_path / "jobs" / "j", "31.5"
    run = begin(*create(name, sleepy(mark)))
    assert wait_for(lambda: processes_with(mark))
    run.send_signal(signal.SIGTERM)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130 and "bench eval resume" in err
    assert not processes_with(mark)
    [(rollout, stopped)] = results(job).items()
    assert stopped["error_info"]["kind"] == "cancelled"
    solve = tmp_path / "tasks" / "sleepy" / "solution" / "solve.sh"
    solve.write_text(solve.read_text().replace(mark, "0.1"))

    refused = bench("eval", "resume", job)
    assert refused.code == 1 and "task sleepy changed" in refused.err and "--allow-drift" in refused.err
    done = bench("eval", "resume", job, "--allow-drift")
    assert done.code == 0, done.err
    again = results(job)[rollout]
    assert again["rewards"] == {"reward": 1.0} and again["attempt"] == 2
    assert (
        json.loads((job / "attempts" / f"{rollout}.1" / "result.json").read_text())["error_info"]
        == stopped["error_info"]
    )
    assert json.loads((job / "summary.json").read_text())["drift"][0]["changes"] == ["task sleepy changed"]
    assert bench("eval", "resume", job).code == 0, "what changed is the new normal"


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.timeout(600)
def test_kill_9_at_any_moment_and_resume_completes_the_job(begin, bench, name, sleepy, tmp_path, seed):
    """Twice in a row, the whole process group; finished rollouts must not be touched."""
    chance, trials = random.Random(seed), 5
    mark = f"0.3{os.getpid()}{seed}"
    job = tmp_path / "jobs" / "j"
    run = begin(*create(name, sleepy(mark), "--trials", trials, "-c", 2))
    for _ in range(2):
        aim = chance.randrange(trials)
        reached = wait_for(lambda run=run, aim=aim: run.poll() is not None or len(results_seen(job)) >= aim)
        assert reached
        time.sleep(chance.uniform(0, 1.2))
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        assert wait_for(lambda: not processes_with(mark)), "a process of a box outlived its owner"
        before = results_seen(job)
        if (job / "job.json").exists():
            run = begin("eval", "resume", job)
        else:  # killed before the plan was written: nothing had started
            assert before == {}
            shutil.rmtree(job, ignore_errors=True)
            run = begin(*create(name, tmp_path / "tasks" / "sleepy", "--trials", trials, "-c", 2))
    out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    assert {path: results_seen(job).get(path) for path in before} == before, "a finished rollout was run again"
    planned = [row["rollout"] for row in json.loads((job / "job.json").read_text())["items"]]
    assert sorted(results(job)) == sorted(planned) and len(planned) == trials
    assert all(r["rewards"] == {"reward": 1.0} for r in results(job).values())
    assert f"coverage {trials}/{trials}" in out
    assert bench("cleanup", "--sandbox", name("local")).code == 0
    left = [b for b in bench("sandbox", "list", "--boxes", "--json").json if b["sandbox"] == name("local")]
    assert left == []
    assert not processes_with(mark)
    assert list((tmp_path / "cache" / "work").iterdir()) == []


def results_seen(job: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_ino, p.stat().st_mtime_ns) for p in job.glob("*/result.json")}


def test_one_writer_per_job_and_the_refusal_names_it(begin, bench, name, sleepy, tmp_path):
    job = tmp_path / "jobs" / "j"
    run = begin(*create(name, sleepy("30.25")))
    assert wait_for(lambda: kinds(job, "started"))
    refused = bench("eval", "resume", job)
    assert refused.code == 1 and f"process {run.pid}" in refused.err
    stopped = bench("eval", "stop", job, "--now")
    assert stopped.code == 0, stopped.err
    run.communicate(timeout=60)
    assert run.returncode == 130
    assert bench("eval", "stop", job).code == 1


def test_detach_attach_and_stop(bench, name, sleepy, tmp_path):
    done = bench("--json", *create(name, sleepy("4"), "--trials", 8, "-c", 1, "--detach"))
    assert done.code == 0, done.err
    job = Path(done.json["job_dir"])
    assert bench("eval", "stop", job).code == 0
    watched = bench("eval", "attach", job)
    assert "8 rollouts" in watched.err and "nothing new starts" in watched.err
    assert watched.code == 1 and "Go on with: bench eval resume" in watched.out, watched.err
    assert "8 rollouts" in (job / "job.log").read_text()
    again = bench("eval", "resume", job, "--detach", "-c", "8")
    assert again.code == 0, again.err
    ended = bench("eval", "attach", job)
    assert ended.code == 0 and "coverage 8/8" in ended.out
    assert list(job.parent.glob(".*.log")) == []


def test_a_detached_job_that_is_refused_says_why_here(bench, name, examples, tmp_path):
    done = bench(*create(name, examples / "hello-file", "--isolation", "separate", "--detach"))
    assert done.code == 1 and "isolation" in done.err
    assert not (tmp_path / "jobs" / "j").exists()


def test_extend_adds_trials_and_keeps_what_is_there(bench, name, examples, tmp_path):
    job = tmp_path / "jobs" / "j"
    assert bench(*create(name, examples / "hello-file")).code == 0
    before = results_seen(job)
    done = bench("eval", "extend", job, "--trials", 3, "--json")
    assert done.code == 0 and done.json["total"] == 3 and done.json["trials"] == 3
    assert sorted(r["trial"] for r in results(job).values()) == [1, 2, 3]
    assert {path: results_seen(job)[path] for path in before} == before
    assert "already has 3 trials" in bench("eval", "extend", job, "--trials", 2).err


def test_retry_runs_only_what_has_no_score(bench, name, examples, tmp_path):
    tasks, job = tmp_path / "tasks", tmp_path / "jobs" / "j"
    shutil.copytree(examples / "hello-file", tasks / "good")
    broken = shutil.copytree(examples / "hello-file", tasks / "broken")
    test = broken / "tests" / "test.sh"
    honest = test.read_text()
    test.write_text("#!/bin/sh\nexit 0\n")
    assert bench(*create(name, tasks)).code == 1
    before = {p: s for p, s in results_seen(job).items() if "good" in p}
    assert bench("eval", "resume", job).code == 1, "resume does not repeat what has ended"
    assert bench("eval", "retry", job).code == 2
    test.write_text(honest)
    done = bench("eval", "retry", "--errors", job, "--allow-drift")
    assert done.code == 0, done.err
    assert {path: results_seen(job)[path] for path in before} == before
    [kept] = (job / "attempts").glob("broken__*")
    assert json.loads((kept / "result.json").read_text())["verifier_error"]


def test_a_time_budget_starts_nothing_more_and_says_so(bench, name, sleepy, tmp_path):
    done = bench(*create(name, sleepy("1.2"), "--trials", 5, "-c", 1, "--max-time", "1s", "--json"))
    assert done.code == 1
    assert done.json["stopped"] == "--max-time 1 s is reached"
    assert done.json["not_run"] >= 3 and done.json["scored"] + done.json["not_run"] == 5
    more = bench("eval", "resume", tmp_path / "jobs" / "j", "--max-time", "1h", "--json")
    assert more.code == 0 and more.json["coverage"] == 1.0


def test_secrets_of_the_agent_are_not_in_the_plan_and_are_asked_for_again(begin, bench, name, sleepy, tmp_path, env):
    job = tmp_path / "jobs" / "j"
    run = begin(*create(name, sleepy("30.75"), "--agent-env", "SOME_API_KEY=hidden-4711-value"))
    assert wait_for(lambda: kinds(job, "started"))
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=60)
    assert "hidden-4711-value" not in (job / "job.json").read_text()
    refused = bench("eval", "resume", job)
    assert refused.code == 1 and "SOME_API_KEY" in refused.err


def test_a_folder_that_is_no_job_is_refused(bench, tmp_path):
    for command in ("resume", "attach"):
        done = bench("eval", command, tmp_path)
        assert done.code == 1 and "job.json" in done.err and "Traceback" not in done.err


def test_a_frozen_host_is_not_counted_against_the_agent(begin, name, sleepy, tmp_path):
    """The process is stopped for longer than the agent may take; the agent itself stays within its time."""
    job, mark = tmp_path / "jobs" / "j", "3.125"
    run = begin(*create(name, sleepy(mark), "--timeout", "6"))
    assert wait_for(lambda: processes_with(mark))
    os.kill(run.pid, signal.SIGSTOP)
    time.sleep(9)
    os.kill(run.pid, signal.SIGCONT)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    [result] = results(job).values()
    assert result["rewards"] == {"reward": 1.0} and result["error"] is None
    assert "host-stood-still" in result["flags"]


def test_limits_bound_what_they_name_and_a_slip_is_refused(bench, name, sleepy, tmp_path):
    task = sleepy("0.2")
    slip = bench(*create(name, task, "--limit", "sandbox:dokcer=1"))
    assert slip.code == 1 and "bounds nothing" in slip.err and f"sandbox:{name('local')}" in slip.err
    assert not (tmp_path / "jobs" / "j").exists()
    done = bench(*create(name, task, "--trials", 3, "-c", 3, "--limit", f"sandbox:{name('local')}=1"))
    assert done.code == 0, done.err
    running = 0
    for line in journal(tmp_path / "jobs" / "j"):
        running += {"started": 1, "finished": -1}.get(line["kind"], 0)
        assert running <= 1


def test_the_files_of_a_failure_can_be_looked_into(bench, name, examples, tmp_path):
    args = ["-t", examples / "hello-file", "-a", name("nop"), "-e", name("local"), "--job-name", "j"]
    done = bench("eval", "create", *args, "--keep-on-failure")
    assert done.code == 0, done.err
    assert "bench eval shell jobs/j/" in done.out and "bench cleanup" in done.out
    [rollout] = [p.parent for p in (tmp_path / "jobs" / "j").glob("*/result.json")]
    seen = bench("eval", "shell", rollout, "-c", "cat /app/name.txt; exit 4")
    assert seen.code == 4 and seen.out.startswith("Ada")
    shutil.rmtree(rollout)
    assert bench("cleanup", "--sandbox", name("local")).code == 0
    left = [b for b in bench("sandbox", "list", "--boxes", "--json").json if b["sandbox"] == name("local")]
    assert left == []
    none = bench("eval", "shell", tmp_path)
    assert none.code == 1 and "--keep-state" in none.err
