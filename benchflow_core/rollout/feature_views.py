"""What features see of a rollout: its box, its settings and the written side of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from benchflow_core.contracts.common import Layer, Runtime
from benchflow_core.contracts.sandboxes import HostEndpoint, ImageRef, ImageRequest, Sandbox, Snapshot
from benchflow_core.contracts.tasks import Step
from benchflow_core.errors import ErrorKind
from benchflow_core.gateway.expose import show
from benchflow_core.plugins import Loaded
from benchflow_core.rollout import prepare

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout
    from benchflow_core.settings.models import RolloutSettings

__all__ = ["BoxView", "RolloutRunView", "settings_view"]

T = TypeVar("T")


def settings_view(config: RolloutSettings) -> Mapping[str, Any]:
    """Return every setting of a rollout, or of a job, by its name, read only."""
    return MappingProxyType(vars(config))


class BoxView:
    """A box as features see it: the agent's, or one of the verifier's own. It is looked at anew each time."""

    def __init__(
        self,
        rollout: Rollout,
        sandbox: Sandbox | None = None,
        *,
        workdir: str | None = None,
        stack: AsyncExitStack | None = None,
    ) -> None:
        self._rollout, self._sandbox, self._workdir, self._stack = rollout, sandbox, workdir, stack

    def within(self, stack: AsyncExitStack) -> BoxView:
        """The same box, in a lifetime that this stack ends: what is shown in the box goes with it."""
        return BoxView(self._rollout, self._sandbox, workdir=self._workdir, stack=stack)

    @property
    def sandbox(self) -> Sandbox:
        return self._sandbox or self._rollout.sandbox

    @property
    def image(self) -> ImageRef:
        return self._rollout.image

    @property
    def agents(self) -> bool:
        return self.sandbox is self._rollout.sandbox

    @property
    def workdir(self) -> str:
        return self._workdir or self._rollout.workdir

    @property
    def user(self) -> str | None:
        return self._rollout.agent_user

    @property
    def home(self) -> str:
        return self._rollout.agent_home

    def home_of(self, role: str) -> str:
        return self._rollout.home_of(role)

    async def show(self, endpoint: HostEndpoint, port: int | None = None) -> str:
        assert self._stack is not None
        return await show(self._stack, self.sandbox, endpoint, port, self._rollout.image.runtimes)


class RolloutRunView:
    """What a feature has of its rollout (`contracts.features.RunView`)."""

    def __init__(self, rollout: Rollout, feature: Loaded) -> None:
        self._rollout, self._feature = rollout, feature
        self.settings = settings_view(rollout.config)

    @property
    def dir(self) -> Path:
        return self._rollout.dir

    @property
    def work_dir(self) -> Path:
        return self._rollout.host.work_dir

    @property
    def cache_dir(self) -> Path:
        return self._rollout.host.cache

    @property
    def saved(self) -> Path | None:
        return self._rollout.goes_on_from

    @property
    def step(self) -> Step | None:
        return self._rollout.step

    @property
    def env(self) -> Mapping[str, str]:
        return self._rollout.host.env

    @property
    def allowed_env(self) -> Mapping[str, str]:
        return self._rollout.host_vars

    @property
    def outcome(self) -> str | None:
        rollout = self._rollout
        if rollout.error is not None and rollout.error.kind is ErrorKind.CANCELLED:
            return "cancelled"
        return rollout.result.outcome

    def event(self, kind: str, data: Mapping[str, Any], *, role: str | None = None) -> None:
        place = {"role": role, **self._rollout.sessions.place_of(role)} if role else {}
        self._rollout.record.event(kind, data, **place)

    def notice(self, text: str) -> None:
        self._rollout.notice(text)

    def flag(self, name: str) -> None:
        flags = self._rollout.result.flags
        if name not in flags:
            flags.append(name)

    def finding(self, code: str, path: str, why: str) -> None:
        finding = {"code": code, "path": path, "action": "noted", "why": why}
        if finding not in self._rollout.result.findings:
            self._rollout.result.findings.append(finding)

    def secret(self, *values: str) -> None:
        self._rollout.host.redactor.add(values)

    def redact(self, folder: Path) -> None:
        self._rollout.host.redactor.tree(folder)

    async def image(self, request: ImageRequest, layers: Sequence[Layer], runtimes: Sequence[Runtime]) -> ImageRef:
        rollout = self._rollout
        sandbox, options = rollout.plan.sandbox, rollout.config.sandbox_options
        return await rollout.host.image(sandbox, options, request, layers, runtimes)

    async def start_box(self, image: ImageRef, purpose: str, **start: Any) -> Sandbox:
        own = prepare.start_request(self._rollout)
        labels = {**own.labels, "purpose": purpose}
        start["env"] = {**own.env, **start.get("env", {})}
        request = replace(own, name=f"{own.name}/{purpose}", labels=labels, **start)
        return await self._rollout.provider.start(image, request)

    async def forget(self, snapshot: Snapshot) -> None:
        await self._rollout.provider.forget(snapshot)

    async def once_per_job(self, key: str, make: Callable[[], Awaitable[T]]) -> T:
        return await self._rollout.host.once(f"{self._feature.name} {key}", make)

    async def ask_model(self, who: str, model: str | None, talk: Sequence[tuple[str, str]], system: str) -> str:
        from benchflow_core.gateway.talk import ask

        endpoint = await self._rollout.models.for_service(who, model or self._rollout.result.model)
        return await ask(endpoint, talk, system=system)
