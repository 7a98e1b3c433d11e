"""The models of a job: gateways opened once, a key per rollout and purpose, endpoints inside the boxes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast

from benchflow_core.contracts.common import Usage
from benchflow_core.contracts.gateways import (
    Exchange,
    Gateway,
    GatewayContext,
    KeyRequest,
    ModelEndpoint,
    ModelTarget,
    RolloutKey,
    Wire,
)
from benchflow_core.contracts.sandboxes import HostEndpoint, Sandbox
from benchflow_core.errors import BenchflowError, ConfigurationError
from benchflow_core.gateway.choose import Chosen, choose_gateway
from benchflow_core.gateway.expose import OpenTunnel, show_in_box
from benchflow_core.gateway.prices import provider_prices
from benchflow_core.gateway.resolve import WIRES, providers_of, targets_of
from benchflow_core.plugins import Loaded, Registry
from benchflow_core.plugins.guard import Guarded
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.executors import JobGateways

__all__ = ["PLAIN", "GatewayUse", "IssuedModel", "Models", "Purpose"]

Purpose = Literal["agent", "judge", "user"]


@dataclass(frozen=True, slots=True)
class GatewayUse:
    """How a rollout wants its models carried."""

    gateway: str | None = None
    """The one to use; none: the best-ranked that can."""
    options: Mapping[str, str] = field(default_factory=dict)
    helper_models: Literal["same", "own", "refuse"] = "same"
    """Who answers when an agent asks a model that its plugin names as a helper."""
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    record: bool = False
    replay: Path | None = None
    """A recording to answer from. With one, the provider's key may be missing."""


PLAIN: Final = GatewayUse()


@dataclass(frozen=True, slots=True)
class IssuedModel:
    """A model with a key of its own. `endpoint` is on the host; `Models.into_box` gives the one inside a box."""

    endpoint: ModelEndpoint
    key: RolloutKey
    target: ModelTarget
    gateway: Loaded
    purpose: Purpose
    running: Gateway = field(repr=False)

    def describe(self) -> dict[str, str]:
        """For `lock.json` and events: no secret in it."""
        return {
            "gateway": self.gateway.name,
            "provider": self.target.provider,
            "model": self.target.model,
            "base_url": self.target.base_url,
            "client_wire": self.endpoint.wire,
            "provider_wire": self.target.wire,
            "purpose": self.purpose,
            "key_id": self.key.id,
        }


@dataclass
class _Shown:
    """A gateway inside one box."""

    sandbox: Sandbox
    url: str
    tunnel: OpenTunnel | None


class Models:
    """One per job and host. Close it, and every key is void and every gateway gone."""

    def __init__(
        self,
        plugins: Registry,
        env: Mapping[str, str],
        work_dir: Callable[[], Path],
        *,
        concurrency: int = 1,
        job: JobGateways | None = None,
    ) -> None:
        """`work_dir` is asked for on first use: a job without models leaves no trace. `job`: the gateways of the job
        whose worker this is, instead of own ones."""
        self._plugins = plugins
        self._env = env
        self._work_dir = work_dir
        self._concurrency = concurrency
        self._of_job = job
        self._gateways: dict[tuple[str, tuple[tuple[str, str], ...]], Gateway] = {}
        self._shown: dict[tuple[int, HostEndpoint], _Shown] = {}
        self._opening = asyncio.Lock()
        self._showing: dict[int, asyncio.Lock] = {}

    def expect(self, concurrency: int) -> None:
        """How many rollouts will ask at a time, once a job's plan tells; before the first gateway is opened."""
        self._concurrency = concurrency

    def plan(
        self,
        model: str,
        wires: Sequence[Wire] = WIRES,
        *,
        also: Sequence[str] = (),
        use: GatewayUse = PLAIN,
    ) -> Chosen:
        """How a model would be reached. Nothing is started: what is wrong with the request is raised here."""
        providers = providers_of(self._plugins)
        targets = targets_of(model, self._env, providers, wires, also=also, keyless=use.replay is not None)
        chosen = choose_gateway(self._plugins, wires, targets, use.gateway)
        if (use.record or use.replay) and not chosen.gateway.spec.replays:
            raise ConfigurationError(
                f"gateway '{chosen.gateway.name}' can neither record nor replay.",
                remedy="Choose another with --gateway.",
            )
        return chosen

    async def issue(
        self,
        model: str,
        *,
        rollout: str,
        wires: Sequence[Wire] = WIRES,
        purpose: Purpose = "agent",
        also: Sequence[str] = (),
        helpers: tuple[str, ...] = (),
        allow_provider_tools: bool = True,
        use: GatewayUse = PLAIN,
    ) -> IssuedModel:
        """A key for a model. `wires`: what the client speaks, best first (`AgentSpec.wires`).

        `helpers` are patterns of models that the client asks beside it; `use.helper_models` says who answers them.
        """
        chosen = self.plan(model, wires, also=also, use=use)
        gateway = await self._open(chosen.gateway, use.options)
        key = await gateway.issue(
            KeyRequest(
                rollout=rollout,
                purpose=purpose,
                models=(chosen.target,),
                client_wire=chosen.client_wire,
                max_tokens=use.max_tokens,
                max_cost_usd=use.max_cost_usd,
                allow_provider_tools=allow_provider_tools,
                record=use.record,
                replay=use.replay,
                helpers=() if use.helper_models == "refuse" else helpers,
                own_helpers=use.helper_models == "own",
                helper_prices=provider_prices(chosen.target.provider, self._env),
            )
        )
        url = f"http://{key.endpoint.host}:{key.endpoint.port}"
        endpoint = ModelEndpoint(url, key.secret, chosen.client_wire, chosen.target.model)
        return IssuedModel(endpoint, key, chosen.target, chosen.gateway, purpose, gateway)

    async def into_box(
        self, issued: IssuedModel, sandbox: Sandbox, runtimes: Mapping[str, str] | None = None
    ) -> ModelEndpoint:
        """The endpoint as the box sees it. Ask again for each session: what was killed meanwhile comes back.

        `runtimes` are those of the image, for boxes that leave the way to the core.
        """
        place = (id(sandbox), issued.key.endpoint)
        async with self._showing.setdefault(id(sandbox), asyncio.Lock()):
            shown = self._shown.get(place)
            port = 0
            if shown is not None and shown.tunnel is not None and not await shown.tunnel.answers():
                port = shown.tunnel.port
                await shown.tunnel.close()
                shown = None
            if shown is None:
                shown = self._shown[place] = await _show(sandbox, issued.key.endpoint, runtimes or {}, port)
        return replace(issued.endpoint, base_url=shown.url)

    async def leave(self, sandbox: Sandbox) -> None:
        """Take everything of ours out of a box, before it stops. Safe to call again."""
        mine = [place for place, shown in self._shown.items() if shown.sandbox is sandbox]
        for shown in [self._shown.pop(place) for place in mine]:
            if shown.tunnel is not None:
                await shown.tunnel.close()
        self._showing.pop(id(sandbox), None)

    async def revoke(self, issued: IssuedModel) -> None:
        """The key opens nothing any more; its record stays. Safe to call again."""
        await issued.running.revoke(issued.key.id)

    async def usage(self, issued: IssuedModel) -> Usage:
        return await issued.running.usage(issued.key.id)

    def exchanges(self, issued: IssuedModel, since: int = 0) -> AsyncIterator[Exchange]:
        """Everything the key was used for so far, in order of completion, without the first `since`."""
        return issued.running.exchanges(issued.key.id, since)

    async def running(self, name: str, options: Mapping[str, str]) -> Gateway:
        """The running gateway of this name, for whoever shares it."""
        return await self._open(self._plugins.get("gateway", name), options)

    async def close(self) -> None:
        """Safe to call again."""
        shown, self._shown = list(self._shown.values()), {}
        gateways, self._gateways = list(self._gateways.values()), {}
        ends = [s.tunnel.close() for s in shown if s.tunnel is not None]
        ends += [gateway.close() for gateway in gateways] + ([self._of_job.close()] if self._of_job else [])
        results = await asyncio.gather(*ends, return_exceptions=True)
        for problem in results:
            if isinstance(problem, BaseException):
                raise problem

    async def _open(self, gateway: Loaded, options: Mapping[str, str]) -> Gateway:
        key = (gateway.name, tuple(sorted(options.items())))
        async with self._opening:
            if key not in self._gateways and self._of_job is not None:
                self._gateways[key] = self._of_job.gateway(gateway.name, options)
            if key not in self._gateways:
                folder = self._work_dir() / f"gateway-{gateway.name}-{len(self._gateways)}"
                await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
                context = GatewayContext(folder, self._env, self._concurrency, options)
                opened = await asyncio.to_thread(gateway.spec.open, context)
                self._gateways[key] = cast("Gateway", Guarded(opened, gateway.who, (BenchflowError,)))
            return self._gateways[key]


async def _show(sandbox: Sandbox, endpoint: HostEndpoint, runtimes: Mapping[str, str], port: int) -> _Shown:
    return _Shown(sandbox, *await show_in_box(sandbox, endpoint, runtimes, tunnel_port=port))
