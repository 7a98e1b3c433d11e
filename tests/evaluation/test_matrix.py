"""Arms: every combination once, named by what differs, with their own settings and nobody else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchflow_core.errors import CapabilityMissing, ConfigurationError
from benchflow_core.evaluation.items import plan_cells, plan_items
from benchflow_core.rollout.host import Host
from benchflow_core.settings.matrix import Choice, Matrix, make_arms
from benchflow_core.settings.models import JobSettings as EvaluationConfig

EXAMPLES = Path(__file__).parents[2] / "examples" / "tasks"


def test_every_combination_and_only_what_differs_in_the_name():
    arms = make_arms(Matrix(agents=["a", "b"], models=["m"], skill_modes=["no-skill", "with-skill"]))
    assert [arm.name for arm in arms] == ["a+no-skill", "a+with-skill", "b+no-skill", "b+with-skill"]
    assert arms[0].settings == {"agent": "a", "model": "m", "skill_mode": "no-skill", "skills_dir": None}
    assert len(set(arms)) == 4
    assert [arm.name for arm in make_arms(Matrix(agents=["a"], models=["m"]))] == ["a+m"]
    assert make_arms(Matrix()) == []


def test_a_value_with_settings_of_its_own_keeps_them_to_itself():
    models = {"opus": "bedrock/opus", "flash": Choice(model="gemini/flash", agent_env={"CACHE": "false"})}
    config = EvaluationConfig(agent="x", agent_env={"ALL": "1"}, matrix=Matrix(models=models))
    made = {arm.name: rollout(config, arm.name) for arm in config.arms()}
    assert (made["opus"].model, made["opus"].agent_env) == ("bedrock/opus", {"ALL": "1"})
    assert (made["flash"].model, made["flash"].agent_env) == ("gemini/flash", {"ALL": "1", "CACHE": "false"})
    assert (made["flash"].agent, made["flash"].arm) == ("x", "flash")


def rollout(config, arm):
    return config.rollout(Path("t"), jobs_dir=Path(), job_name="", rollout_name="", trial=1, attempt=1, arm=arm)


def test_what_cannot_be_told_apart_is_refused():
    with pytest.raises(ConfigurationError, match="two arms are called 'a'"):
        make_arms(Matrix(agents=["a", "a"]))
    with pytest.raises(ConfigurationError, match="names no model"):
        make_arms(Matrix(models={"m": Choice(agent="x")}))
    with pytest.raises(ConfigurationError, match="an axis of agents too"):
        make_arms(Matrix(agents=["a"], models={"m": Choice(agent="x", model="y")}))
    with pytest.raises(ConfigurationError, match="no arm 'z'"):
        rollout(EvaluationConfig(matrix=Matrix(agents=["a"])), "z")


async def test_items_tell_their_arm_and_trials_are_interleaved(tmp_path):
    config = EvaluationConfig(matrix=Matrix(agents=["oracle", "nop"]), trials=2)
    paths = [EXAMPLES / "hello-file", EXAMPLES / "word-count"]
    async with Host(env={"BENCHFLOW_CACHE": str(tmp_path)}) as host:
        items = plan_items(paths, config, host)
    told = [(item.trial, item.task_path.name, item.arm) for item in items]
    assert told[:4] == [
        (1, "hello-file", "oracle"),
        (1, "hello-file", "nop"),
        (1, "word-count", "oracle"),
        (1, "word-count", "nop"),
    ]
    assert len(told) == 8 and {trial for trial, _, _ in told[4:]} == {2}
    plans = {item.arm: item.plan for item in items}
    assert list(plans["nop"].agents) == ["nop"] and list(plans["oracle"].agents) == ["oracle"]


async def test_a_task_is_read_and_hashed_once_for_all_arms_and_trials(tmp_path, monkeypatch):
    """Its folder is gone after the first arm was planned: the others do not notice."""
    import shutil

    from benchflow_core.evaluation import items as module

    task = shutil.copytree(EXAMPLES / "hello-file", tmp_path / "task")
    real, hashed = module.task_digest, []
    monkeypatch.setattr(module, "task_digest", lambda path: hashed.append(path) or real(path))
    monkeypatch.setattr("benchflow_core.rollout.plan.task_digest", lambda path: pytest.fail("hashed again"))
    config = EvaluationConfig(matrix=Matrix(agents=["oracle", "nop"]), trials=20)
    async with Host(env={"BENCHFLOW_CACHE": str(tmp_path / "cache")}) as host:
        planned = plan_items([task], config, host)
    assert len(planned) == 40 and len(hashed) == 1


async def test_a_wrong_agent_in_one_arm_stops_the_job_and_a_broken_task_does_not(tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "task.toml").write_text("[oops")
    paths = [EXAMPLES / "hello-file", tmp_path / "broken"]
    async with Host(env={"BENCHFLOW_CACHE": str(tmp_path / "cache")}) as host:
        with pytest.raises(ConfigurationError, match="Unknown agent 'orcle'"):
            plan_items(paths, EvaluationConfig(matrix=Matrix(agents=["oracle", "orcle"])), host)
        items = plan_items(paths, EvaluationConfig(matrix=Matrix(agents=["oracle", "nop"])), host)
        refused = [(item.task_path.name, item.arm) for item in items if item.refusal]
        assert refused == [("broken", "oracle"), ("broken", "nop")]
        assert plan_cells(paths, EvaluationConfig(agent="orcle"), host)[0].refusal is not None


async def test_what_would_do_nothing_is_refused(tmp_path):
    from benchflow_core.contracts.scenes import Scene

    task = [EXAMPLES / "hello-file"]
    wrong = {
        "arms that learn from each other": EvaluationConfig(
            matrix=Matrix(agents=["oracle", "nop"]), job_mode="sequential-shared"
        ),
        "an axis of those too": EvaluationConfig(
            matrix=Matrix(agents=["oracle"], scenes={"one": [Scene.single(agent="oracle")]})
        ),
        "every arm has scenes of its own": EvaluationConfig(
            agent="oracle", matrix=Matrix(scenes={"one": [Scene.single(agent="oracle")]})
        ),
        "scenes name their own agents": EvaluationConfig(
            scenes=[Scene.single(agent="oracle")], matrix=Matrix(agents=["a", "b"])
        ),
        "1 tasks are chosen, 3 were expected": EvaluationConfig(agent="oracle", expected_tasks=3),
        "--usage-tracking required": EvaluationConfig(
            agent="scripted", agent_options={"script": "- say: hi"}, usage_tracking="required"
        ),
    }
    async with Host(env={"BENCHFLOW_CACHE": str(tmp_path)}) as host:
        for message, config in wrong.items():
            with pytest.raises((ConfigurationError, CapabilityMissing), match=message):
                plan_items(task, config, host)
