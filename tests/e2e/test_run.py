"""The main job: tasks, agents that need no model, the embedded sandbox, a score, artifacts."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path

import pytest

EXAMPLES = sorted(p.name for p in (Path(__file__).parents[2] / "examples" / "tasks").iterdir() if p.is_dir())


@pytest.mark.parametrize("task", EXAMPLES)
def test_the_reference_passes_and_doing_nothing_does_not(bench, name, examples, task, tmp_path):
    solved = bench("eval", "create", "-t", examples / task, "-a", name("oracle"), "-o", tmp_path / "a")
    assert solved.code == 0, solved.err
    assert "✓ Score: 1/1 (100.0%)" in solved.out
    idle = bench("eval", "create", "-t", examples / task, "-a", name("nop"), "-o", tmp_path / "b")
    assert idle.code == 0, idle.err
    assert "Score: 0/1 (0.0%)" in idle.out


def test_a_folder_of_tasks_is_one_score(bench, name, examples):
    done = bench("eval", "create", "-t", examples, "-a", name("oracle"), "-c", "4", "--json")
    assert done.code == 0, done.err
    assert done.json["total"] == done.json["passed"] == len(EXAMPLES)
    assert done.json["coverage"] == 1.0
    assert done.json["verifier_isolation"] == {"fresh": len(EXAMPLES)}


def test_the_main_job_where_namespaces_are_forbidden(bench, name, examples, tmp_path):
    stage = {"BENCHFLOW_LOCAL_STAGE": "3"}
    tasks = tmp_path / "tasks"
    for task in ("hello-file", "hello-doc", "two-step-notes"):
        shutil.copytree(examples / task, tasks / task)
    toml = tasks / "hello-file/task.toml"
    toml.write_text('artifacts = ["hello.txt"]\n' + toml.read_text())
    done = bench("eval", "create", "-t", tasks, "-a", name("oracle"), "--sandbox", name("local"), "--json", more=stage)
    assert done.code == 0, done.err
    assert [path.read_text() for path in tmp_path.glob("jobs/*/*/artifacts/app/hello.txt")] == ["Hello, Ada!\n"]
    assert done.json["passed"] == 3 and done.json["verifier_isolation"] == {"shared": 3}
    task = examples / "fix-the-script"
    agent = ["-a", name("scripted"), "--agent-option", f"script={task / 'scripted/solve.yaml'}"]
    done = bench("eval", "create", "-t", task, *agent, "--sandbox", name("local"), "--json", more=stage)
    assert done.code == 0 and done.json["passed"] == 1 and not done.json["error_categories"], done.err
    told = next(tmp_path.glob("jobs/*/fix-the-script__*/prompts.json")).read_text()
    assert "(Here /app is /" in told and "/root/app.)" in told


def test_the_artifacts_are_all_there_and_say_what_happened(bench, name, examples, result_of):
    assert bench("eval", "create", "-t", examples / "hello-file", "-a", name("oracle")).code == 0
    result = result_of()
    root = result["dir"]
    expected = """config.json result.json timing.json prompts.json rewards.jsonl sandbox.json lock.json events.jsonl
        trajectory/acp_trajectory.jsonl verifier/reward.txt verifier/test-stdout.txt agent/oracle.txt"""
    assert [f for f in expected.split() if not (root / f).is_file()] == []
    assert result["rewards"] == {"reward": 1.0}
    assert {"reward", "total_tokens", "status"}.isdisjoint(result)
    assert result["agent_result"]["total_tokens"] is None
    assert result["error"] is None and result["verifier_error"] is None
    assert result["task_digest"].startswith("sha256:")
    assert {p["kind"] for p in result["plugins"]} >= {"agent", "sandbox", "adapter", "verifier", "driver"}
    assert all(p["version"] for p in result["plugins"])
    for key in ("started_at", "finished_at"):
        assert datetime.fromisoformat(result[key]).utcoffset() is not None
    assert json.loads((root / "rewards.jsonl").read_text().splitlines()[-1])["value"] == 1.0
    for file in ("config.json", "result.json", "timing.json", "lock.json", "sandbox.json"):
        assert json.loads((root / file).read_text())["schema_version"]


def test_events_are_ordered_versioned_and_timed(bench, name, examples, result_of):
    bench("eval", "create", "-t", examples / "hello-file", "-a", name("oracle"))
    events = [json.loads(line) for line in (result_of()["dir"] / "events.jsonl").read_text().splitlines()]
    assert [e["seq"] for e in events] == list(range(1, len(events) + 1))
    assert {e["v"] for e in events} == {1}
    assert [e["at"] for e in events] == sorted(e["at"] for e in events)
    phases = [e["data"]["phase"] for e in events if e["kind"] == "phase_started"]
    assert phases == ["start", "install_agent", "execute", "verify", "cleanup"]
    assert events[-1]["kind"] == "rollout_finished"


def test_trials_are_rollouts_of_their_own(bench, name, examples, tmp_path):
    done = bench("eval", "create", "-t", examples / "hello-file", "-a", name("oracle"), "--trials", "3", "--json")
    assert done.json["total"] == 3 and done.json["passed"] == 3
    results = [json.loads(p.read_text()) for p in tmp_path.glob("jobs/*/*/result.json")]
    assert sorted(r["trial"] for r in results) == [1, 2, 3]


def test_the_default_sandbox_is_printed(bench, name, examples):
    done = bench("eval", "create", "-t", examples / "hello-file", "-a", name("oracle"))
    assert "(chosen by rank; --sandbox names another)" in done.err
    assert bench("eval", "create", "-t", examples / "hello-file", "-a", name("oracle"), "--quiet").err == ""


def test_older_spellings_still_work(bench, name, examples):
    done = bench("run", "-t", examples / "hello-file", "-a", name("oracle"), "-e", name("local"), "--json")
    assert done.code == 0, done.err
    assert done.json["passed"] == 1
    assert name("oracle") in bench("agents").out
    listed = bench("eval", "list", "jobs", "--json").json
    assert [j["passed"] for j in listed] == [1]
    assert bench("metrics", "jobs/", "--json").json["passed"] == 1


def test_include_and_exclude(bench, name, examples):
    both = bench(
        "eval", "create", "-t", examples, "-a", name("nop"), "--include", "h*", "--exclude", "hello-doc", "--json"
    )
    assert [r["task_name"] for r in both.json["rollouts"]] == ["hello-file"]


def test_fail_under(bench, name, examples):
    task = examples / "hello-file"
    assert bench("eval", "create", "-t", task, "-a", name("nop"), "--fail-under", "0.5").code == 1
    assert bench("eval", "create", "-t", task, "-a", name("oracle"), "--fail-under", "0.5").code == 0


def test_reproduce_repeats_a_rollout_from_its_lock(bench, name, examples, result_of, tmp_path):
    bench("eval", "create", "-t", examples / "hello-file", "-a", name("oracle"))
    again = bench("eval", "reproduce", result_of()["dir"], "-o", tmp_path / "again", "--json")
    assert again.code == 0, again.err
    assert again.json["passed"] == 1 and again.json["drift"] == []
    lock = json.loads((result_of()["dir"] / "lock.json").read_text())
    lock["task"]["digest"] = "sha256:" + "0" * 64
    (result_of()["dir"] / "lock.json").write_text(json.dumps(lock))
    refused = bench("eval", "reproduce", result_of()["dir"], "-o", tmp_path / "third")
    assert refused.code == 1 and "not the same any more" in refused.err
    allowed = bench("eval", "reproduce", result_of()["dir"], "-o", tmp_path / "third", "--allow-drift")
    assert allowed.code == 0, allowed.err


def test_reproduce_plays_the_scenes_as_they_were_written(bench, name, result_of, examples, tmp_path):
    """Messages come anew and once, a reviewer that may not write still may not, skills are the same."""
    skill = tmp_path / "skills/greeting/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: greeting\n---\nGreet.\n")
    greet = 'echo "Hello, $(cat name.txt)!" > hello.txt'
    spoil = "echo spoilt > hello.txt; cat ~/.agents/skills/greeting/SKILL.md && "
    spoil += 'echo \'{"to": "coder", "content": "fine"}\' > .outbox/coder.json'
    roles = [
        {"name": "coder", "agent": name("scripted"), "options": {"script": json.dumps({"turns": [[{"run": greet}]]})}},
        {"name": "reviewer", "agent": name("scripted"), "read_only": True, "skills_dir": "skills"},
    ]
    roles[1]["options"] = {"script": json.dumps([{"run": spoil}])}
    scene = {"roles": roles, "turns": [{"role": "coder"}, {"role": "reviewer", "prompt": "Look."}, {"role": "coder"}]}
    config = {"task_dir": str(examples / "hello-file"), "sandbox": name("local"), "scenes": [{"name": "s", **scene}]}
    (tmp_path / "job.yaml").write_text(json.dumps(config))
    assert bench("eval", "create", "--config", "job.yaml", "--job-name", "first").code == 0
    first = result_of(tmp_path / "jobs/first")
    again = bench("eval", "reproduce", first["dir"], "-o", tmp_path / "again", cwd=tmp_path / "skills")
    assert again.code == 0, again.err
    second = result_of(tmp_path / "again")
    assert first["rewards"] == second["rewards"] == {"reward": 1.0}
    prompts = [json.loads((one["dir"] / "prompts.json").read_text()) for one in (first, second)]
    assert prompts[0] == prompts[1] and prompts[1][2].count('"fine"') == 1
    skill.write_text("another")
    changed = bench("eval", "reproduce", first["dir"], "-o", tmp_path / "third")
    assert changed.code == 1 and "skills/greeting says something else now" in changed.err


def test_a_multi_step_task_is_verified_step_by_step(bench, name, examples, result_of):
    assert bench("eval", "create", "-t", examples / "two-step-notes", "-a", name("oracle")).code == 0
    result = result_of()
    assert len(result["step_results"]) == 2
    assert all(s["rewards"]["reward"] == 1 for s in result["step_results"])
    assert (result["dir"] / "steps").is_dir()


def test_a_step_that_cannot_begin_says_why(bench, name, examples, result_of, tmp_path):
    task = shutil.copytree(examples / "two-step-notes", tmp_path / "task")
    second = task / "steps/report"
    (second / "workdir").mkdir(exist_ok=True)
    (second / "workdir" / "setup.sh").write_text("exit 4\n")
    assert bench("eval", "create", "-t", task, "-a", name("oracle")).code == 1
    first, failed = result_of()["step_results"]
    assert first["rewards"] is not None and failed["rewards"] is None
    assert failed["error"]["message"] == "setup.sh of step 'report' failed with exit code 4"


def test_a_server_that_an_acp_agent_started_is_there_for_the_tests(bench, name, examples):
    task = examples / "tiny-http-server"
    done = bench(
        "eval", "create", "-t", task, "-a", name("scripted"), "--agent-option", f"script={task}/scripted/solve.yaml"
    )
    assert done.code == 0, done.err
    assert "✓ Score: 1/1" in done.out


def test_the_tests_of_a_document_also_go_by_their_older_name(bench, name, examples, tmp_path):
    task = shutil.copytree(examples / "hello-doc", tmp_path / "doc")
    script = task / "verifier" / "test.sh"
    script.write_text("#!/bin/sh\n[ -f /tests/test.sh ] && [ -f /verifier/test.sh ] && exec sh /tests/judge.sh\n")
    (task / "verifier" / "judge.sh").write_text("echo 1 > /logs/verifier/reward.txt\n")
    planted = "mkdir -p /tests; echo 'echo 0 > /logs/verifier/reward.txt' > /tests/judge.sh"
    done = bench(
        "eval", "create", "-t", task, "-a", name("scripted"), "--agent-option", f'script=[{{run: "{planted}"}}]'
    )
    assert "✓ Score: 1/1" in done.out, done.err + done.out


def test_a_verifier_document_may_name_a_command(bench, name, examples, tmp_path):
    task = shutil.copytree(examples / "hello-doc", tmp_path / "doc")
    (task / "verifier" / "verifier.md").write_text(
        "---\ndocument_version: '0.3'\nverifier:\n  name: v\n  default_strategy: s\n  strategies:\n    s:\n      type: script\n"
        "      command: 'sh judge.sh | tee /logs/verifier/reward.txt'\n---\n"
    )
    (task / "verifier" / "judge.sh").write_text("[ -f judge.sh ] && echo 1\n")
    done = bench("eval", "create", "-t", task, "-a", name("nop"))
    assert "✓ Score: 1/1" in done.out, done.err + done.out


def test_a_context_root_above_the_task(bench, name, tmp_path, examples, result_of):
    """Tasks of one repository copy files that lie beside them; a root that does not hold the task is refused."""
    task = shutil.copytree(examples / "hello-file", tmp_path / "repo" / "tasks" / "hello")
    dockerfile = task / "environment" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("COPY name.txt .", "COPY shared/who.txt /app/name.txt"))
    (tmp_path / "repo" / "shared").mkdir()
    (task / "environment" / "name.txt").rename(tmp_path / "repo" / "shared" / "who.txt")
    common = ["eval", "create", "-t", task, "-a", name("oracle"), "--sandbox", name("local"), "--context-root"]
    assert bench(*common, tmp_path / "repo").code == 0
    assert result_of()["rewards"] == {"reward": 1.0}
    refused = bench(*common, examples)
    assert refused.code == 1 and "does not hold" in refused.err


def test_an_agent_that_works_through_its_client(bench, name, examples, tmp_path, result_of):
    write = {"method": "fs/write_text_file", "params": {"path": "/app/hello.txt", "content": "Hello, Ada!\n"}}
    (tmp_path / "script.yaml").write_text(json.dumps([{"call": write}]))
    agent = ["-a", name("scripted"), "--agent-option", f"script={tmp_path / 'script.yaml'}"]
    for asked, reward in (("terminal", 0), ("files", 1)):
        out = tmp_path / asked
        done = bench("eval", "create", "-t", examples / "hello-file", *agent, "--client-methods", asked, "-o", out)
        assert done.code == 0, done.err
        result = result_of(out)
        assert result["rewards"]["reward"] == reward, asked
        assert json.loads((result["dir"] / "lock.json").read_text())["settings"]["client_methods"] == asked
