"""Settings survive being written down, but for secrets and code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchflow_core.contracts.scenes import Role, Scene, Turn
from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation import EvaluationConfig, RetryConfig
from benchflow_core.settings.matrix import Choice, Matrix
from benchflow_core.settings.written import code_in, dump, read


def there_and_back(config, env=None):
    return read(EvaluationConfig, json.loads(json.dumps(dump(config))), env or {}, "job.json")


def test_every_setting_comes_back():
    scene = Scene("s", [Role("r", "oracle", "m", options={"a": "b"}, timeout_sec=3)], [Turn("r", "go"), Turn("r")])
    config = EvaluationConfig(
        scenes=[scene],
        sandbox="x",
        agent_env={"PLAIN": "1"},
        prompts=["a", None],
        uploads={"a": "/b"},
        replay=Path("old/job"),
        retry=RetryConfig(max_retries=7),
        trials=3,
        seed=11,
        max_cost=1.5,
        limits={"sandbox:x": 2},
        matrix=Matrix(agents=["a", "b"], models={"one": "m1", "two": Choice(model="m2", agent_env={"K": "v"})}),
    )
    back = there_and_back(config)
    assert dump(back) == dump(config)
    assert isinstance(back.scenes[0].roles[0], Role) and isinstance(back.replay, Path)
    assert isinstance(back.matrix.models["two"], Choice)


def test_a_secret_is_not_written_and_is_asked_for_again():
    config = EvaluationConfig(agent_env={"MY_TOKEN": "s3cret-value"}, agent_options={"max_tokens": "5"})
    assert "s3cret-value" not in json.dumps(dump(config))
    with pytest.raises(ConfigurationError, match="MY_TOKEN"):
        there_and_back(config)
    back = there_and_back(config, {"MY_TOKEN": "again"})
    assert back.agent_env == {"MY_TOKEN": "again"} and back.agent_options == {"max_tokens": "5"}


def test_code_is_named_and_left_out():
    async def hook(sandbox):
        """Does nothing."""

    config = EvaluationConfig(pre_agent_hooks=[hook])
    assert code_in(config) == ["pre_agent_hooks"] and "pre_agent_hooks" not in dump(config)


def test_a_setting_of_another_version_is_refused():
    with pytest.raises(ConfigurationError, match="'newer'"):
        read(EvaluationConfig, {"newer": 1}, {}, "job.json")
