"""`bf.run()` in all its calling conventions, and the Agent + Environment path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation import Evaluation, EvaluationResult
from benchflow_core.rollout import Rollout, RolloutConfig, RolloutResult

__all__ = ["Agent", "Environment", "Runtime", "RuntimeConfig", "RuntimeResult", "run"]

RuntimeResult = RolloutResult


@dataclass(frozen=True)
class Agent:
    """Who: an agent and its model."""

    name: str
    model: str | None = None
    reasoning_effort: str | None = None


@dataclass(frozen=True)
class Environment:
    """Where: a task and the sandbox it runs in."""

    task_path: Path
    backend: str | None = None

    @classmethod
    def from_task(cls, task_path: str | Path, backend: str | None = None, sandbox: str | None = None) -> Environment:
        return cls(Path(task_path), sandbox or backend)


@dataclass(frozen=True)
class RuntimeConfig:
    """How."""

    sandbox_user: str | None = None
    sandbox_setup_timeout: float = 120.0
    timeout: float | None = None
    jobs_dir: str | Path = "jobs"
    rollout_name: str | None = None
    base_image_override: str | None = None
    context_root: str | None = None
    pre_agent_hooks: Sequence[Callable[[Any], Awaitable[None]]] = ()
    allow_substitute: bool = False
    skills_dir: str | None = None
    skill_mode: Literal["no-skill", "with-skill", "self-gen"] | None = None
    usage_tracking: Literal["auto", "required", "off"] = "auto"


class Runtime:
    """An environment, an agent, and how to run them."""

    def __init__(self, env: Environment, agent: Agent, config: RuntimeConfig | None = None) -> None:
        self.env, self.agent, self.config = env, agent, config or RuntimeConfig()

    def rollout_config(self) -> RolloutConfig:
        return RolloutConfig(
            task_path=self.env.task_path,
            sandbox=self.env.backend,
            agent=self.agent.name,
            model=self.agent.model,
            reasoning_effort=self.agent.reasoning_effort,
            **vars(self.config),
        )

    async def execute(self) -> RolloutResult:
        return await run(self.rollout_config())


@overload
async def run(subject: Evaluation) -> EvaluationResult: ...


@overload
async def run(
    subject: RolloutConfig | Agent | str,
    env: Environment | None = None,
    config: RuntimeConfig | None = None,
    *,
    task_path: str | Path | None = None,
    model: str | None = None,
    sandbox: str | None = None,
) -> RolloutResult: ...


@overload
async def run(subject: RolloutConfig | Evaluation) -> RolloutResult | EvaluationResult: ...


async def run(
    subject: RolloutConfig | Evaluation | Agent | str,
    env: Environment | None = None,
    config: RuntimeConfig | None = None,
    *,
    task_path: str | Path | None = None,
    model: str | None = None,
    sandbox: str | None = None,
) -> RolloutResult | EvaluationResult:
    """Run a `RolloutConfig`, an `Agent` in an `Environment`, an agent's name on a task, or a job (`Evaluation`)."""
    if isinstance(subject, Evaluation):
        return await subject.run()
    if isinstance(subject, RolloutConfig):
        return await (await Rollout.create(subject)).run()
    agent = subject if isinstance(subject, Agent) else Agent(subject, model)
    if env is None:
        if task_path is None:
            raise ConfigurationError("run() needs a task.", remedy="Pass task_path=… or an Environment.")
        env = Environment.from_task(task_path, sandbox)
    return await Runtime(env, agent, config).execute()
