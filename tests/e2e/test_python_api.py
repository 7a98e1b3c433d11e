"""Every calling convention of the documents, against the real engine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clean(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("BENCHFLOW_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def task(examples):
    return examples / "hello-file"


async def test_run_with_a_config(name, task):
    import benchflow as bf
    from benchflow.trial import Role, Scene, TrialConfig, Turn

    script = "- run: sed 's/.*/Hello, &!/' /app/name.txt > /app/hello.txt"
    solver = Role("solver", name("scripted"), "some-model", options={"script": script})
    config = TrialConfig(
        task_path=Path(task),
        scenes=[Scene(name="solve", roles=[solver], turns=[Turn("solver")])],
        environment=name("local"),
        sandbox_setup_timeout=120,
    )
    assert config.environment == config.sandbox == name("local")
    result = await bf.run(config)
    assert result.rewards == {"reward": 1.0}
    assert result.model == "some-model"
    assert result.n_tool_calls == 1


async def test_run_with_agent_and_environment(name, task):
    import benchflow as bf

    agent = bf.Agent(name("oracle"))
    env = bf.Environment.from_task(str(task), backend=name("local"))
    result = await bf.run(agent, env, bf.RuntimeConfig(sandbox_setup_timeout=300))
    assert result.rewards == {"reward": 1.0}


async def test_run_with_a_name(name, task):
    import benchflow as bf

    config = bf.RuntimeConfig(sandbox_setup_timeout=300)
    result = await bf.run(name("oracle"), task_path=str(task), config=config)
    assert result.rewards == {"reward": 1.0} and result.outcome == "passed"


async def test_runtime(name, task):
    from benchflow.runtime import Agent, Environment, Runtime, RuntimeConfig

    env = Environment.from_task(str(task), backend=name("local"))
    result = await Runtime(env, Agent(name("nop")), config=RuntimeConfig()).execute()
    assert result.rewards["reward"] == 0


async def test_sdk_multi_turn_and_job(name, task, examples):
    from benchflow import SDK, Job, JobConfig, collect_metrics

    result = await SDK().run(
        task_path=str(task), agent=name("oracle"), prompts=[None, "Check it."], environment=name("local")
    )
    assert result.rewards == {"reward": 1.0} and result.n_prompts == 2
    job = Job(
        tasks_dir=str(task),
        jobs_dir="jobs/tb2",
        config=JobConfig(agent=name("oracle"), environment=name("local"), concurrency=2),
    )
    done = await job.run()
    assert f"{done.passed}/{done.total} ({done.score:.1%})" == "1/1 (100.0%)"
    assert collect_metrics("jobs/tb2", benchmark="TB2").summary()["passed"] == 1


async def test_phases_by_hand(name, task):
    from benchflow.trial import Trial, TrialConfig

    trial = await Trial.create(TrialConfig(task_path=task, agent=name("oracle")))
    await trial.setup()
    await trial.start()
    await trial.install_agent()
    await trial.connect()
    turns = await trial.execute(prompts=["custom prompt"])
    await trial.disconnect()
    rewards = await trial.verify()
    result = await trial.cleanup()
    assert turns[0].prompt == "custom prompt" and turns[0].outcome.stop_reason == "end_turn"
    assert rewards == {"reward": 1.0} == result.rewards
    assert (result.rollout_dir / "result.json").is_file()


async def test_yaml(name, task, tmp_path):
    import benchflow as bf
    from benchflow.evaluation import Evaluation
    from benchflow.trial_yaml import trial_config_from_yaml

    path = tmp_path / "trial.yaml"
    path.write_text(
        f"task_dir: {task}\nenvironment: {name('local')}\nconcurrency: 64\nscenes:\n  - name: s\n    roles:\n"
        f"      - name: solver\n        agent: {name('oracle')}\n    turns:\n      - role: solver\n"
    )
    assert (await bf.run(trial_config_from_yaml(path))).rewards == {"reward": 1.0}
    done = await Evaluation.from_yaml(path).run()
    assert done.passed == done.total == 1

    for copy in ("a", "b"):
        shutil.copytree(task, tmp_path / "tasks" / copy)
    path.write_text(path.read_text().replace(str(task), str(tmp_path / "tasks")))
    done = await bf.run(trial_config_from_yaml(path))
    assert (done.passed, done.total) == (2, 2), "a folder is run as `benchflow job` would"


async def test_a_live_session_through_a_scene_and_a_new_one_after_it(name, task, tmp_path):
    import benchflow as bf
    from benchflow import Role, RolloutConfig, Scene, Turn

    script = tmp_path / "s.yaml"
    script.write_text(
        "turns:\n  - steps:\n      - run: 'echo one >> /app/log'\n  - steps:\n"
        "      - run: 'echo two >> /app/log; cp /app/log /logs/artifacts/log'\n"
    )
    role = Role("a", name("scripted"), options={"script": str(script)})
    config = RolloutConfig(
        task, scenes=[Scene("x", [role], [Turn("a", "p"), Turn("a", "q")]), Scene("y", [role], [Turn("a", "r")])]
    )
    result = await bf.run(config)
    assert result.error is None, result.error
    sessions = [(e["scene"], e["session"]) for e in result.trajectory if e["type"] == "user_message"]
    assert [scene for scene, _ in sessions] == ["x", "x", "y"]
    assert sessions[0][1] == sessions[1][1] != sessions[2][1]
    assert (result.rollout_dir / "artifacts/logs/artifacts/log").read_text() == "one\ntwo\n"


async def test_hooks_and_uploads_before_the_agent(name, task, tmp_path):
    import benchflow as bf

    (tmp_path / "data").write_text("hello")
    seen = []

    async def hook(sandbox):
        seen.append((await sandbox.exec(["cat", "/data/in"])).stdout)

    config = bf.RolloutConfig(
        task, agent=name("nop"), uploads={str(tmp_path / "data"): "/data/in"}, pre_agent_hooks=[hook]
    )
    await bf.run(config)
    assert seen == [b"hello"]


async def test_a_failure_without_words_has_its_name(name, task):
    import benchflow as bf

    async def hook(sandbox):
        raise TimeoutError

    result = await bf.run(bf.RolloutConfig(task, agent=name("nop"), pre_agent_hooks=[hook]))
    assert (result.error, result.error_info["retryable"]) == ("TimeoutError.", True)


def test_the_adapter_of_a_folder(task, tmp_path):
    from benchflow.adapters.inbound import HarborAdapter, InboundTask, detect_adapter

    from benchflow_core.errors import TaskError

    adapter = detect_adapter(task)
    assert isinstance(adapter, HarborAdapter) and adapter.spec.signature == "task.toml"
    loaded = adapter.from_task_dir(str(task))
    assert isinstance(loaded, InboundTask) and loaded.instruction == (task / "instruction.md").read_text()
    (tmp_path / "own/verifier").mkdir(parents=True)
    (tmp_path / "own/task.md").write_text("---\nschema_version: '1.3'\n---\nDo it.\n")
    (tmp_path / "own/verifier/test.sh").write_text("true\n")
    assert not isinstance(detect_adapter(tmp_path / "own"), HarborAdapter)
    with pytest.raises(TaskError, match="not 'harbor'"):
        HarborAdapter().from_task_dir(tmp_path / "own")
    with pytest.raises(TaskError, match="is not a task"):
        detect_adapter(tmp_path)


def test_runtime_settings_reach_the_rollout(task, tmp_path):
    import benchflow as bf

    given = {"skills_dir": "skills", "skill_mode": "with-skill", "usage_tracking": "off", "sandbox_user": "agent"}
    runtime = bf.Runtime(bf.Environment.from_task(task), bf.Agent("a"), bf.RuntimeConfig(**given, jobs_dir="out"))
    made = runtime.rollout_config()
    assert {key: getattr(made, key) for key in given} == given and made.jobs_dir == Path("out")
    assert bf.Sandbox.__name__ == "Sandbox" and bf.Task.__name__ == "Task"


async def test_the_sdk_without_an_agent_asks_for_the_default_ones_key(name, task, monkeypatch):
    import benchflow as bf

    from benchflow_core.errors import ConfigurationError

    for key in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(key, raising=False)
    with pytest.raises(ConfigurationError, match=r"no agent was named, and '.*' cannot be taken: no credential"):
        await bf.SDK().run(task_path=task, environment=name("local"))


async def test_a_task_without_an_agent(name, task, tmp_path):
    import benchflow as bf

    from benchflow_core.errors import SandboxLost

    where = {"sandbox": name("local"), "agent": name("nop"), "jobs_dir": tmp_path / "jobs"}
    async with await bf.TaskRuntime.create(task, **where) as runtime:
        assert runtime.instruction == runtime.rollout.plan.task.instruction
        assert (await runtime.verify()).rewards == {"reward": 0.0}
        seen = await runtime.bash("cat name.txt; echo oops >&2; exit 3")
        assert (seen.exit_code, seen.stderr, seen.output) == (3, "oops\n", seen.stdout + "oops\n")
        assert (await runtime.bash("sleep 100", timeout=0.2)).timed_out
        await runtime.bash('echo "Hello, $(cat name.txt)!" >hello.txt')
        assert (await runtime.verify()).rewards == {"reward": 1.0}
        box = runtime.sandbox
    result = runtime.rollout.result
    assert (result.outcome, result.n_tool_calls, result.error) == ("passed", 3, None)
    assert [row["reward"] for row in bf.results(runtime.rollout.dir.parent)] == [1.0]
    with pytest.raises(SandboxLost):
        await box.exec(("true",))


async def test_what_a_task_runtime_cannot_do_is_said_and_leaves_nothing(name, examples, task, tmp_path):
    import benchflow as bf

    where = {"sandbox": name("local"), "agent": name("nop"), "jobs_dir": tmp_path / "jobs"}
    with pytest.raises(bf.BenchflowError, match="has several steps"):
        await bf.TaskRuntime.create(examples / "two-step-notes", **where)
    with pytest.raises(bf.BenchflowError, match="does not exist"):
        await bf.TaskRuntime.create(task, uploads={"/no/such/file": "/app/x"}, **where)
    [kept] = bf.results(next((tmp_path / "jobs").iterdir()))
    assert kept.get("reward") is None and "does not exist" in kept["error"]


async def test_a_verdict_after_one_that_failed_counts(name, task, tmp_path):
    import shutil

    import benchflow as bf

    copy = shutil.copytree(task, tmp_path / "task")
    (copy / "tests" / "test.sh").write_text("#!/bin/sh\ncp /app/verdict /logs/verifier/reward.txt\n")
    where = {"sandbox": name("local"), "agent": name("nop"), "jobs_dir": tmp_path / "jobs"}
    async with await bf.TaskRuntime.create(copy, **where) as runtime:
        await runtime.bash("echo nan >verdict")
        assert (await runtime.verify()).rewards is None
        await runtime.bash("echo 1 >verdict")
        assert (await runtime.verify()).rewards == {"reward": 1.0}
    result = runtime.rollout.result
    assert (result.outcome, result.error, result.verifier_error) == ("passed", None, None)


def test_agents_by_name(name):
    import benchflow as bf

    assert name("oracle") in bf.list_agents()
    assert bf.get_agent(name("oracle")).summary
