"""Where everything lies: `jobs/<job>/<rollout>/…`, as the documents promise."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from benchflow_core.errors import ConfigurationError
from benchflow_core.quick import dataclass

__all__ = ["RolloutDir", "cache_dir", "job_name", "refuse_outside", "rollout_name"]


def cache_dir(env: Mapping[str, str]) -> Path:
    """`$BENCHFLOW_CACHE`, or `benchflow` in the user's cache folder."""
    if env.get("BENCHFLOW_CACHE"):
        return Path(env["BENCHFLOW_CACHE"])
    home = env.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "benchflow"


def refuse_outside(name: str, what: str) -> None:
    """Refuse a name that is not that of one folder: it would be written outside the folder of jobs."""
    if name in ("", ".", "..") or any(char in name for char in "/\\\0"):
        raise ConfigurationError(
            f"{what} '{name}' is not the name of a folder.", remedy="--jobs-dir says where it lies."
        )


def job_name() -> str:
    """`2026-11-16__02-30-00`, in UTC."""
    return time.strftime("%Y-%m-%d__%H-%M-%S", time.gmtime())


def rollout_name(task: str) -> str:
    """`<task>__<8 hex>`: readable first, unique always."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", task).strip("-.")[:64] or "task"
    return f"{readable}__{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True)
class RolloutDir:
    """The files of one rollout."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "config.json"

    @property
    def result(self) -> Path:
        return self.root / "result.json"

    @property
    def timing(self) -> Path:
        return self.root / "timing.json"

    @property
    def prompts(self) -> Path:
        return self.root / "prompts.json"

    @property
    def rewards(self) -> Path:
        return self.root / "rewards.jsonl"

    @property
    def sandbox(self) -> Path:
        return self.root / "sandbox.json"

    @property
    def lock(self) -> Path:
        return self.root / "lock.json"

    @property
    def events(self) -> Path:
        return self.root / "events.jsonl"

    @property
    def trajectory(self) -> Path:
        return self.root / "trajectory" / "acp_trajectory.jsonl"

    @property
    def llm_trajectory(self) -> Path:
        return self.root / "trajectory" / "llm_trajectory.jsonl"

    @property
    def recording(self) -> Path:
        return self.root / "trajectory" / "recording"

    @property
    def agent(self) -> Path:
        return self.root / "agent"

    @property
    def verifier(self) -> Path:
        return self.root / "verifier"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def steps(self) -> Path:
        return self.root / "steps"

    def agent_log(self, agent: str) -> Path:
        """The agent's stderr: hyphens become underscores. A command given as an agent is a long name."""
        return self.agent / (re.sub(r"[^A-Za-z0-9_.]+", "_", agent)[:100] + ".txt")
