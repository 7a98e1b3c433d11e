"""What the core does for a command of a package: plugins, tasks, and rollouts phase by phase."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from benchflow_core.contracts.common import Check, LoadedPlugin
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    import click

    from benchflow_core.contracts.common import Layer, Usage
    from benchflow_core.contracts.drivers import TurnRecord
    from benchflow_core.contracts.gateways import Exchange
    from benchflow_core.contracts.results import EvaluationResult
    from benchflow_core.contracts.sandboxes import Sandbox
    from benchflow_core.contracts.tasks import Task

__all__ = [
    "Core",
    "InstalledPlugin",
    "LoadedPlugin",
    "OpenRollout",
    "ResultFiles",
    "RolloutHost",
    "RolloutModels",
    "RolloutOutcome",
    "RolloutPlan",
    "TaskNeeds",
    "TypedJob",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """A plugin that is installed, and whether it works."""

    kind: str
    name: str
    version: str
    distribution: str
    status: Literal["active", "blocked", "failed", "duplicate"]
    reason: str = ""
    """Why it is not active."""
    summary: str = ""
    aliases: tuple[str, ...] = ()
    warnings: tuple[Check, ...] = ()
    """What its author should mend although it works."""
    module: str = ""
    """Where its hooks are; empty where its entry point names no module."""
    requires: tuple[str, ...] = ()
    """The `Requires-Dist` of its distribution."""
    spec: Any = None
    problem: Check | None = None
    """What keeps it from working, by its parts."""


@dataclass(frozen=True, slots=True)
class TaskNeeds:
    """What a task asks for, besides files."""

    required: Mapping[str, str]
    """Capabilities of the sandbox and why; without any one of them it does not run."""
    wanted: Mapping[str, str]
    """Capabilities that it can do without."""
    host_variables: Mapping[str, Sequence[str]]
    """Variables of this host, and the places of the task that read them."""
    required_variables: frozenset[str]
    """Those for which some place has no default."""


class RolloutPlan(Protocol):
    """What a rollout is going to do."""

    @property
    def task(self) -> Task: ...

    @property
    def digest(self) -> str: ...

    @property
    def sandbox(self) -> LoadedPlugin: ...

    @property
    def capabilities(self) -> frozenset[str]: ...

    def layers(self) -> Sequence[Layer]:
        """What is installed into the image for the agents."""


class RolloutOutcome(Protocol):
    """How a rollout ended."""

    rewards: dict[str, float] | None
    error: str | None
    verifier_error: str | None
    findings: list[dict[str, Any]]
    verification: dict[str, Any]

    @property
    def reward(self) -> float | None: ...


class RolloutModels(Protocol):
    """The models of one rollout."""

    def agent_exchanges(self) -> AsyncIterator[Exchange]:
        """Every call of the agent that the gateway recorded so far."""

    async def so_far(self) -> Usage: ...


class OpenRollout(Protocol):
    """One rollout whose phases are called one by one, or all with `run`."""

    @property
    def plan(self) -> RolloutPlan: ...

    @property
    def sandbox(self) -> Sandbox: ...

    @property
    def models(self) -> RolloutModels: ...

    @property
    def seconds(self) -> float:
        """Since it was made."""

    workdir: str
    agent_home: str
    agent_user: str | None

    async def setup(self) -> None: ...

    async def start(self) -> None: ...

    async def install_agent(self) -> None: ...

    async def connect(self) -> None: ...

    async def prompt(self, role: str, text: str | None) -> TurnRecord: ...

    async def run(self) -> RolloutOutcome: ...

    async def cleanup(self) -> RolloutOutcome: ...


class RolloutHost(Protocol):
    """What the rollouts of one command share: a private folder, providers, gateways."""

    @property
    def work_dir(self) -> Path: ...

    async def rollout(self, task: Path, **settings: Any) -> OpenRollout:
        """Plan and check it; nothing is started. `settings` are those of a job file."""

    def kept_box(self, rollout: Path) -> AbstractAsyncContextManager[tuple[Sandbox, str, str]]:
        """Start a box on the files that a rollout left: the box, its working directory, and the name of its sandbox."""


class TypedJob(Protocol):
    """A job as a command line describes it, and its job file; nothing is fetched or started yet."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Every setting by its name."""

    def run(self, more: Callable[[Path], Mapping[str, Any]]) -> tuple[Path, bool]:
        """Run it, and show it as `bench eval create` does; return its folder, and whether everything was scored.

        `more`: what the finished job's JSON document has beside its summary.
        """


class ResultFiles(Protocol):
    """What the core does for a `ResultsReader`: files in their published shape, and how rollouts are counted."""

    def read_result(self, folder: Path) -> dict[str, Any] | None:
        """The `result.json` of a rollout; one that cannot be read is unscored and says so. `None`: it is not ours."""

    def columns(self) -> Sequence[str]:
        """The fields of a result that lists and statistics need."""

    def read_object(self, path: Path) -> dict[str, Any]:
        """A file of JSON that is a mapping, or an empty one where it cannot be read."""

    def read_lines(self, path: Path) -> Iterable[dict[str, Any]]:
        """Lines of JSON one by one; a last one cut short by a kill is left out."""

    def write(self, path: Path, data: bytes) -> None:
        """Replace a file in one step. Raises `ConfigurationError` where that is forbidden."""

    def write_json(self, path: Path, value: Any) -> None:
        """Replace a file of JSON in one step."""

    def hide(self, data: bytes) -> bytes:
        """As `ResultsReader.hide`."""

    def cache_dir(self) -> Path:
        """Where what can be made again is kept."""

    def summarize(
        self,
        name: str,
        results: Iterable[Mapping[str, Any]],
        planned: int | None = None,
        seconds: float = 0.0,
        folder: Path | None = None,
        arms: Mapping[str, int] | None = None,
    ) -> EvaluationResult:
        """Count results, each a `result.json` or a row with its keys. `planned`, also by arm: what was to be run."""

    def default_settings(self) -> Mapping[str, Any]:
        """What `config.json` holds where nothing was asked for."""

    def treatments(self) -> frozenset[str]:
        """The settings that people compare, by their names in `config.json`: jobs differ in them on purpose."""

    def lock_of(self, job: Path) -> AbstractContextManager[None]:
        """Nobody else writes to a job meanwhile. Raises `ConfigurationError` if somebody does already."""

    def is_running(self, job: Path) -> bool:
        """A process works on the job at this moment."""

    def plugins(self, kind: str) -> Sequence[LoadedPlugin]:
        """Every plugin of a kind that works."""


class Core(ResultFiles, Protocol):
    """The core, as `CommandContext.core` gives it."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """As `asyncio.run`; Ctrl-C and SIGTERM tear down what was started."""

    def env(self) -> Mapping[str, str]:
        """The user's environment, the `.env` file included."""

    def install_command(self, distribution: str) -> str:
        """What to type to add a distribution to this environment."""

    def mentioned(self, kind: str, text: str | None) -> Sequence[LoadedPlugin]:
        """Those with a name or a program that a text has; the others are not imported. Without a text, all."""

    def plugin(self, kind: str, name: str) -> LoadedPlugin:
        """The plugin of that name; of agents also those that answer to a pattern. Raises `PluginError`."""

    def agent_for(self, purpose: Literal["reference", "null"]) -> str:
        """The name of the agent that plays the task's solution, or that does nothing."""

    def installed(self, name: str | None = None) -> list[InstalledPlugin]:
        """What `kind:name`, `distribution::name`, a name or a distribution means; without a name, everything."""

    def blocked(self, kind: str) -> str:
        """A remedy for whoever misses a plugin of a kind: what the user blocked."""

    def strict(self) -> bool:
        """Any problem with a plugin is an error."""

    def find_tasks(self, path: Path) -> list[Path]:
        """The folder itself if it is a task, else the tasks in it."""

    def load_task(self, path: Path) -> Task:
        """The task in a folder. Raises `TaskError` naming file and line."""

    def adapter_of(self, path: Path) -> LoadedPlugin:
        """The adapter for the format of a task folder."""

    def needs_of(self, task: Task) -> TaskNeeds: ...

    def isolation_policies(self, plan: RolloutPlan) -> Sequence[str]:
        """The verifier policies that a plan's task and sandbox allow, strongest first."""

    def keep_live_check(self, plan: RolloutPlan, report: Mapping[str, Any]) -> None:
        """Keep what a live check of this very task found here: jobs read its `certified`."""

    def keep_certificate(self, task: Path, report: Mapping[str, Any]) -> None:
        """Keep a certificate beside its task: jobs say when the task is no longer the one it speaks of."""

    def provider_at(self, wire: str, url: str) -> tuple[str, Mapping[str, str]]:
        """A model name of a provider that speaks a wire, and the variables that send it to a server of one's own."""

    def fetch(self, uri: str, ref: str | None = None) -> Path:
        """A local copy of what an installed source serves; nobody writes to it."""

    def job_options(self) -> Sequence[click.Parameter]:
        """The options of `bench eval create`, for a command that runs a job."""

    def job_settings(self, ctx: click.Context) -> dict[str, Any]:
        """What was typed of them, by the names and in the shapes of a job file."""

    def job(self, ctx: click.Context, given: Mapping[str, Any], overrides: Sequence[str] = ()) -> TypedJob:
        """The job of a command with these options: its file, `overrides` in JSON over it, `given` over both."""

    def host(self, env: Mapping[str, str] | None = None) -> AbstractAsyncContextManager[RolloutHost]:
        """Where rollouts run; closing it leaves nothing behind. `env` is set over the user's."""
