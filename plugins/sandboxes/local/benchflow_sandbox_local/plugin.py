"""The entry point: light, and importing nothing of the work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from benchflow_core.contracts import (
    Availability,
    Check,
    ImageRequest,
    Lease,
    SandboxContext,
    SandboxProvider,
    SandboxSpec,
)
from benchflow_core.hookspecs import hookimpl

_THREAT_MODEL = (
    "Keeps rollouts apart from each other and from your files, processes and network, on the honest assumption that "
    "the code inside is careless rather than hostile: it shares this machine's kernel and sees its installed programs. "
    "Not a wall against code that attacks the kernel; use a virtual machine for that."
)


def _open(context: SandboxContext) -> SandboxProvider:
    from benchflow_sandbox_local.choose import open_provider

    return open_provider(context)


def _available() -> Availability:
    from benchflow_sandbox_local import probe

    return probe.available()


def _capabilities() -> frozenset[str]:
    from benchflow_sandbox_local import probe

    return probe.capabilities()


def _check() -> list[Check]:
    from benchflow_sandbox_local import checks

    return checks.run()


def _refuse(options: Mapping[str, str], env: Mapping[str, str], request: ImageRequest) -> None:
    from benchflow_sandbox_local.refusing import refuse

    refuse(options, env, request)


async def _list_leases() -> AsyncIterator[Lease]:
    from benchflow_sandbox_local import leases

    async for lease in leases.list_leases():
        yield lease


async def _reap(lease: Lease) -> None:
    from benchflow_sandbox_local import leases

    await leases.reap(lease)


_SPEC = SandboxSpec(
    summary="Linux namespaces on this machine: nothing to install, no root needed",
    open=_open,
    capabilities=_capabilities,
    available=_available,
    default_rank=50,
    check=_check,
    list_leases=_list_leases,
    reap=_reap,
    refuse=_refuse,
    threat_model=_THREAT_MODEL,
)


@hookimpl
def benchflow_sandbox() -> SandboxSpec:
    return _SPEC
