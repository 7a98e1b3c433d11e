"""What a driver holds: the rollout seen as an episode of prompts."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.common import Capability
from benchflow_core.contracts.drivers import SoftVerdict, TurnRecord
from benchflow_core.contracts.gateways import ModelEndpoint
from benchflow_core.contracts.sandboxes import AccessView, HostEndpoint, Sandbox
from benchflow_core.contracts.tasks import Task
from benchflow_core.errors import CapabilityMissing, ConfigurationError
from benchflow_core.plugins.dotted import resolve

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["RolloutEpisode"]

_SERVE_APP = "serve(app) is now: async with benchflow_wires.asgi.serve_app(app, …) as endpoint: serve(endpoint)"


class RolloutEpisode:
    """`contracts.drivers.Episode` over a live rollout."""

    def __init__(self, rollout: Rollout, stack: AsyncExitStack) -> None:
        """`stack` closes when the driver is done, and with it what it serves."""
        self._rollout = rollout
        self._stack = stack

    @property
    def task(self) -> Task:
        return self._rollout.plan.task

    @property
    def roles(self) -> Sequence[str]:
        return list(self._rollout.plan.roles)

    @property
    def sandbox(self) -> Sandbox:
        return self._rollout.sandbox

    @property
    def workdir(self) -> str:
        return self._rollout.workdir

    @property
    def user(self) -> str | None:
        return self._rollout.agent_user

    async def prompt(
        self, role: str, text: str | None, *, scene: str = "default", view: AccessView | None = None
    ) -> TurnRecord:
        if view is not None and Capability.ACCESS_VIEW not in self._rollout.plan.capabilities:
            raise CapabilityMissing(f"sandbox '{self._rollout.plan.sandbox.name}' enforces no access views.")
        return await self._rollout.prompt(role, text, scene=scene, view=view)

    async def end_scene(self) -> None:
        await self._rollout.disconnect()

    async def soft_verify(self) -> SoftVerdict:
        return await self._rollout.soft_verify()

    async def serve(self, endpoint: HostEndpoint, *, port: int | None = None) -> str:
        from benchflow_core.gateway.expose import show

        rollout = self._rollout
        if not isinstance(endpoint, HostEndpoint):
            endpoint = await self._serve_app(endpoint)
        url = await show(self._stack, rollout.sandbox, endpoint, port, rollout.image.runtimes)
        rollout.record.event("driver_serves", {"url": url})
        return url

    async def _serve_app(self, app: Callable[..., Awaitable[None]]) -> HostEndpoint:
        """Serve an ASGI application, for drivers written before `serve` took an endpoint."""
        warnings.warn(_SERVE_APP, DeprecationWarning, stacklevel=3)
        serve_app = resolve("benchflow_wires.asgi:serve_app", "a driver that passes an application to serve()")
        server = serve_app(
            app, "the driver's application", lambda why: self.note("driver_app_failed", {"message": why})
        )
        endpoint: HostEndpoint = await self._stack.enter_async_context(server)
        return endpoint

    def reward(
        self, value: float, *, source: str, step: int | None = None, meta: Mapping[str, Any] | None = None
    ) -> None:
        self._rollout.record.reward(value, "process", source, step_index=step, meta=dict(meta or {}))

    def note(self, kind: str, data: Mapping[str, Any]) -> None:
        self._rollout.record.event(kind, data)

    def report(self, data: Mapping[str, Any]) -> None:
        self._rollout.result.loop = dict(data)

    async def model(self, purpose: str) -> ModelEndpoint:
        return await self._rollout.model(purpose)

    async def ask_model(
        self, purpose: str, talk: Sequence[tuple[str, str]], system: str = "", *, max_tokens: int = 2048
    ) -> str:
        from benchflow_core.gateway.talk import ask

        return await ask(await self.model(purpose), talk, system=system, max_tokens=max_tokens)

    async def ask_user(self, method: str, *given: Any) -> Any:
        rollout = self._rollout
        return await rollout.user_deadline.answer(method, getattr(rollout.user, method)(*given))

    async def solution(self) -> str | None:
        rollout = self._rollout
        if not rollout.config.oracle_access:
            raise ConfigurationError("oracle access was not granted to this rollout.", remedy="Set oracle_access.")
        solution = (rollout.step.solution if rollout.step else None) or rollout.plan.task.solution
        return (solution.dir / solution.script).read_text("utf-8", "replace") if solution else None
