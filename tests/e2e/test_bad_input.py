"""Each kind of bad input is named as what it is, on one line, with a non-zero exit and nothing lost."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import textwrap
import threading
import time
from pathlib import Path

import pytest

from benchflow_core.results.certified import certify
from benchflow_core.task import task_digest


@pytest.fixture
def task(tmp_path, examples):
    """A copy of the hello task that a test may break."""
    return shutil.copytree(examples / "hello-file", tmp_path / "broken")


def one_line(done, *words):
    lines = [line for line in done.err.splitlines() if line.startswith("error:")]
    assert len(lines) == 1, done.err
    assert "Traceback" not in done.err
    for word in words:
        assert word in lines[0], lines[0]


def test_broken_toml(bench, name, task):
    (task / "task.toml").write_text("[agent\ntimeout_sec = 1\n")
    done = bench("eval", "create", "-t", task, "-a", name("oracle"))
    assert done.code == 1
    one_line(done, "task.toml:1:", "not valid TOML")


def test_a_task_without_tests(bench, name, task):
    shutil.rmtree(task / "tests")
    done = bench("eval", "create", "-t", task, "-a", name("oracle"))
    assert done.code == 1
    one_line(done, "tests")


def test_an_instruction_that_is_not_text(bench, name, task):
    (task / "instruction.md").write_bytes(b"\xff\xfe\x00bad")
    done = bench("eval", "create", "-t", task, "-a", name("oracle"))
    assert done.code == 1
    one_line(done, "instruction.md", "UTF-8")


def test_a_link_that_leaves_the_task(bench, name, task):
    (task / "tests" / "secret").symlink_to("/etc/passwd")
    done = bench("eval", "create", "-t", task, "-a", name("oracle"))
    assert done.code == 1
    one_line(done, "tests/secret")


def test_an_unknown_agent_is_never_run_as_a_command(bench, task):
    done = bench("eval", "create", "-t", task, "-a", "touch /tmp/benchflow-was-here")
    assert done.code != 0
    one_line(done, "No installed agent is called")
    assert not Path("/tmp/benchflow-was-here").exists()


def test_no_task_and_missing_folder(bench, name, tmp_path):
    assert bench("eval", "create", "-a", name("oracle")).code == 2
    one_line(bench("eval", "create", "-t", tmp_path / "nowhere", "-a", name("oracle")), "does not exist")
    (tmp_path / "empty").mkdir()
    one_line(bench("eval", "create", "-t", tmp_path / "empty", "-a", name("oracle")), "no task")


@pytest.mark.parametrize("missed", ["harbor", "script"])
def test_what_the_user_blocked_is_named_where_it_is_missed(bench, name, task, missed):
    done = bench("-p", f"no:{name(missed)}", "eval", "create", "-t", task, "-a", name("oracle"))
    assert done.code == 1
    one_line(done, f"Blocked: {name(missed)} (by -p no:{name(missed)}).")


@pytest.mark.parametrize("content", ["nan", "1e999", "", "pass"])
def test_a_verifier_that_writes_no_number_is_a_verifier_error(bench, name, task, result_of, content):
    (task / "tests" / "test.sh").write_text(f"#!/bin/sh\nprintf '%s' '{content}' > /logs/verifier/reward.txt\n")
    done = bench("eval", "create", "-t", task, "-a", name("oracle"), "--retries", "0")
    assert done.code == 1
    result = result_of()
    assert result["rewards"] is None
    assert result["verifier_error_info"]["kind"] == "verifier"
    assert "reward.txt" in result["verifier_error"]


@pytest.mark.parametrize("certified", [False, True])
def test_a_verifier_that_writes_nothing(bench, name, task, result_of, cache, certified):
    """Unscored; a zero where the reference solution was seen to pass."""
    (task / "tests" / "test.sh").write_text(f"#!/bin/sh\nexit 0  # {certified}\n")
    certify(cache, task_digest(task), {"certified": certified})
    done = bench("eval", "create", "-t", task, "-a", name("oracle"))
    assert done.code == (0 if certified else 1)
    assert "The test script must write its reward to /logs/verifier/reward.txt." in done.out
    result = result_of()
    assert result["verifier_error_info"]["code"] == "reward_missing"
    assert result["rewards"] == ({"reward": 0.0} if certified else None)
    assert ("verifier-failed-on-certified-task" in result["flags"]) is certified


def test_a_solution_that_hangs_is_the_agents_timeout_and_still_verified(bench, name, task, result_of):
    (task / "solution" / "solve.sh").write_text("#!/bin/sh\nsleep 1000\n")
    done = bench("eval", "create", "-t", task, "-a", name("oracle"), "--timeout", "2")
    assert done.code == 0, done.err
    result = result_of()
    assert result["error_info"]["code"] == "agent_timeout"
    assert result["rewards"]["reward"] == 0
    assert "agent-timeout" in result["flags"]
    assert "sleep 1000" not in os.popen("ps -eo args").read().replace("grep sleep 1000", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="a normal user's control groups cannot be limited here")
def test_a_solution_that_runs_into_its_memory_limit_is_flagged_and_verified(bench, name, task, result_of):
    solve = task / "solution" / "solve.sh"
    solve.write_text(f"dd if=/dev/zero of=/dev/null bs=600M count=1 && echo fine\n{solve.read_text()}")
    with (task / "task.toml").open("a") as file:
        file.write("\n[environment]\nmemory_mb = 128\n")
    done = bench("eval", "create", "-t", task, "-a", name("oracle"), "--sandbox", name("local"))
    assert done.code == 0, done.err
    result = result_of()
    assert result["rewards"]["reward"] == 1 and "memory-limit" in result["flags"]


def test_one_broken_task_harms_no_other(bench, name, examples, tmp_path):
    tasks = tmp_path / "tasks"
    shutil.copytree(examples / "hello-file", tasks / "good")
    shutil.copytree(examples / "hello-file", tasks / "bad")
    (tasks / "bad" / "task.toml").write_text("nonsense")
    done = bench("eval", "create", "-t", tasks, "-a", name("oracle"), "--json")
    assert done.code == 1
    assert done.json["passed"] == 1 and done.json["errored"] == 1 and done.json["coverage"] == 0.5
    assert done.json["score_bounds"] == [0.5, 1.0]
    assert done.json["error_categories"] == {"task:task_error": 1}


def test_a_jobs_folder_that_cannot_be_written(bench, name, task, tmp_path):
    (tmp_path / "file").write_text("")
    done = bench("eval", "create", "-t", task, "-a", name("oracle"), "-o", tmp_path / "file" / "jobs")
    assert done.code == 1
    one_line(done, "cannot write")


def test_a_task_that_asks_for_host_variables_needs_leave(bench, name, task, result_of):
    toml = task / "task.toml"
    toml.write_text(toml.read_text() + '\n[verifier.env]\nTOKEN = "${MY_TOKEN}"\n')
    done = bench("eval", "create", "-t", task, "-a", name("oracle"), more={"MY_TOKEN": "hunter2-hunter2"})
    assert done.code == 1
    one_line(done, "asks for host variables: MY_TOKEN", "--allow-env MY_TOKEN")
    unset = bench("eval", "create", "-t", task, "-a", name("oracle"), "--allow-env", "MY_TOKEN")
    one_line(unset, "needs host variables that are not set: MY_TOKEN")
    (task / "trajectory.json").write_text("{}")
    told = bench("eval", "create", "-t", task, "-a", "cmd:true", "--allow-env", "MY_TOKEN", more={"MY_TOKEN": "x"})
    one_line(told, "goes on from an earlier conversation (trajectory.json), which agent 'cmd:true' cannot be given")
    allowed = bench(
        "eval",
        "create",
        "-t",
        task,
        "-a",
        name("oracle"),
        "--allow-env",
        "MY_TOKEN",
        more={"MY_TOKEN": "hunter2-hunter2"},
    )
    assert allowed.code == 0, allowed.err
    assert "hunter2-hunter2" not in (result_of()["dir"] / "lock.json").read_text()


def test_config_files_say_where_the_mistake_is(tmp_path):
    from benchflow_core.errors import ConfigurationError
    from benchflow_core.evaluation.yaml import load_job

    path = tmp_path / "trial.yaml"
    path.write_text("task_dir: x\nagnet: oracle\n")
    with pytest.raises(ConfigurationError, match=r"line 2: unknown field 'agnet', did you mean 'agent'\?"):
        load_job(path)
    path.write_text("task_dir: x\nscenes:\n  - name: a\n    roles:\n      - name: r\n        agnt: x\n")
    with pytest.raises(ConfigurationError, match="line 6: unknown field 'agnt', did you mean 'agent'"):
        load_job(path)
    path.write_text(textwrap.dedent("task_dir: x\ntimeout: soon\n"))
    with pytest.raises(ConfigurationError, match="line 2: 'timeout' must be a number, not 'soon'"):
        load_job(path)
    path.write_text("a: " + "[" * 5000)
    with pytest.raises(ConfigurationError, match="nested too deeply"):
        load_job(path)
    path.write_text("a: [1\nb: 2\n")
    with pytest.raises(ConfigurationError, match="line 2"):
        load_job(path)


def test_json_carries_the_error(bench, name):
    done = bench("eval", "create", "-t", "nowhere", "-a", name("oracle"), "--json")
    assert done.json["error"]["kind"] == "configuration"
    assert json.loads(done.out)["error"]["remedy"]


def test_a_task_folder_that_disappears_mid_run(bench, name, task, result_of, tmp_path):
    script = tmp_path / "slow.yaml"
    script.write_text("- run: 'sleep 2'\n")

    def remove_once_it_runs():
        while not any(b"turn_started" in p.read_bytes() for p in tmp_path.glob("jobs/*/*/events.jsonl")):
            time.sleep(0.05)
        shutil.rmtree(task)

    remover = threading.Thread(target=remove_once_it_runs, daemon=True)
    remover.start()
    done = bench(
        "eval", "create", "-t", task, "-a", name("scripted"), "--agent-option", f"script={script}", "--retries", "0"
    )
    remover.join(1)
    assert done.code == 1, done.out
    result = result_of()
    assert result["rewards"] is None
    assert result["error_info"]["kind"] == "task", result["error_info"]
    assert "disappeared" in result["error"]


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can only be mounted as root")
@pytest.mark.parametrize("filled", [0, 16])
def test_a_full_disk(tmp_path, cache, command, env, name, task, filled):
    (tmp_path / "home").mkdir()
    (tmp_path / "jobs").mkdir()
    run = " ".join(
        map(shlex.quote, [*command, "eval", "create", "-t", str(task), "-a", name("oracle"), "--retries", "0"])
    )
    fill = f"head -c {filled}k /dev/zero > {tmp_path}/jobs/full"
    script = f"mount -t tmpfs -o size=16k tmpfs {tmp_path}/jobs && {{ {fill}; exec {run}; }}"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1, done.stderr
    assert "No space left on device" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert list(cache.glob("work/*")) == []


@pytest.mark.parametrize("given", [["--timeout", "-1"], ["--timeout", "nan"], ["--agent-idle-timeout", "-3"]])
def test_times_that_are_none(bench, name, task, given):
    one_line(bench("eval", "create", "-t", task, "-a", name("oracle"), *given), "timeout")
