"""Gateways: every model call goes through one, on the host, with a key of its own per rollout."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, Protocol

from benchflow_core.contracts.common import Availability, CheckFn, Usage, no_checks
from benchflow_core.contracts.sandboxes import HostEndpoint
from benchflow_core.quick import dataclass

__all__ = [
    "Exchange",
    "Gateway",
    "GatewayContext",
    "GatewaySpec",
    "KeyRequest",
    "ModelEndpoint",
    "ModelTarget",
    "Provider",
    "ProviderCredential",
    "ProviderParameter",
    "RolloutKey",
    "Wire",
]

Wire = Literal["chat", "responses", "messages", "gemini"]
"""OpenAI chat completions, OpenAI responses, Anthropic messages, Gemini generateContent."""


@dataclass(frozen=True, slots=True)
class ProviderCredential:
    """A variable that holds a credential, and how the provider wants it."""

    env: str
    auth: Literal["key", "bearer", "adc", "aws"] = "key"


@dataclass(frozen=True, slots=True)
class ProviderParameter:
    """A part of a provider's address, or a setting for its gateway, from the environment."""

    env: tuple[str, ...]
    default: str | None = None
    """`None`: it must be set where an address needs it."""
    of_host: str = ""
    """The value may be a URL whose host ends with this; then the host's first label counts."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of models: where it is and what it speaks."""

    name: str
    endpoints: Mapping[Wire, str]
    """Base URL per wire, its own first. `{name}` is a parameter; empty where only the environment says it."""
    credentials: tuple[ProviderCredential, ...]
    """Alternatives, best first."""
    base_url_env: tuple[str, ...] = ()
    """Variables that replace the base URL, first set wins. What a wire's address adds to the first one's is kept."""
    host_env: tuple[str, ...] = ()
    """Variables that replace scheme and host only, unless a parameter makes sense of them."""
    bare: str = ""
    """Regular expression of model names that need no prefix."""
    parameters: Mapping[str, ProviderParameter] = field(default_factory=dict)
    needs_credential: bool = True


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """A model as its provider knows it."""

    model: str
    """The provider's own id, prefix removed."""
    provider: str
    wire: Wire
    base_url: str
    """As the wire's official client takes it: OpenAI's with `/v1`, Anthropic's and Gemini's without a version."""
    credential_env: tuple[str, ...] = ()
    """Where the credential is; the first that is set counts. Empty: the provider asks for none."""
    params: Mapping[str, Any] = field(default_factory=dict)
    auth: Literal["key", "bearer", "adc", "aws"] = "key"
    """How the provider wants it: in the wire's own header, always as `Authorization: Bearer`, or as a cloud's login."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """USD per million tokens: `input`, `output`, `cache_read`, `cache_write`. Empty: not known."""


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """Where an agent, judge or user finds its model: inside a box for an agent, on the host for the others."""

    base_url: str
    """Without the wire's own path: `http://127.0.0.1:41217`."""
    key: str = field(repr=False)
    wire: Wire
    model: str
    """The id to ask for."""


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """What a key may do."""

    rollout: str
    purpose: Literal["agent", "judge", "user"]
    models: tuple[ModelTarget, ...]
    client_wire: Wire
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    allow_provider_tools: bool = True
    """False under no-network: the provider's own web search and code tools are refused."""
    record: bool = False
    """Keep every answer as it crossed the wire, in `Exchange.answer`: what a replay needs."""
    replay: Path | None = None
    """A recording (JSON lines) to answer from, by content. What it does not hold goes to the provider."""
    helpers: tuple[str, ...] = ()
    """Names (shell patterns) of models that the client may ask beside `models`. The first of `models` answers."""
    own_helpers: bool = False
    """The provider is asked for a helper by the helper's own name instead."""
    helper_prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By name, as `ModelTarget.prices`: for helpers that are asked by their own name."""


@dataclass(frozen=True, slots=True)
class RolloutKey:
    """An issued key. It opens inference for its models and nothing else, until it is revoked."""

    id: str
    """Safe to log."""
    secret: str = field(repr=False)
    endpoint: HostEndpoint


@dataclass(frozen=True, slots=True)
class Exchange:
    """One model request and what came back. Bodies are as they crossed the wire; the writer redacts."""

    key_id: str
    started_at: float
    duration: float
    wire: Wire
    path: str
    request: Mapping[str, Any]
    response: Mapping[str, Any] | None
    status: int
    usage: Usage
    requested_model: str | None = None
    returned_model: str | None = None
    streamed: bool = False
    error: str | None = None
    """What went wrong, in words."""
    error_type: str | None = None
    """What went wrong, by kind. The provider's side: `credential_refused`, `permission_denied`, `unknown_model`,
    `no_credit`, `provider_rate_limited`, `invalid_request`, `provider_error`, `stream_cut`, `unreachable`,
    `not_a_model_api`. The gateway's: `refused`, `budget`, `replay_diverged`. The client's: `client_gone`, `revoked`."""
    content_type: str = ""
    """Of the answer."""
    answer: str | None = None
    """The answer as it crossed the wire, where `KeyRequest.record` asked for it."""
    replayed: Literal["", "exact", "like"] = ""
    """Answered from a recording: by the very same request, or by one that differs in times, ids and the like only."""
    divergence: str | None = None
    """Where the request left the recording, in words."""
    answered_by: str | None = None
    """The model that was asked in the place of `requested_model`, a helper of the client's."""


class Gateway(Protocol):
    """A running gateway. One per job."""

    async def issue(self, request: KeyRequest) -> RolloutKey: ...

    async def revoke(self, key_id: str) -> None:
        """From now on every request with it is refused. Safe to call again."""

    def exchanges(self, key_id: str, since: int = 0) -> AsyncIterator[Exchange]:
        """Everything recorded for the key so far, in order of completion, without the first `since`.

        Those are not read again: a turn asks for what is new.
        """

    async def usage(self, key_id: str) -> Usage: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class GatewayContext:
    """What a gateway is opened with."""

    work_dir: Path
    env: Mapping[str, str]
    """The user's environment: where provider keys are."""
    concurrency: int = 1
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GatewaySpec:
    """A gateway. Chosen by what it can carry, the lowest rank first.

    Example::

        @hookimpl
        def benchflow_gateway() -> GatewaySpec:
            return GatewaySpec(summary="pass-through recorder", open=open_relay,
                               wires=frozenset({("chat", "chat"), ("messages", "messages")}), default_rank=10)
    """

    summary: str
    open: Callable[[GatewayContext], Gateway]
    wires: frozenset[tuple[Wire, Wire]]
    """Pairs (what the agent speaks, what the provider speaks)."""
    logins: frozenset[str] = frozenset({"key", "bearer"})
    """Kinds of `ModelTarget.auth` it can present to a provider."""
    exact: bool = True
    """Between equal wires bytes pass unchanged. False: answers are the same in meaning only."""
    replays: bool = False
    """It understands `KeyRequest.record` and `KeyRequest.replay`."""
    providers: str = ""
    """`package.module:NAME`, a mapping of model providers by prefix. Every installed gateway may bring some, and any
    gateway may be asked for a model of each; where two bring one of the same name, the lower rank counts."""
    default_rank: int | None = None
    available: Callable[[], Availability] = lambda: Availability(True)
    check: CheckFn = no_checks
