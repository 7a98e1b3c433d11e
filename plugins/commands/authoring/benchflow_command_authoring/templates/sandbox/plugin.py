"""The plugin: what the sandbox is called, what it can do, how it is opened."""

from __future__ import annotations

from collections.abc import AsyncIterator

from benchflow_core.contracts import Availability, Lease, SandboxContext, SandboxProvider, SandboxSpec
from benchflow_core.hookspecs import hookimpl


def open_provider(context: SandboxContext) -> SandboxProvider:
    from {{module}}.provider import Provider

    return Provider(context)


def available() -> Availability:
    from pathlib import Path

    if Path("/proc/self/environ").exists():
        return Availability(True)
    return Availability(False, "processes are found through /proc", "run it on Linux")


async def list_leases() -> AsyncIterator[Lease]:
    from {{module}} import leases

    for lease in leases.all_leases():
        yield lease


async def reap(lease: Lease) -> None:
    import asyncio

    from {{module}} import leases

    await asyncio.to_thread(leases.remove, lease.id)


@hookimpl
def benchflow_sandbox() -> SandboxSpec:
    return SandboxSpec(
        summary="a folder of this machine, without walls",
        open=open_provider,
        capabilities=frozenset(),
        available=available,
        list_leases=list_leases,
        reap=reap,
        threat_model="Keeps the files of honest rollouts apart. It is no wall: commands run as you, on your machine.",
    )
