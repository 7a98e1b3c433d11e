"""The networks of one rollout's services: small, private, and with addresses chosen beforehand.

A network takes sixteen addresses of ours instead of one of the engine's few large pools, so hundreds fit. Names are
written into every container's hosts file: they also resolve on engines without a name server of their own.
"""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import InfrastructureError
from benchflow_sandbox_docker.addresses import SERVICES
from benchflow_sandbox_docker.compose.model import MAIN, ComposeService, Project
from benchflow_sandbox_docker.engine.api import EngineClient
from benchflow_sandbox_docker.engine.http import EngineError

__all__ = ["Net", "Nets", "addresses", "create", "remove", "token"]

_POOL: Final = ipaddress.IPv4Network(SERVICES)
_PREFIX: Final = 28
_TRIES: Final = 40
_BESIDE: Final = "main, a second time"


@dataclass(frozen=True, slots=True)
class Net:
    """One network that exists in the engine."""

    id: str
    subnet: str
    gateway: str


@dataclass(frozen=True, slots=True)
class Nets:
    """The networks of a project, by the file's names for them."""

    by_name: Mapping[str, Net]
    at: Mapping[str, Mapping[str, str]]
    """Service to its address in each of its networks."""
    apart: tuple[str, ...] = ()
    """Addresses among them that must not be reached."""

    def for_second_main(self) -> Nets:
        """Return the networks for a second `main`: own address, no DNS name, unreachable from the first."""
        return Nets(self.by_name, {**self.at, MAIN: self.at[_BESIDE]}, tuple(self.at[MAIN].values()))

    def of(self, service: ComposeService) -> dict[str, Net]:
        return {name: self.by_name[name] for name in service.networks if name in self.by_name}

    def hosts(self, project: Project, service: ComposeService) -> list[str]:
        """`name:address` of every service that this one shares a network with, itself included."""
        found: dict[str, str] = {}
        for other in project.services:
            for name in other.networks:
                if name in service.networks and name in self.by_name:
                    for known in (other.name, *other.networks[name], *((other.hostname,) if other.hostname else ())):
                        found.setdefault(known, self.at[other.name][name])
        return [f"{name}:{address}" for name, address in found.items()]

    def endpoints(self, service: ComposeService) -> dict[str, dict[str, Any]]:
        """What the engine is told, by network id."""
        return {
            net.id: {
                "Aliases": [] if self.apart else [service.name, *service.networks[name]],
                "IPAMConfig": {"IPv4Address": self.at[service.name][name]},
            }
            for name, net in self.of(service).items()
        }


def token() -> str:
    return secrets.token_hex(6)


def addresses(services: Iterable[ComposeService], name: str, subnet: str) -> dict[str, str]:
    """An address for each service of a network; the first is the gateway's, the last a second main's."""
    *hosts, last = list(ipaddress.IPv4Network(subnet).hosts())[1:]
    members = [service.name for service in services if name in service.networks]
    if len(members) > len(hosts):
        raise InfrastructureError(f"network '{name}' has {len(members)} services; {len(hosts)} fit.", retryable=False)
    found = {member: str(host) for member, host in zip(members, hosts, strict=False)}
    return {**found, _BESIDE: str(last)} if MAIN in found else found


async def create(engine: EngineClient, project: Project, labels: Mapping[str, str], *, internal: bool) -> Nets:
    """One for every network of the file that a service uses; nothing of it is left on failure."""
    wanted = list(dict.fromkeys(n for s in project.services for n in s.networks))
    made: dict[str, Net] = {}
    try:
        for name in wanted:
            made[name] = await _one(engine, labels, internal=internal or name in project.internal)
    except BaseException:
        await remove(engine, made.values())
        raise
    at: dict[str, dict[str, str]] = {name: {} for name in (*(s.name for s in project.services), _BESIDE)}
    for name, net in made.items():
        for member, address in addresses(project.services, name, net.subnet).items():
            at[member][name] = address
    return Nets(made, at)


async def remove(engine: EngineClient, nets: Iterable[Net]) -> None:
    for net in nets:
        await engine.remove_network(net.id)


async def _one(engine: EngineClient, labels: Mapping[str, str], *, internal: bool) -> Net:
    taken = _routes()
    refused = ""
    for subnet in _candidates(taken):
        gateway = str(next(subnet.hosts()))
        body = {
            "Name": f"benchflow-{token()}",
            "Driver": "bridge",
            "Internal": internal,
            "Labels": dict(labels),
            "CheckDuplicate": True,
            "IPAM": {"Driver": "default", "Config": [{"Subnet": str(subnet), "Gateway": gateway}]},
        }
        try:
            answer = await engine.http.call("POST", "/networks/create", None, body)
        except EngineError as error:
            refused = error.reason
            if "overlap" not in refused.lower() and "already used" not in refused.lower():
                break
            continue
        return Net(str(answer.json()["Id"]), str(subnet), gateway)
    raise InfrastructureError(f"The engine cannot make a network for the task's services: {refused}.")


def _candidates(taken: Sequence[ipaddress.IPv4Network]) -> Iterable[ipaddress.IPv4Network]:
    count = 2 ** (_PREFIX - _POOL.prefixlen)
    for _ in range(_TRIES):
        start = int(_POOL.network_address) + secrets.randbelow(count) * 2 ** (32 - _PREFIX)
        subnet = ipaddress.IPv4Network((start, _PREFIX))
        if not any(subnet.overlaps(other) for other in taken):
            yield subnet


def _routes() -> list[ipaddress.IPv4Network]:
    """Networks this machine already has a way to; the default way is no reason to avoid anything."""
    found = []
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/net/route").read_text().splitlines()[1:]:
            fields = line.split()
            address, mask = (int.from_bytes(bytes.fromhex(fields[i])[::-1], "big") for i in (1, 7))
            if mask:
                found.append(ipaddress.IPv4Network((address, bin(mask).count("1"))))
    return found
