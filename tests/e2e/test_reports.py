"""Files for other programs: the tasks that were chosen, the settings in force, what was measured."""

from __future__ import annotations

import json


def test_reports_are_written_and_the_settings_can_be_used_again(bench, examples, name, tmp_path):
    reports = [tmp_path / "out" / f"{kind}.json" for kind in ("tasks", "run", "health")]
    args = [
        "--json",
        "eval",
        "create",
        "-t",
        examples,
        "--include",
        "hello-*",
        "-a",
        name("oracle"),
        "-e",
        name("local"),
    ]
    args += ["--agent-env", "SOME_TOKEN=very-secret-value", "--agent-env", "LEVEL=3", "--retries", "0"]
    options = ["--task-manifest-out", reports[0], "--run-config-out", reports[1], "--health-summary-out", reports[2]]
    done = bench(*args, *options)
    assert done.code == 0, done.err
    tasks, run, health = (json.loads(path.read_text()) for path in reports)
    assert [task["name"] for task in tasks["tasks"]] == ["hello-doc", "hello-file"]
    digest = bench("--json", "tasks", "digest", examples / "hello-file")
    assert tasks["tasks"][1]["digest"] in digest.out and tasks["count"] == 2
    assert run["agent_env"] == {"SOME_TOKEN": "${SOME_TOKEN}", "LEVEL": "3"}
    assert (health["healthy"], health["planned"], health["scored"]) == (True, 2, 2)
    again = bench("--json", "eval", "create", "--config", reports[1], "--dry-run", more={"SOME_TOKEN": "another-value"})
    assert again.code == 0 and again.json["rollouts"] == 2, again.err


def test_health_names_what_was_not_measured(bench, examples, name, tmp_path):
    script = "script=- say: hi"
    args = ["eval", "create", "-t", examples / "hello-file", "-a", name("scripted"), "-e", name("local")]
    args += ["--agent-option", script, "--trials", "3", "--max-time", "0", "--health-summary-out", tmp_path / "h.json"]
    assert bench(*args).code == 1
    health = json.loads((tmp_path / "h.json").read_text())
    assert (health["healthy"], health["scored"], health["not_run"]) == (False, 0, 3)
    assert "--max-time" in health["stopped"]


def test_a_report_that_cannot_be_written_is_said_before_anything_runs(bench, examples, name, tmp_path):
    (tmp_path / "file").write_text("")
    done = bench("eval", "create", "-t", examples / "hello-file", "--health-summary-out", tmp_path / "file" / "h.json")
    assert done.code == 1 and done.err.startswith("error: cannot write") and len(done.err.splitlines()) == 1
    assert not (tmp_path / "jobs").exists()


def test_a_hosted_environment_needs_a_source_that_serves_it(bench):
    for address in ("somewhere/some-env", "somewhere"):
        done = bench("eval", "create", "--source-env", address, "-a", "x")
        assert done.code == 1 and f"no installed source serves the environment '{address}'" in done.err
        assert "Installed: " in done.err and len(done.err.splitlines()) <= 2
