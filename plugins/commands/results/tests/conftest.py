"""Jobs on disk, as a finished run leaves them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

DIGEST = "sha256:" + "0" * 64


@pytest.fixture
def make_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """`make_job("a", {"task": [1, 0, None]})`: the rewards of each task's trials; `None` is unscored."""
    monkeypatch.setenv("BENCHFLOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def make(name: str, tasks: dict[str, list[float | None]], *, config: dict | None = None, **fields: object) -> Path:
        job = tmp_path / "jobs" / name
        for task, rewards in tasks.items():
            for trial, reward in enumerate(rewards, 1):
                folder = job / f"{task}__{fields.get('arm') or ''}{trial:08x}"
                folder.mkdir(parents=True)
                error = {"kind": "infrastructure", "code": "sandbox_lost", "message": "gone", "retryable": True}
                result = {
                    "task_name": task,
                    "rollout_name": folder.name,
                    "job_name": name,
                    "trial": trial,
                    "rewards": None if reward is None else {"reward": reward},
                    "agent": "agent",
                    "model": "model",
                    "sandbox": "box",
                    "image_fidelity": "exact",
                    "verifier_isolation": "fresh",
                    "error": "gone" if reward is None else None,
                    "error_info": error if reward is None else None,
                    "task_digest": DIGEST,
                    "core_version": "0.8.0",
                    "plugins": [{"kind": "sandbox", "name": "box", "distribution": "d", "version": "1"}],
                    "timing": {"total": 1.0},
                    **fields,
                }
                (folder / "config.json").write_text(json.dumps({"timeout_sec": None, **(config or {})}))
                (folder / "result.json").write_text(json.dumps(result))
        return job

    return make
