"""Features: what takes part in a rollout without being its agent, sandbox or verifier.

A feature plans before anything starts, mostly by returning data. While the rollout lives it enters and leaves its
phases as async context managers: leaving happens in reverse order, also where a later feature failed on entering.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from benchflow_core.contracts.common import CheckFn, Layer, McpServer, Runtime, no_checks
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.agents import AuthOption
    from benchflow_core.contracts.core import LoadedPlugin
    from benchflow_core.contracts.sandboxes import HostEndpoint, ImageRef, ImageRequest, Sandbox, Snapshot
    from benchflow_core.contracts.scenes import Role, Scene
    from benchflow_core.contracts.tasks import Step, Task

__all__ = [
    "FeatureBox",
    "FeatureJob",
    "FeaturePlan",
    "FeatureRun",
    "FeatureSpec",
    "FinishedRollout",
    "PlanView",
    "RunView",
]

T = TypeVar("T")


def _not_by_itself(task: Task) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """A feature. It takes part where one of its settings is given, or where `applies` says that the task asks for it.

    Example::

        @hookimpl
        def benchflow_feature() -> FeatureSpec:
            return FeatureSpec(summary="a clock that agents can read", settings="my_clock.settings:ClockSettings",
                               plan="my_clock.clock:plan")
    """

    summary: str
    plan: str = ""
    """`package.module:function`: (the feature's settings, `PlanView`) to a `FeaturePlan`, or to None where there is
    nothing to do. Pure: it refuses what cannot work, and starts nothing."""
    settings: str = ""
    """`package.module:Model`, a pydantic model: each field is a key of job files, an option and a keyword in Python."""
    applies: Callable[[Task], bool] = _not_by_itself
    """Whether a task asks for the feature without a setting. Cheap: every task is looked at."""
    before: tuple[str, ...] = ()
    """Features that this one is entered before, and left after. Names without a plugin are ignored."""
    after: tuple[str, ...] = ()
    """Features that this one is entered after, and left before. Names without a plugin are ignored."""
    job: str = ""
    """`package.module:Class`, a `FeatureJob`."""
    isolation: Mapping[str, str] = field(default_factory=dict)
    """Verifier policies that it brings, the strongest first: name to `package.module:Policy`."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Its own keys in `result`, `lock` and `summary`; those in `config` are written at the start, from the result's.
    Two features that claim one key are both refused."""
    folder: str = ""
    """Where `save` writes, below a rollout's folder; that it is there tells that something was saved."""
    drift: str = ""
    """`package.module:function`: (a `lock.json`, an object with `mentioned(kind, None)` and `digest_of(folder)`, the
    user's environment) to a line for each thing that is not the same any more."""
    check: CheckFn = no_checks


class PlanView(Protocol):
    """What a feature may look at while it plans."""

    @property
    def task(self) -> Task: ...

    @property
    def digest(self) -> str:
        """The digest of the task's folder."""

    @property
    def scenes(self) -> Sequence[Scene]: ...

    @property
    def roles(self) -> Mapping[str, Role]: ...

    @property
    def agents(self) -> Mapping[str, LoadedPlugin]:
        """By the name that the user gave the agent; the spec of each is an `AgentSpec`."""

    @property
    def sandbox(self) -> LoadedPlugin: ...

    @property
    def capabilities(self) -> frozenset[str]: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Every setting of the rollout by its name, read only."""

    @property
    def image(self) -> ImageRequest:
        """What the task's box is made from."""

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of the user, `.env` included."""

    def digest_of(self, folder: Path) -> str:
        """The digest of any folder, by the rule for tasks."""

    def plugin(self, kind: str, name: str) -> LoadedPlugin: ...

    def plugins(self, kind: str) -> Sequence[LoadedPlugin]:
        """Every plugin of a kind that works."""

    def mentioned(self, kind: str, text: str | None) -> Sequence[LoadedPlugin]:
        """Those with a name or a program that a text has; the others are not imported. Without a text, all."""


@dataclass(frozen=True, kw_only=True)
class FeaturePlan:
    """What a feature adds to the plan of a rollout. It is shared by all trials of a task; subclasses add fields."""

    notices: tuple[str, ...] = ()
    scenes: tuple[Scene, ...] | None = None
    """In place of those that were asked for."""
    image: str | None = None
    """The image of a task that names none."""
    layers: tuple[Layer, ...] = ()
    runtimes: tuple[Runtime, ...] = ()
    mcp_servers: tuple[McpServer, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for agents and for the verifier."""
    note: str = ""
    """What stands behind the task's instruction in prompts."""
    homes: Mapping[str, str] = field(default_factory=dict)
    """Role to the name of a folder below the user's home that is its own home, hidden from the other roles."""
    auth: Mapping[str, AuthOption] = field(default_factory=dict)
    """Agent to the login that it brings itself: no gateway stands between it and its model."""
    ports: tuple[int, ...] = ()
    """Ports of the agent's box that are not the agent's."""
    taken_hooks: tuple[Any, ...] = ()
    """Entries of `pre_agent_hooks` that the feature acts upon itself."""
    plugins: tuple[LoadedPlugin, ...] = ()
    """Plugins that take part, for the stamps in results."""
    host_only: str = ""
    """Why no executor can run it; empty where one can."""

    def build(self, request: ImageRequest, folder: Path) -> ImageRequest:
        """Return the image request that is used instead; `folder` is private to the job."""
        return request

    def open(self, run: RunView) -> FeatureRun:
        """Return the feature's part of one rollout."""
        return FeatureRun()


class FeatureBox(Protocol):
    """A box that a feature enters: the agent's; in `FeatureRun.verifier` the verifier's."""

    @property
    def sandbox(self) -> Sandbox: ...

    @property
    def workdir(self) -> str: ...

    @property
    def user(self) -> str | None:
        """The user that agents run as; none: the image's."""

    @property
    def home(self) -> str:
        """That user's home."""

    @property
    def image(self) -> ImageRef:
        """What the agent's box was started from."""

    @property
    def agents(self) -> bool:
        """Agents worked in this box; False: a box of the verifier's own."""

    def home_of(self, role: str) -> str:
        """The home of a role: the user's, or one of its own."""

    async def show(self, endpoint: HostEndpoint, port: int | None = None) -> str:
        """Show a server of the host inside the box, until the lifetime is left; return its URL there."""


class RunView(Protocol):
    """What a feature has of its rollout."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Every setting of the rollout by its name, read only."""

    @property
    def dir(self) -> Path:
        """The rollout's folder of results."""

    @property
    def work_dir(self) -> Path:
        """A folder private to the job; it goes with it."""

    @property
    def cache_dir(self) -> Path: ...

    @property
    def saved(self) -> Path | None:
        """The folder that `FeatureRun.save` of an earlier rollout wrote to, where this one goes on from it."""

    @property
    def step(self) -> Step | None: ...

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of the user."""

    @property
    def allowed_env(self) -> Mapping[str, str]:
        """Variables of it that the user lets the task read."""

    def event(self, kind: str, data: Mapping[str, Any], *, role: str | None = None) -> None:
        """Write to the log; with a role, at the turn that it is in."""

    def notice(self, text: str) -> None: ...

    def flag(self, name: str) -> None:
        """Mark the result with something that a reader of the score must know."""

    def finding(self, code: str, path: str, why: str) -> None: ...

    def secret(self, *values: str) -> None:
        """Hide these values in everything that is written from now on."""

    def redact(self, folder: Path) -> None:
        """Take known secrets out of the files of a folder."""

    @property
    def outcome(self) -> str | None:
        """`passed`, `failed`, `errored`, `verifier_errored` or `cancelled`, once it is known."""

    async def image(self, request: ImageRequest, layers: Sequence[Layer], runtimes: Sequence[Runtime]) -> ImageRef:
        """Prepare an image for another box, once per job."""

    async def start_box(self, image: ImageRef, purpose: str, **start: Any) -> Sandbox:
        """Start another box of the rollout's sandbox; `start` are fields of its `StartRequest`."""

    async def forget(self, snapshot: Snapshot) -> None:
        """Delete a snapshot of a box of this rollout's sandbox."""

    async def once_per_job(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        """Return what the first rollout of the job made under this key; closed with the job if it has `teardown`."""

    async def ask_model(self, who: str, model: str | None, talk: Sequence[tuple[str, str]], system: str) -> str:
        """Ask a model through the gateway, counted under the name `who`; without a name, the rollout's own."""


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def _no_variables() -> AsyncIterator[Mapping[str, str]]:
    yield {}


class FeatureRun:
    """A feature's part of one rollout: six lifetimes, each an async context manager, and what it tells afterwards.

    Every method does nothing by default, so that a later one breaks nobody. A feature that must undo something writes
    `try … finally`: whatever ends a phase passes through.
    """

    def box(self, box: FeatureBox) -> AbstractAsyncContextManager[None]:
        """From the task's set-up until the agent's box is removed; the verifier works inside it."""
        return _nothing()

    def agent(self, box: FeatureBox) -> AbstractAsyncContextManager[None]:
        """From the agent's user and files until it is done, once per step: no verifier sees what it brings."""
        return _nothing()

    def turns(self, box: FeatureBox) -> AbstractAsyncContextManager[None]:
        """The agent's time. An error raised in the managed block ends it."""
        return _nothing()

    def session(self, box: FeatureBox, role: str) -> AbstractAsyncContextManager[Mapping[str, str]]:
        """The life of one agent process; yields variables for it."""
        return _no_variables()

    def verification(self, box: FeatureBox, folder: Path) -> AbstractAsyncContextManager[Snapshot | None]:
        """One verification, also one between turns, entered before anything is captured. `folder` keeps its results.

        It may yield a snapshot that it took of the box, so that nobody takes another.
        """
        return _nothing()

    def verifier(self, box: FeatureBox) -> AbstractAsyncContextManager[Mapping[str, str]]:
        """One run of the verifier, in its box; yields variables for it."""
        return _no_variables()

    def update(self, role: str, turn: int | None, kind: str, data: Mapping[str, Any]) -> None:
        """See one update of an agent's session. It must not block."""

    async def save(self, folder: Path) -> None:
        """Write what another rollout would go on from, below a folder of the name that the spec gives."""

    def result(self) -> Mapping[str, Any]:
        """Return its keys of `result.json`."""
        return {}

    def lock(self) -> Mapping[str, Any]:
        """Return its keys of `lock.json`."""
        return {}


@dataclass(frozen=True, slots=True)
class FinishedRollout:
    """A rollout of a job that came to its end."""

    name: str
    task: str
    folder: Path
    reward: float | None


class FeatureJob:
    """A feature's part of a job."""

    sequential = False
    """One rollout after the other, in the order of the plan."""

    def __init__(self, settings: Mapping[str, Any], job_dir: Path, earlier: Sequence[FinishedRollout]) -> None:
        """`earlier`: rollouts that ended before a resumed job was stopped."""

    def next(self) -> Mapping[str, Any]:
        """Return settings that differ for the rollout that starts now."""
        return {}

    def finished(self, done: FinishedRollout) -> Mapping[str, Any] | None:
        """Take note of a rollout that ended. What it returns is kept in the job's journal."""

    def summary(self) -> Mapping[str, Any]:
        """Return its keys of `summary.json`."""
        return {}
