"""The models of one rollout: a key per role, counted at the gateway, void before the verifier starts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.common import Usage
from benchflow_core.contracts.gateways import Exchange, ModelEndpoint
from benchflow_core.errors import BenchflowError, ConfigurationError, ProviderError
from benchflow_core.gateway import IssuedModel, Purpose, turn_verdict, write_llm_trajectory
from benchflow_core.rollout.finish import sum_usage

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout
    from benchflow_core.rollout.sessions import LiveSession

__all__ = ["RolloutModels"]


class RolloutModels:
    """Issues, shows, revokes and records. Nothing happens for agents that need no model."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._issued: dict[str, IssuedModel] = {}
        self._seen: dict[str, int] = {}

    async def for_agent(self, role: str, spec: Any, model: str | None) -> ModelEndpoint | None:
        """Where this role's agent finds its model, inside the box."""
        if not spec.wires:
            return None
        if model is None:
            raise ConfigurationError(f"role '{role}' has no model.", remedy="Add -m MODEL.")
        also = [name for option in spec.auth for name in option.env]
        issued = await self._issue(role, model, "agent", wires=spec.wires, also=also)
        rollout = self._rollout
        return await rollout.host.models.into_box(issued, rollout.sandbox, rollout.image.runtimes)

    async def for_host(self, purpose: str, model: str | None) -> ModelEndpoint:
        """A judge's or a simulated user's model, on the host."""
        if purpose not in ("judge", "user"):
            raise ConfigurationError(f"there is no model for '{purpose}'; known: judge, user.")
        if model is None:
            raise ConfigurationError(
                f"no model was named for the {purpose}.", remedy="Name one in the task or the config."
            )
        return (await self._issue(purpose, model, purpose)).endpoint  # type: ignore[arg-type]

    async def _issue(self, who: str, model: str, purpose: Purpose, **more: Any) -> IssuedModel:
        if who not in self._issued:
            rollout = self._rollout
            network = rollout.plan.task.agent_network or rollout.plan.task.environment.network
            issued = await rollout.host.models.issue(
                model, rollout=rollout.name, purpose=purpose, allow_provider_tools=network.mode == "public", **more
            )
            rollout.host.redactor.add([issued.key.secret])
            rollout.record.event("model_issued", issued.describe(), role=who)
            self._issued[who] = issued
        return self._issued[who]

    async def turn_failure(self, live: LiveSession) -> ProviderError | None:
        """A turn whose model calls all failed is the provider's failure, whatever the agent said of it."""
        role = live.role.name
        if role not in self._issued:
            return None
        exchanges = self._rollout.host.models.exchanges(self._issued[role])
        purpose = live.agent.spec.exchange_purpose
        failure, self._seen[role] = await turn_verdict(
            exchanges, self._seen.get(role, 0), lambda e: purpose(e) == "agent"
        )
        return failure

    async def revoke(self) -> None:
        """Before the verifier: what the agent left running can ask no model."""
        for issued in self._issued.values():
            if issued.purpose == "agent":
                await self._rollout.host.models.revoke(issued)

    async def finish(self) -> None:
        """Void every key, write the exchanges, and take the gateway's count as the usage."""
        if not self._issued:
            return
        rollout, models = self._rollout, self._rollout.host.models
        by_role: dict[str, Usage] = {}
        total: Usage | None = None
        for who, issued in self._issued.items():
            with suppress(BenchflowError):
                await models.revoke(issued)
            usage = await models.usage(issued)
            by_role[who] = usage
            if issued.purpose == "agent":
                total = usage if total is None else sum_usage(total, usage)
        purposes = {
            role.name: rollout.plan.agents[role.agent].spec.exchange_purpose for role in rollout.plan.roles.values()
        }

        async def exchanges() -> AsyncIterator[Exchange]:
            for issued in self._issued.values():
                async for exchange in models.exchanges(issued):
                    yield exchange

        owner = {issued.key.id: who for who, issued in self._issued.items()}

        def purpose_of(exchange: Exchange) -> str:
            who = owner[exchange.key_id]
            return purposes[who](exchange) if who in purposes else who

        await write_llm_trajectory(rollout.record.dir.llm_trajectory, exchanges(), purpose_of, rollout.host.redactor)
        if total is not None:
            rollout.result.usage = total
        rollout.result.usage_details["gateway"] = {who: asdict(usage) for who, usage in by_role.items()}
