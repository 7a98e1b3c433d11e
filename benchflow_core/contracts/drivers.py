"""Drivers: decide the next prompt. Scenes, simulated users, loops and foreign environments are all drivers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from benchflow_core.contracts.agents import PromptOutcome
from benchflow_core.contracts.common import CheckFn, Usage, no_checks
from benchflow_core.contracts.tasks import Rewards, Task
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.gateways import ModelEndpoint
    from benchflow_core.contracts.sandboxes import AccessView, HostEndpoint, Sandbox

__all__ = ["BaseUser", "DriverSpec", "Episode", "RoundResult", "SoftVerdict", "TurnRecord"]


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One finished turn, as a driver sees it."""

    scene: str
    role: str
    turn: int
    prompt: str
    outcome: PromptOutcome
    events: Sequence[Mapping[str, Any]]
    """The turn's slice of the event log."""
    n_tool_calls: int = 0
    usage: Usage | None = None
    """The gateway's count, else what the agent itself reports."""


@dataclass(frozen=True, slots=True)
class SoftVerdict:
    """Verification between turns: it informs, it never scores."""

    rewards: Rewards | None
    output: str = ""
    error: str | None = None
    tests: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


class Episode(Protocol):
    """What a driver works with."""

    @property
    def task(self) -> Task: ...

    @property
    def roles(self) -> Sequence[str]: ...

    @property
    def sandbox(self) -> Sandbox: ...

    @property
    def workdir(self) -> str:
        """Where the agents work in the box."""

    @property
    def user(self) -> str | None:
        """The user they run as; none: the box's own."""

    async def prompt(
        self, role: str, text: str | None, *, scene: str = "default", view: AccessView | None = None
    ) -> TurnRecord:
        """Send a prompt (`None`: the task's instruction) to a role's live session, opening it if need be.

        `view` narrows what the role's process may see; a session that was opened with another one is opened anew.
        """

    async def end_scene(self) -> None:
        """Kill every agent process: only the file system carries over."""

    async def soft_verify(self) -> SoftVerdict: ...

    async def serve(self, endpoint: HostEndpoint, *, port: int | None = None) -> str:
        """Show a server of the driver's on this host at a port of the box's loopback, and return its URL there.

        It is shown until `finish` is done. `benchflow_wires.asgi` starts one for an ASGI application.
        """

    def reward(
        self, value: float, *, source: str, step: int | None = None, meta: Mapping[str, Any] | None = None
    ) -> None:
        """Record a process reward."""

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        """One line of the driver's own for the event log."""

    def report(self, data: Mapping[str, Any]) -> None:
        """How it went, for the result: `loop` in `result.json`. The last report counts."""

    async def model(self, purpose: str) -> ModelEndpoint:
        """A model through the gateway for a simulated user or a judge."""

    async def ask_model(
        self, purpose: str, talk: Sequence[tuple[str, str]], system: str = "", *, max_tokens: int = 2048
    ) -> str:
        """Return that model's answer to a talk of `("user" | "assistant", text)`, over whatever wire it has."""

    async def ask_user(self, method: str, *given: Any) -> Any:
        """Call a method of the rollout's simulated user, within its own time, which is not the agent's."""

    async def solution(self) -> str | None:
        """The reference solution's script, where the config grants oracle access."""


@dataclass(frozen=True)
class RoundResult:
    """What a user knows of a round: what the agent did, and what the tests say. It is never the score."""

    round: int
    trajectory: Sequence[Mapping[str, Any]] = ()
    rewards: Mapping[str, float] | None = None
    verifier_output: str = ""
    verifier_error: str | None = None
    n_tool_calls: int = 0
    scene: str = "default"
    role: str = "agent"
    handoff_from: str | None = None
    handoff_to: str | None = None
    tests: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


class BaseUser(ABC):
    """A simulated user. Override `run`; everything else has a sensible default."""

    needs_model: bool = False
    """It asks a model: whether that can be reached is checked before anything starts."""
    model_name: str | None = None
    """The model that it asks; `None`: the rollout's."""

    async def setup(self, instruction: str, solution: str | None = None) -> None:
        """Prepare for the first round. `solution`: the reference solution's script, with `oracle_access=True` only."""

    @abstractmethod
    async def run(self, round: int, instruction: str, round_result: RoundResult | None = None) -> str | None:
        """Return the next prompt, or `None` to stop. Rounds count from 0; the first has no result yet."""

    async def on_permission(self, request: Mapping[str, Any]) -> str | None:
        """Answer an agent's question whether it may do something, with the id of one of `request["options"]`.

        `None`: the policy of the config decides.
        """
        return None

    async def on_ask(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the content of the answer to an agent's question for more information, or `None` to decline."""
        return None

    def attach(self, episode: Episode) -> None:
        """Take the episode, before `setup`: a user may need a model or the box."""


def _refuse_nothing(_: Mapping[str, Any]) -> None:
    return None


@dataclass(frozen=True, slots=True)
class DriverSpec:
    """A driver.

    Example::

        @hookimpl
        def benchflow_driver() -> DriverSpec:
            async def drive(episode: Episode, params: Mapping[str, Any]) -> None:
                await episode.prompt("agent", None)
                while (await episode.soft_verify()).rewards != {"reward": 1.0}:
                    await episode.prompt("agent", "The tests still fail. Try again.")
            return DriverSpec(summary="retry until the tests pass", drive=drive)
    """

    summary: str
    drive: Callable[[Episode, Mapping[str, Any]], Awaitable[None]]
    params: Mapping[str, Any] = field(default_factory=dict)
    """Names and defaults of what `name:k=3,feedback=names` may set."""
    refuse: Callable[[Mapping[str, Any]], None] = _refuse_nothing
    """Raises `ConfigurationError` for parameters that cannot be meant. Asked while planning, before anything starts;
    `params["steps"]` are the turns of the config (`role`, `prompt`), as `drive` gets them."""
    needs: frozenset[str] = frozenset()
    """Capabilities the sandbox must declare."""
    writable: tuple[str, ...] = ()
    """Folders of the working directory that a role with `read_only` may write to all the same."""
    finish: Callable[[Episode, Mapping[str, Any]], Awaitable[None]] | None = None
    """Called with the same episode after `drive`, also where the agent failed or used up its time, within the time of
    the task's verifier. The box is as the agent left it, and what was served is still there. Not called for a rollout
    that is cancelled or lost."""
    default: bool = False
    """The driver of a rollout that names none. At most one installed."""
    user: Callable[[Mapping[str, str | None]], BaseUser] | None = None
    """Makes the simulated user that a task describes (`model`, `persona`). The driver that has it plays every rollout
    with a user (`Episode.ask_user`); `drive` gets `max_rounds` and `oracle_access`. At most one installed."""
    check: CheckFn = no_checks
