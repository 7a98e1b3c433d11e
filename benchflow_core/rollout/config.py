"""What a rollout is asked to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any

from benchflow_core.contracts.agents import PermissionPolicy
from benchflow_core.drive.scenes import Scene

__all__ = ["RolloutConfig", "RolloutSettings"]


@dataclass(kw_only=True)
class RolloutSettings:
    """Everything that is the same for all rollouts of a job. Command line, YAML and Python use these names."""

    scenes: Sequence[Scene] = ()
    """Who speaks in which order, in one shared box. `agent`, `model` and `prompts` are the short form."""
    environment: InitVar[str | None] = None
    """The older word for `sandbox`."""
    sandbox: str | None = None
    """Which sandbox; none: the best-ranked that answers."""
    sandbox_options: Mapping[str, str] = field(default_factory=dict)
    sandbox_user: str | None = None
    """The user agents run as; none: the task's, else the image's."""
    sandbox_setup_timeout: float = 120.0
    agent: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None
    prompts: Sequence[str | None] | None = None
    agent_env: Mapping[str, str] = field(default_factory=dict)
    agent_options: Mapping[str, str] = field(default_factory=dict)
    agent_idle_timeout: float | None = 600.0
    timeout: float | None = None
    """Seconds for all of the agent's turns; none: the task's own limit."""
    permissions: PermissionPolicy = "allow"
    isolation: str | None = None
    """Verifier isolation; none: the strongest that sandbox and task allow."""
    verify: bool = True
    driver: str | None = None
    driver_params: Mapping[str, Any] = field(default_factory=dict)
    allow_substitute: bool = False
    """Run on another file system than the task's image where the sandbox cannot have it; recorded in the result."""
    allow_env: Sequence[str] = ()
    """Host variables the task may read."""
    base_image_override: str | None = None
    uploads: Mapping[str, str] = field(default_factory=dict)
    """Host path to path in the box, before the agent starts."""
    pre_agent_hooks: Sequence[Callable[[Any], Awaitable[None]]] = ()
    """Awaited with the sandbox, in order, before the agent starts."""
    source_provenance: Mapping[str, Any] | None = None
    dataset: Mapping[str, str] | None = None

    def __post_init__(self, environment: str | None) -> None:
        self.sandbox = self.sandbox or environment


# The dataclass took the default of `environment`; reading it gives the sandbox, under its older name.
RolloutSettings.environment = property(lambda self: self.sandbox)  # type: ignore[attr-defined]


@dataclass
class RolloutConfig(RolloutSettings):
    """One rollout: the settings, the task, and where it is written."""

    task_path: Path
    jobs_dir: Path = Path("jobs")
    job_name: str | None = None
    rollout_name: str | None = None
    attempt: int = 1
    trial: int = 1

    def __post_init__(self, environment: str | None) -> None:
        super().__post_init__(environment)
        self.task_path = Path(self.task_path)
        self.jobs_dir = Path(self.jobs_dir)

    def effective_scenes(self, default_agent: Callable[[], str]) -> list[Scene]:
        """The scenes, or the short form as one."""
        if self.scenes:
            return list(self.scenes)
        single = Scene.single(
            agent=self.agent or default_agent(),
            model=self.model,
            reasoning_effort=self.reasoning_effort,
            prompts=self.prompts,
        )
        return [single]
