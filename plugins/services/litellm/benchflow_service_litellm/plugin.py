"""The hook. Nothing of LiteLLM's is imported here, ever: it lives in an environment of its own."""

from __future__ import annotations

from benchflow_core.contracts import Availability, Check, Gateway, GatewayContext, GatewaySpec, Wire
from benchflow_core.hookspecs import hookimpl

_WIRES: tuple[Wire, ...] = ("chat", "responses", "messages", "gemini")


def _open(context: GatewayContext) -> Gateway:
    from benchflow_service_litellm.gateway import TranslatingRelay

    return TranslatingRelay(context)


def _available() -> Availability:
    from benchflow_service_litellm.environment import LiteLLMEnvironment

    return LiteLLMEnvironment.of_process().available()


def _check() -> list[Check]:
    from benchflow_service_litellm.environment import LiteLLMEnvironment

    return [LiteLLMEnvironment.of_process().check()]


@hookimpl
def benchflow_gateway() -> GatewaySpec:
    return GatewaySpec(
        summary="translates between model APIs with LiteLLM, and logs in to Bedrock and Vertex",
        open=_open,
        wires=frozenset((client, provider) for client in _WIRES for provider in _WIRES),
        logins=frozenset({"key", "bearer", "adc", "aws"}),
        exact=False,
        replays=True,
        providers="benchflow_gateway_relay.providers:PROVIDERS",
        default_rank=50,
        available=_available,
        check=_check,
    )
