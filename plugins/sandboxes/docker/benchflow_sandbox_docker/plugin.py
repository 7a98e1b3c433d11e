"""The entry point: light, and importing nothing of the work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from benchflow_core.contracts import (
    Availability,
    Capability,
    Check,
    ImageRequest,
    Lease,
    SandboxContext,
    SandboxProvider,
    SandboxSpec,
)
from benchflow_core.hookspecs import hookimpl

_THREAT_MODEL = (
    "Keeps rollouts apart from each other and from the host's files, processes, ports and metadata service, with the "
    "walls of a container: namespaces, dropped capabilities, no new privileges, the engine's system-call filter. "
    "Containers share the host's kernel; use virtual machines against code that attacks it."
)
_CAPABILITIES = frozenset(
    {
        Capability.USERS,
        Capability.ACCESS_VIEW,
        Capability.SNAPSHOT,
        Capability.SNAPSHOT_COMPOSE,
        Capability.RESTORE,
        Capability.CHANGES,
        Capability.CHANGES_CARRIED,
        Capability.PORTS,
        Capability.NETWORK_PUBLIC,
        Capability.NETWORK_NONE,
        Capability.NETWORK_ALLOWLIST,
        Capability.NETWORK_DYNAMIC,
        Capability.IMAGE_BUILD,
        Capability.IMAGE_PREBUILT,
        Capability.COMPOSE,
        Capability.LIMIT_CPU,
        Capability.LIMIT_MEMORY,
        Capability.LIMIT_PIDS,
        Capability.GPU,
    }
)


def _open(context: SandboxContext) -> SandboxProvider:
    from benchflow_sandbox_docker.provider import DockerProvider

    return DockerProvider(context)


def _available() -> Availability:
    from benchflow_sandbox_docker.engine import host

    return host.available()


def _check() -> list[Check]:
    from benchflow_sandbox_docker import checks

    return checks.run()


def _refuse(options: Mapping[str, str], env: Mapping[str, str], request: ImageRequest) -> None:
    if request.compose is not None:
        from benchflow_sandbox_docker.compose.project import check_file

        check_file(request.compose)


async def _list_leases() -> AsyncIterator[Lease]:
    from benchflow_sandbox_docker import leases

    async for lease in leases.list_leases():
        yield lease


async def _reap(lease: Lease) -> None:
    from benchflow_sandbox_docker import leases

    await leases.reap(lease)


_SPEC = SandboxSpec(
    summary="Containers of a Docker engine, or of Podman's Docker-compatible socket",
    open=_open,
    capabilities=_CAPABILITIES,
    available=_available,
    default_rank=20,
    check=_check,
    list_leases=_list_leases,
    reap=_reap,
    refuse=_refuse,
    threat_model=_THREAT_MODEL,
)


@hookimpl
def benchflow_sandbox() -> SandboxSpec:
    return _SPEC
