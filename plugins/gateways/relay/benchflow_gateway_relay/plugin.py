"""The hook. aiohttp is imported when a relay is opened, not before."""

from __future__ import annotations

from benchflow_core.contracts import Gateway, GatewayContext, GatewaySpec
from benchflow_core.hookspecs import hookimpl


def _open(context: GatewayContext) -> Gateway:
    from benchflow_gateway_relay.relay import Relay

    return Relay(context)


@hookimpl
def benchflow_gateway() -> GatewaySpec:
    return GatewaySpec(
        summary="passes each wire through to a provider that speaks it, and records it",
        open=_open,
        wires=frozenset({("chat", "chat"), ("responses", "responses"), ("messages", "messages"), ("gemini", "gemini")}),
        logins=frozenset({"key", "bearer"}),
        replays=True,
        providers="benchflow_gateway_relay.providers:PROVIDERS",
        default_rank=10,
    )
