"""The result of a rollout, and how an outcome is told from it."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any

from benchflow_core.contracts.common import Usage
from benchflow_core.contracts.outcomes import Outcome, outcome_of
from benchflow_core.quick import dataclass
from benchflow_core.results.models import Result, fields_of
from benchflow_core.results.numbers import without_absurd

__all__ = ["RESULT_VERSION", "Outcome", "RolloutResult", "outcome_of"]

RESULT_VERSION = "1.0"


@dataclass
class RolloutResult:
    """What `result.json` holds, and what Python callers get."""

    task_name: str
    rollout_name: str
    agent: str
    model: str | None
    sandbox: str
    rewards: dict[str, float] | None = None
    """`None`: unscored, a loss of coverage, never a zero."""
    error: str | None = None
    error_info: dict[str, Any] | None = None
    verifier_error: str | None = None
    verifier_error_info: dict[str, Any] | None = None
    n_tool_calls: int = 0
    n_prompts: int = 0
    usage: Usage = field(default_factory=Usage)
    usage_details: dict[str, Any] = field(default_factory=dict)
    started_at: str = ""
    finished_at: str = ""
    timing: dict[str, float] = field(default_factory=dict)
    isolation: str | None = None
    findings: list[dict[str, Any]] = field(default_factory=list)
    verification: dict[str, Any] = field(default_factory=dict)
    """How the isolation policy came to the score: readings, whether they differ, and on which changes it depends."""
    notices: list[str] = field(default_factory=list)
    tests: list[dict[str, Any]] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    """What a reader of the score must know: `agent-timeout`, `nothing-left-to-verify` …"""
    step_results: list[dict[str, Any]] = field(default_factory=list)
    loop: dict[str, Any] | None = None
    """What the driver reports: rounds, their rewards and tokens, why it stopped."""
    image_fidelity: str = "exact"
    sandbox_id: str | None = None
    scenes: list[dict[str, Any]] = field(default_factory=list)
    roles: dict[str, dict[str, Any]] = field(default_factory=dict)
    task_digest: str = ""
    source: dict[str, Any] | None = None
    dataset_name: str | None = None
    dataset_version: str | None = None
    plugins: list[dict[str, str]] = field(default_factory=list)
    core_version: str = ""
    attempt: int = 1
    trial: int = 1
    job_name: str = ""
    arm: str | None = None
    """The cell of the job's matrix."""
    features: dict[str, Any] = field(default_factory=dict)
    """The keys of `result.json` that features wrote; each is also an attribute."""
    rollout_dir: Path | None = None

    def __getattr__(self, name: str) -> Any:
        features = self.__dict__.get("features", {})
        if name in features:
            return features[name]
        raise AttributeError(f"a rollout's result has no {name!r}")

    @property
    def outcome(self) -> Outcome:
        return outcome_of({"rewards": self.rewards, "verifier_error": self.verifier_error})

    @property
    def reward(self) -> float | None:
        return (self.rewards or {}).get("reward")

    @property
    def trajectory(self) -> list[dict[str, Any]]:
        """Read from disk on demand: a result in memory stays small."""
        from benchflow_core.results.files import read_jsonl
        from benchflow_core.results.layout import RolloutDir

        return list(read_jsonl(RolloutDir(self.rollout_dir).trajectory)) if self.rollout_dir else []

    @property
    def agent_result(self) -> dict[str, Any]:
        """What the agents did and used, as `result.json` says it."""
        usage = self.usage
        return {
            "n_tool_calls": self.n_tool_calls,
            **{name: value for name, value in self.features.items() if name.startswith("n_")},
            "n_prompts": self.n_prompts,
            "n_input_tokens": usage.input_tokens,
            "n_output_tokens": usage.output_tokens,
            "n_cache_read_tokens": usage.cache_read_tokens,
            "n_cache_creation_tokens": usage.cache_write_tokens,
            "total_tokens": _total(usage),
            "cost_usd": usage.cost_usd,
            "usage_source": usage.source,
            "usage_details": self.usage_details,
        }

    def to_json(self) -> dict[str, Any]:
        """The fields of `result.json`. No top-level reward, total_tokens or status: each lives in one place."""
        usage = self.usage
        derived = {
            "schema_version": RESULT_VERSION,
            "agent_name": self.agent,
            "final_metrics": {
                "total_prompt_tokens": usage.input_tokens,
                "total_completion_tokens": usage.output_tokens,
                "total_cost_usd": usage.cost_usd,
            },
            "error_category": (self.error_info or {}).get("code"),
            "verifier_error_category": (self.verifier_error_info or {}).get("code"),
            "verifier_isolation": self.isolation,
            "verification": self.verification or None,
        }
        fields: dict[str, Any] = {n: derived[n] if n in derived else getattr(self, n) for n in _WRITTEN}
        if self.dataset_name:
            fields |= {"dataset_name": self.dataset_name, "dataset_version": self.dataset_version}
        fields |= self.features
        written: dict[str, Any] = without_absurd(fields)
        return written


_NOT_ALWAYS = ("dataset_name", "dataset_version", "verdict", "settlement")
_OF_FEATURES = ("env_hash", "n_skill_invocations", "skill_mode", "world")
_WRITTEN = [name for name in fields_of(Result) if name not in (*_NOT_ALWAYS, *_OF_FEATURES)]


def _total(usage: Usage) -> int | None:
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)
