"""The plugin: what the gateway carries, and how it is opened."""

from __future__ import annotations

from benchflow_core.contracts import Gateway, GatewayContext, GatewaySpec
from benchflow_core.hookspecs import hookimpl


def open_gateway(context: GatewayContext) -> Gateway:
    from {{module}}.server import Server

    return Server(context)


@hookimpl
def benchflow_gateway() -> GatewaySpec:
    return GatewaySpec(
        summary="passes chat completions through and records them",
        open=open_gateway,
        wires=frozenset({("chat", "chat")}),
    )
