"""The models of one rollout: a key per role, counted at the gateway, void before the verifier starts."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.contracts.common import Usage
from benchflow_core.contracts.gateways import Exchange, ModelEndpoint
from benchflow_core.errors import BenchflowError, ConfigurationError, ProviderError
from benchflow_core.rollout.finish import sum_usage
from benchflow_core.settings.models import RolloutConfig

if TYPE_CHECKING:
    from benchflow_core.gateway import GatewayUse, IssuedModel, Purpose
    from benchflow_core.gateway.replayed import ReplayReport
    from benchflow_core.plugins import Loaded
    from benchflow_core.rollout.rollout import Rollout
    from benchflow_core.rollout.sessions import LiveSession

__all__ = ["RolloutModels", "gateway_use"]

_HELPERS: Final = 20
"""Names of helper models that are counted: an agent can make up as many as it likes."""
_NAME: Final = 100


class RolloutModels:
    """Issues, shows, revokes and records. Nothing happens for agents that need no model."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._issued: dict[str, IssuedModel] = {}
        self._issuing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """A judge may ask about several criteria at once: a second key would be neither counted nor made void."""
        self._counted: dict[str, Usage] = {}
        self._seen: dict[str, int] = {}
        self._turns: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
        """Per role: how many exchanges there were when each turn ended, and which turn that was."""

    async def for_agent(self, role: str, agent: Loaded, model: str | None) -> ModelEndpoint | None:
        """Where this role's agent finds its model, inside the box."""
        spec = agent.spec
        if not spec.wires or self._rollout.plan.roles[role].agent in self._rollout.plan.features.auth:
            return None
        if model is None:
            raise ConfigurationError(f"role '{role}' has no model.", remedy="Add -m MODEL.")
        also = [name for option in spec.auth if not option.native for name in option.env]
        issued = await self._issue(role, model, "agent", wires=spec.wires, also=also, helpers=spec.helper_models)
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

    async def for_service(self, name: str, model: str | None) -> ModelEndpoint:
        """The model of a service that runs on the host, counted under the service's name."""
        if model is None:
            raise ConfigurationError(
                f"no model was named for service '{name}'.", remedy=f"Write {name}?model=NAME, or add -m MODEL."
            )
        return (await self._issue(name, model, "user")).endpoint

    async def _issue(self, who: str, model: str, purpose: Purpose, **more: Any) -> IssuedModel:
        async with self._issuing[who]:
            if who not in self._issued:
                self._issued[who] = await self._new(who, model, purpose, **more)
        return self._issued[who]

    async def _new(self, who: str, model: str, purpose: Purpose, **more: Any) -> IssuedModel:
        rollout = self._rollout
        network = rollout.plan.task.agent_network or rollout.plan.task.environment.network
        issued = await rollout.host.models.issue(
            model,
            rollout=rollout.name,
            purpose=purpose,
            allow_provider_tools=network.mode == "public",
            use=self._use(who, purpose),
            **more,
        )
        rollout.host.redactor.add([issued.key.secret])
        rollout.record.event("model_issued", issued.describe(), role=who)
        return issued

    def _use(self, who: str, purpose: Purpose) -> GatewayUse:
        """As the settings say. Caps are the agents': a judge that is cut short would score wrongly."""
        from benchflow_core.gateway import recording_of

        config, plan = self._rollout.config, self._rollout.plan
        use = gateway_use(config, plan.task.path.name)
        file = recording_of(use.replay, who) if use.replay else None
        if file is not None and not file.exists():
            file = None
        use = replace(use, replay=file)
        return use if purpose == "agent" else replace(use, max_tokens=None, max_cost_usd=None)

    async def turn_failure(self, live: LiveSession, *, ended: bool) -> ProviderError | None:
        """A turn whose model calls all failed, or that ended on a failed one, is the provider's failure.

        Whatever the agent said of it. `ended`: by itself, not by a limit or a cancel.
        """
        role = live.role.name
        if role not in self._issued:
            return None
        from benchflow_core.gateway import turn_verdict

        before = self._seen.get(role, 0)
        purpose = live.agent.spec.exchange_purpose
        exchanges = self._rollout.host.models.exchanges(self._issued[role], before)
        failure, new = await turn_verdict(exchanges, lambda e: purpose(e) == "agent", ended=ended)
        self._seen[role] = before + new
        self._turns.setdefault(role, []).append((before + new, dict(live.place)))
        return failure

    async def turn_usage(self, role: str) -> Usage | None:
        """What the gateway counted for a role since this was last asked; nothing where no gateway counts."""
        if role not in self._issued:
            return None
        before = self._counted.get(role, Usage())
        total = self._counted[role] = await self._rollout.host.models.usage(self._issued[role])
        if total.input_tokens is None or total.output_tokens is None:
            return None
        spent = {
            name: (getattr(total, name) or 0) - (getattr(before, name) or 0)
            for name in ("input_tokens", "output_tokens")
        }
        return Usage(**spent, source=total.source, complete=total.complete)

    async def agent_exchanges(self) -> AsyncIterator[Exchange]:
        """Every model call of the agents so far."""
        for issued in list(self._issued.values()):
            if issued.purpose == "agent":
                async for exchange in self._rollout.host.models.exchanges(issued):
                    yield exchange

    async def so_far(self) -> Usage:
        """What the gateway counted until now, of every purpose."""
        total = Usage()
        for issued in list(self._issued.values()):
            total = sum_usage(total, await self._rollout.host.models.usage(issued))
        return total

    async def revoke(self) -> None:
        """Before the verifier: what the agent left running can ask no model."""
        for issued in self._issued.values():
            if issued.purpose == "agent":
                await self._rollout.host.models.revoke(issued)

    def forget(self) -> None:
        """The keys are void and everything is written: nobody has to look for them any more."""
        self._rollout.host.redactor.forget(issued.key.secret for issued in self._issued.values())

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
        await self._write()
        if rollout.config.usage_tracking != "off":
            rollout.result.usage = total or rollout.result.usage
            rollout.result.usage_details["gateway"] = {who: asdict(usage) for who, usage in by_role.items()}
        if rollout.config.usage_tracking == "required" and total is not None:
            self._require(total)

    def _require(self, usage: Usage) -> None:
        """A score whose cost nobody knows is not what was asked for."""
        if usage.requests and not (usage.complete and usage.source == "provider_response"):
            said = f"{usage.requests} model requests, and their tokens were not all reported."
            self._rollout.fail(ProviderError(said, retryable=False, details={"usage_source": usage.source}))
            self._rollout.result.rewards = None

    async def _write(self) -> None:
        """The exchanges of all roles, each with its turn; what a replay came to; the recording."""
        from benchflow_core.gateway import recording_of, write_llm_trajectory, write_recording
        from benchflow_core.gateway.replayed import ReplayReport

        rollout, models = self._rollout, self._rollout.host.models
        roles = rollout.plan.roles.values()
        purposes = {role.name: rollout.plan.agents[role.agent].spec.exchange_purpose for role in roles}
        reports: dict[str, ReplayReport] = {}
        asked: set[str] = set()
        helpers: defaultdict[str, dict[str, dict[str, Any]]] = defaultdict(dict)

        async def exchanges() -> AsyncIterator[tuple[Exchange, Mapping[str, Any]]]:
            for who, issued in self._issued.items():
                number = 0
                async for exchange in models.exchanges(issued):
                    number += 1
                    asked.add(who)
                    if issued.purpose == "agent" and exchange.requested_model not in (None, issued.target.model):
                        _count_helper(helpers[who], exchange)
                    if rollout.config.replay:
                        reports.setdefault(who, ReplayReport()).add(exchange)
                    yield exchange, {"role": who, **self._place(who, number)}

        def purpose_of(exchange: Exchange, who: str) -> str:
            return purposes[who](exchange) if who in purposes else who

        redactor = rollout.host.redactor
        await write_llm_trajectory(rollout.record.dir.llm_trajectory, exchanges(), purpose_of, redactor)
        if rollout.config.record:
            for who, issued in self._issued.items():
                await write_recording(
                    recording_of(rollout.record.dir.recording, who), models.exchanges(issued), redactor
                )
        self._report(reports)
        self._say_helpers(helpers)
        for who in self._turns:
            if who not in asked:
                self._say_unasked(who)

    def _say_helpers(self, helpers: Mapping[str, Mapping[str, dict[str, Any]]]) -> None:
        """Nobody reads a score as one model's where several were asked."""
        if helpers:
            self._rollout.result.usage_details["helper_models"] = dict(helpers)
        for who, counts in helpers.items():
            for name, count in counts.items():
                end = {None: "was refused", name: "answered itself"}.get(count["answered_by"])
                end = end or f"was answered by {count['answered_by']}"
                self._rollout.notice(f"'{who}' also asked for model {name}, which {end} ({count['requests']}×).")

    def _say_unasked(self, who: str) -> None:
        """Its turns ended, and not one reached its model: a setting that it swallowed looks like that, too."""
        self._rollout.notice(f"'{who}' ended its turns without asking its model: the score says nothing about that.")
        if "no-model-calls" not in self._rollout.result.flags:
            self._rollout.result.flags.append("no-model-calls")

    def _place(self, who: str, number: int) -> Mapping[str, Any]:
        """Scene and turn of a role's exchange; one that came after the last turn belongs to none."""
        place = next((place for count, place in self._turns.get(who, ()) if number <= count), {})
        return {key: place[key] for key in ("scene", "turn", "session") if key in place}

    def _report(self, reports: Mapping[str, ReplayReport]) -> None:
        result = self._rollout.result
        for who, report in reports.items():
            result.usage_details.setdefault("replay", {})[who] = report.to_json()
            if report.served and "replayed" not in result.flags:
                result.flags.append("replayed")
            if report.served and report.divergence is None:
                result.notices.append(f"'{who}' was answered from the recording, {report.served} times.")
            if report.divergence is not None:
                result.notices.append(f"'{who}' left the recording after {report.served} answers: {report.divergence}.")
                if "replay-diverged" not in result.flags:
                    result.flags.append("replay-diverged")


def _count_helper(counts: dict[str, dict[str, Any]], exchange: Exchange) -> None:
    """Add a call of another model than the role's own to what was counted by the name that was asked."""
    name = str(exchange.requested_model)[:_NAME]
    if name not in counts and len(counts) == _HELPERS:
        return
    answered_by = exchange.answered_by or (None if exchange.error_type == "refused" else name)
    count = counts.setdefault(name, {"requests": 0, "answered_by": answered_by})
    count["requests"] += 1
    for kind in ("input_tokens", "output_tokens"):
        count[kind] = count.get(kind, 0) + (getattr(exchange.usage, kind) or 0)


def gateway_use(config: RolloutConfig, task: str) -> GatewayUse:
    """What the settings say of gateways; `replay` is the folder of the task's recording. Raises where there is none."""
    from benchflow_core.gateway import GatewayUse, find_recording

    return GatewayUse(
        gateway=config.gateway,
        options=config.gateway_options,
        helper_models=config.helper_models,
        max_tokens=config.max_rollout_tokens,
        max_cost_usd=config.max_rollout_cost,
        record=config.record,
        replay=find_recording(Path(config.replay), task, config.trial) if config.replay else None,
    )
