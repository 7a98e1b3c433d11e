"""What a rollout is asked to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchflow_core.contracts.agents import PermissionPolicy
from benchflow_core.contracts.drivers import BaseUser
from benchflow_core.contracts.scenes import Scene
from benchflow_core.errors import UsageError
from benchflow_core.rollout.learned import Learned
from benchflow_core.world.choice import StateChoice

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
    sandbox_locked_paths: Sequence[str] = ()
    """Paths in the box that no agent can look into, beside those that are closed to them anyway."""
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
    client_methods: Literal["none", "files", "terminal", "all"] = "none"
    """ACP's `fs/*` and `terminal/*`, for agents that work through their client: they act in the box, as the agent."""
    auth: Literal["gateway", "native"] = "gateway"
    """`native`: the agent's login on this host goes into the box and no gateway is used; marked in the result."""
    isolation: str | None = None
    """Verifier isolation; none: the strongest that sandbox and task allow."""
    contested: Literal["clean", "as-left", "unscored"] = "clean"
    """Which score counts where the readings of a state differ and no evidence settles it."""
    certificates: bool = True
    """May the task's reference solution be run to settle such a score?"""
    verify: bool = True
    driver: str | None = None
    driver_params: Mapping[str, Any] = field(default_factory=dict)
    allow_substitute: bool = False
    """Run on another file system than the task's image where the sandbox cannot have it; recorded in the result."""
    allow_env: Sequence[str] = ()
    """Host variables the task may read."""
    base_image_override: str | None = None
    context_root: str | None = None
    """The folder a task's Dockerfile copies from, instead of its own: a repository that tasks share files of."""
    uploads: Mapping[str, str] = field(default_factory=dict)
    """Host path to path in the box, before the agent starts."""
    pre_agent_hooks: Sequence[Callable[[Any], Awaitable[None]]] = ()
    """Awaited with the sandbox, in order, before the agent starts."""
    user: BaseUser | None = None
    """A simulated user that decides the prompts, instead of scenes. Python only."""
    max_user_rounds: int = 5
    user_timeout: float = 600.0
    """Seconds that the simulated user may take for an answer; they are not the agent's."""
    oracle_access: bool = False
    """The simulated user is told the reference solution."""
    skill_mode: Literal["no-skill", "with-skill", "self-gen"] | None = None
    skills_dir: str | None = None
    services: Sequence[str] = ()
    """Services of the environment plane that run beside the agent."""
    environment_manifest: str | None = None
    state: StateChoice | None = None
    """Only these services of the environment; none: all of them."""
    usage_tracking: Literal["auto", "required", "off"] = "auto"
    """`required`: an agent whose tokens nobody counts is refused, and a rollout whose count is not whole has failed."""
    gateway: str | None = None
    """Which gateway carries the models; none: the best-ranked that can."""
    gateway_options: Mapping[str, str] = field(default_factory=dict)
    helper_models: Literal["same", "own", "refuse"] = "same"
    """Who answers when an agent asks a model that its plugin names as a helper: the rollout's own model, the helper
    itself, or nobody."""
    max_rollout_tokens: int | None = None
    """Tokens that each agent of a rollout may use; the gateway refuses what comes after."""
    max_rollout_cost: float | None = None
    """In US dollars, likewise; needs the model's prices."""
    record: bool = False
    """Keep every model exchange as it crossed the wire, for `replay`."""
    replay: Path | None = None
    """A job or rollout made with `record`: its answers are served again, and where they end the model is asked."""
    arm: str | None = None
    """Which cell of a job's matrix this is."""
    source_provenance: Mapping[str, Any] | None = None
    """Where the task was fetched from."""
    dataset: Mapping[str, str] | None = None
    """`name` and `version` of the registry entry the task came from."""
    keep_state: Literal["none", "failed", "all"] = "none"
    """Keep the file system as the agent left it: of no rollout, of those that did not pass, or of all."""

    def __post_init__(self, environment: str | None) -> None:
        self.sandbox = self.sandbox or environment
        self.agent_idle_timeout = self.agent_idle_timeout or None
        for name in ("timeout", "agent_idle_timeout", "sandbox_setup_timeout", "user_timeout"):
            seconds = getattr(self, name)
            if seconds is not None and not 0 < seconds < float("inf"):
                raise UsageError(f"{name} = {seconds:g}: expected a number of seconds above 0.")


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
    order: int = 0
    """Its place in the job's order."""
    seed: int | None = None
    """What the job's order was drawn from."""
    learner: Learned | None = None
    """What the job's earlier rollouts learned, where they learn from each other."""

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
