"""Every setting of a rollout stands in `config.json`, so that two jobs that differ in one never look the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchflow_command_results.compare import compare, load_sides
from benchflow_feature_world.choice import ChosenServices

from benchflow_core.contracts.scenes import Role, Scene, Turn
from benchflow_core.evaluation.stored import StoredFiles
from benchflow_core.results.schemas import Config
from benchflow_core.settings.compose import composed
from benchflow_core.settings.models import RolloutConfig
from benchflow_core.settings.written import recorded, recorded_names

IN_THE_RESULT = {"agent", "model", "sandbox", "skill_mode", "isolation", "dataset", "source_provenance", "arm"}
"""What was used in the end stands in `result.json`, and `compare` takes it from there."""
OTHERS: dict[str, Any] = {
    "scenes": [Scene("s", [Role("r", "oracle", timeout_sec=9)], [Turn("r")])],
    "prompts": ["Do it."],
    "agent_env": {"COLOUR": "red"},
    "agent_idle_timeout": 7.0,
    "timeout": 7.0,
    "permissions": "ask",
    "client_methods": "files",
    "auth": "native",
    "verify": False,
    "job_mode": "sequential-shared",
    "contested": "as-left",
    "helper_models": "own",
    "uploads": {"/a": "/b"},
    "max_user_rounds": 2,
    "state": ChosenServices(["gmail"]),
    "usage_tracking": "required",
    "max_rollout_tokens": 5,
    "max_rollout_cost": 0.5,
    "replay": Path("old"),
    "keep_state": "all",
    "allow_env": ["X"],
    "services": ["gmail"],
    "sandbox_locked_paths": ["/x"],
}
SETTINGS = [name for name in recorded_names(composed(RolloutConfig)) if name not in IN_THE_RESULT]


def other(name: str) -> Any:
    """A value that is not the default."""
    if name in OTHERS:
        return OTHERS[name]
    default = getattr(RolloutConfig(task_path=Path("t")), name)
    return (
        not default
        if isinstance(default, bool)
        else {"k": "v"}
        if isinstance(default, dict)
        else default + 1
        if isinstance(default, int | float)
        else "other"
    )


@pytest.mark.parametrize("setting", SETTINGS)
def test_two_jobs_that_differ_in_one_setting_are_told_apart(make_job, setting):
    plain = recorded(RolloutConfig(task_path=Path("t")))
    changed = recorded(RolloutConfig(task_path=Path("t"), **{setting: other(setting)}))
    (name,) = [key for key in plain if plain[key] != changed[key]]
    rewards = {f"t{n}": [1.0] for n in range(6)}
    jobs = [str(make_job(job, rewards, config=config)) for job, config in (("a", plain), ("b", changed))]
    (one,) = compare(StoredFiles(), load_sides(StoredFiles(), jobs))
    assert [d.field for d in one.different] == [name]
    (older,) = compare(StoredFiles(), load_sides(StoredFiles(), [str(make_job("older", rewards)), jobs[0]]))
    assert older.different == [], "what an older file does not say was not set"


def test_the_published_schema_has_every_setting_and_secrets_are_in_none():
    config = RolloutConfig(
        task_path=Path("t"),
        agent_env={"API_KEY": "hush-1"},
        scenes=[Scene("s", [Role("r", "oracle", env={"API_KEY": "hush-2"})], [Turn("r")])],
    )
    found = recorded(config)
    assert set(found) <= set(Config.model_fields)
    assert "hush" not in str(found) and found["agent_env"] == {}
