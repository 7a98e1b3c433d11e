"""What an agent does not take, and a sandbox that does not answer, is refused before anything starts."""

from __future__ import annotations

import json

import pytest

SCRIPT = "script=- run: echo hi > /app/hello.txt"


@pytest.mark.parametrize(
    ("agent", "more", "said"),
    [
        ("scripted", (), "agent 'scripted' needs the option 'script'"),
        ("scripted", ("--agent-option", SCRIPT, "--agent-option", "scrpt=x"), "takes no option 'scrpt'"),
        ("oracle", ("--agent-option", "foo=1"), "agent 'oracle' takes no option 'foo'. It takes none."),
        ("oracle", ("-m", "gpt-5"), "agent 'oracle' takes no model, and 'gpt-5' was given."),
        ("nop", ("-m", "gpt-5"), "agent 'nop' takes no model"),
        ("harvey-lab-harness", ("--agent-option", "max-turns=many", "-m", "local/x"), "cannot take max-turns=many"),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
def test_what_an_agent_does_not_take(bench, name, examples, tmp_path, agent, more, said, dry):
    command = ("eval", "create", "-t", examples / "hello-file", "-a", name(agent), "-e", name("local"), "-o", "jobs")
    done = bench(*command, *more, *(("--dry-run",) if dry else ()), timeout=300)
    assert done.code == 1 and said.replace(agent, name(agent)) in done.out + done.err, done
    assert not (tmp_path / "jobs").exists() and "Traceback" not in done.err


def test_an_option_for_one_of_two_roles_is_enough_and_a_variable_gives_it_too(bench, name, examples, tmp_path):
    roles = [{"name": "writer", "agent": name("scripted")}, {"name": "reader", "agent": name("nop")}]
    scene = {"name": "one", "roles": roles, "turns": [{"role": "writer"}, {"role": "reader"}]}
    settings = {"scenes": [scene], "sandbox": name("local"), "tasks_dir": str(examples / "hello-file")}
    (tmp_path / "job.yaml").write_text(json.dumps(settings))
    command = ("eval", "create", "--config", "job.yaml", "--dry-run")
    assert bench(*command, "--agent-option", SCRIPT, timeout=300).code == 0
    assert bench(*command, more={"BENCHFLOW_SCRIPT": "- say: hi"}, timeout=300).code == 0
    roles[1]["options"] = {"script": "- say: no"}
    (tmp_path / "job.yaml").write_text(json.dumps(settings))
    wrong = bench(*command, "--agent-option", SCRIPT, timeout=300)
    assert wrong.code == 1 and "takes no option 'script'" in wrong.out + wrong.err


NO_ENGINE = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}


@pytest.mark.parametrize("dry", [False, True])
def test_a_named_sandbox_that_does_not_answer_is_one_refusal_at_once(bench, name, examples, tmp_path, dry):
    command = ("eval", "create", "-t", examples, "-a", name("oracle"), "-e", name("docker"), "-o", "jobs")
    done = bench(*command, *(("--dry-run",) if dry else ()), more=NO_ENGINE, timeout=300)
    text = done.out + done.err
    assert done.code == 1 and "attempt" not in text, text
    assert text.count(f"sandbox '{name('docker')}' cannot be used: ") == 1 and "/nowhere/docker.sock" in text
    assert not (tmp_path / "jobs").exists()


def test_what_was_passed_over_is_said_with_its_reason(bench, name, examples, tmp_path):
    command = ("eval", "create", "-t", examples / "hello-file", "-a", name("nop"), "-o", "jobs", "--job-name", "j")
    done = bench(*command, more=NO_ENGINE, timeout=300)
    note = f"note: no sandbox was named: '{name('local')}' is taken, passed over {name('docker')}: no engine answers at"
    assert done.code == 0 and done.err.count(note) == 1, done.err
    (result,) = (tmp_path / "jobs/j").glob("*/result.json")
    assert any("passed over" in notice for notice in json.loads(result.read_text())["notices"])
    assert note in bench(*command[:-2], "--dry-run", more=NO_ENGINE, timeout=300).out


@pytest.mark.parametrize("job", ["../x", "/tmp/x", "a/b", ".."])
def test_a_job_name_is_the_name_of_a_folder_below_the_jobs(bench, name, examples, tmp_path, job):
    command = ("eval", "create", "-t", examples / "hello-file", "-a", name("nop"), "-e", name("local"), "-o", "jobs")
    done = bench(*command, "--job-name", job, timeout=300)
    assert done.code == 1 and "is not the name of a folder" in done.err and not (tmp_path / "x").exists()
