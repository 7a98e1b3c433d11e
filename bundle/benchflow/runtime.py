"""`bf.run()` in all its calling conventions, and the Agent + Environment path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation import Evaluation, EvaluationResult
from benchflow_core.rollout import Rollout, RolloutConfig, RolloutResult
from benchflow_core.settings.models import RolloutSettings
from benchflow_core.settings.parts import Folder

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


class RuntimeConfig(RolloutSettings, use_attribute_docstrings=True):
    """How: every setting of a rollout, by the keyword that `RolloutConfig` has for it."""

    jobs_dir: Folder = Path("jobs")
    job_name: str | None = None
    rollout_name: str | None = None


class Runtime:
    """An environment, an agent, and how to run them."""

    def __init__(self, env: Environment, agent: Agent, config: RuntimeConfig | None = None) -> None:
        self.env, self.agent, self.config = env, agent, config or RuntimeConfig()

    def rollout_config(self) -> RolloutConfig:
        who = {"sandbox": self.env.backend, "agent": self.agent.name, "model": self.agent.model}
        who["reasoning_effort"] = self.agent.reasoning_effort
        how = {name: getattr(self.config, name) for name in self.config.model_fields_set}
        named = {name: value for name, value in who.items() if value is not None}
        return RolloutConfig(**{**how, **named, "task_path": self.env.task_path})

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
    **settings: Any,
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
    **settings: Any,
) -> RolloutResult | EvaluationResult:
    """Run a `RolloutConfig`, an `Agent` in an `Environment`, an agent's name on a task, or a job (`Evaluation`).

    Every setting of a rollout is a keyword beside an agent: `run("oracle", task_path=…, timeout=60)`.
    """
    if isinstance(subject, Evaluation):
        return await subject.run()
    if isinstance(subject, RolloutConfig):
        return await (await Rollout.create(subject)).run()
    agent = subject if isinstance(subject, Agent) else Agent(subject, model)
    if env is None:
        if task_path is None:
            raise ConfigurationError("run() needs a task.", remedy="Pass task_path=… or an Environment.")
        env = Environment.from_task(task_path, sandbox)
    if settings:
        before = {name: getattr(config, name) for name in config.model_fields_set} if config else {}
        config = RuntimeConfig(**{**before, **settings})
    return await Runtime(env, agent, config).execute()
