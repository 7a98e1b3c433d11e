"""`bf.results(path).to_dataframe()`, with the real pandas."""

from __future__ import annotations

import json
import sys

import pytest

from benchflow_core.errors import ConfigurationError


@pytest.fixture
def found(tmp_path, monkeypatch):
    import benchflow as bf

    monkeypatch.setenv("BENCHFLOW_CACHE", str(tmp_path / "cache"))
    for n, reward in enumerate((1.0, 0.0, None)):
        folder = tmp_path / "jobs" / "j" / f"t__{n}"
        folder.mkdir(parents=True)
        rewards = None if reward is None else {"reward": reward, "speed": 2.0}
        error = {"kind": "provider", "code": "provider_error"} if reward is None else None
        result = {"task_name": "t", "rollout_name": folder.name, "rewards": rewards, "agent": "a", "error_info": error}
        (folder / "result.json").write_text(json.dumps({**result, "timing": {"total": n}}))
    return bf.results(tmp_path / "jobs")


def test_one_line_per_rollout_and_the_unscored_are_missing_not_zero(found):
    frame = found.to_dataframe()
    assert list(frame.outcome) == ["passed", "failed", "errored"]
    assert frame.reward.mean() == 0.5 and frame.reward.isna().sum() == 1
    assert list(frame.reward_speed.dropna()) == [2.0, 2.0] and frame.error_kind.iloc[2] == "provider"
    assert list(frame.seconds_total) == [0, 1, 2]


def test_without_pandas_the_rows_are_there_and_the_remedy_is_named(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigurationError, match=r"needs pandas\. Run: pip install"):
        found.to_dataframe()
    assert len(found.rows) == 3
