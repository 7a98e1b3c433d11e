"""Compose tasks: `docker-compose.yaml` with a `main` service and sidecars, read and checked before anything starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from benchflow_sandbox_docker.compose.document import ComposeDocument
from benchflow_sandbox_docker.compose.model import MAIN, ComposeService, Project
from benchflow_sandbox_docker.compose.mounts import HOST_LOGS
from benchflow_sandbox_docker.compose.rules import DANGEROUS, IGNORED, KNOWN, TOP_KNOWN, TOP_REFUSED
from benchflow_sandbox_docker.compose.service import ServiceReader
from benchflow_sandbox_docker.compose.values import ValueReader

__all__ = ["check_file", "read_project", "variables"]


def variables(env: Mapping[str, str], *, cpus: float | None = None, memory_mb: int | None = None) -> dict[str, str]:
    """What a compose file may refer to: the task's own variables, and the names that Harbor gives every file."""
    given = {
        "CONTEXT_DIR": ".",
        "MAIN_IMAGE_NAME": "",
        "PREBUILT_IMAGE_NAME": "",
        "CPUS": str(cpus) if cpus else "",
        "MEMORY": f"{memory_mb}M" if memory_mb else "",
    }
    for kind, folder in (("VERIFIER_LOGS", "verifier"), ("AGENT_LOGS", "agent"), ("ARTIFACTS", "artifacts")):
        given[f"HOST_{kind}_PATH"] = f"{HOST_LOGS}/{folder}"
        given[f"ENV_{kind}_PATH"] = f"/logs/{folder}"
    return {**given, **env}


def read_project(
    document: ComposeDocument, folder: Path, root: Path, known: Mapping[str, str], *, lenient: bool = False
) -> Project:
    """The project, or `TaskError` with file and line. `lenient`: variables may still be unknown."""
    reader = ValueReader(document, folder, root)
    data = document.interpolated(known, lenient=lenient)
    _top(reader, data)
    services = reader.mapping(data.get("services"), ("services",))
    if MAIN not in services:
        document.refuse(("services",), "there is no service 'main': it is the one the agent works in.")
    notices: list[str] = []
    found: dict[str, ComposeService] = {}
    for name, table in services.items():
        at = ("services", name)
        body = reader.mapping(table, at)
        _keys(reader, body, at)
        if reader.texts(body.get("profiles"), (*at, "profiles")) and name != MAIN:
            notices.append(f"{document.where(at)}: service '{name}' has a profile, and is not started")
            continue
        one = ServiceReader(reader, data, name, body, known)
        found[name] = one.read()
        notices += one.notices
    shared = [mount.volume for service in found.values() for mount in service.shared]
    return Project(
        services=_ordered(document, found),
        volumes=tuple(dict.fromkeys(shared)),
        internal=frozenset(
            name
            for name, table in reader.mapping(data.get("networks"), ("networks",)).items()
            if isinstance(table, dict) and reader.flag(table.get("internal"), ("networks", name, "internal"))
        ),
        notices=tuple(notices),
    )


def _top(reader: ValueReader, data: Mapping[str, Any]) -> None:
    for key in data:
        if key in TOP_REFUSED:
            reader.document.refuse((key,), f"'{key}' is refused: {TOP_REFUSED[key]}.")
        if key not in TOP_KNOWN and not str(key).startswith("x-"):
            _unknown(reader, str(key), TOP_KNOWN, (key,))
    for kind, allowed in (
        ("networks", {"name", "driver", "internal", "labels", "enable_ipv6"}),
        ("volumes", {"name", "driver", "labels"}),
    ):
        for name, table in reader.mapping(data.get(kind), (kind,)).items():
            for key, value in reader.mapping(table, (kind, name)).items():
                at = (kind, name, key)
                if key == "external" and not reader.flag(value, at):
                    continue
                if key == "driver" and value in (None, "default", "local" if kind == "volumes" else "bridge"):
                    continue
                if key not in allowed or key == "driver":
                    reader.document.refuse(
                        at,
                        f"'{key}' of {kind} '{name}' is refused.",
                        f"Each rollout makes its own {kind}, of the plain kind.",
                    )


def _keys(reader: ValueReader, body: Mapping[str, Any], at: tuple[Any, ...]) -> None:
    for key in body:
        if key in DANGEROUS and body[key] not in (None, False, [], {}, "false"):
            reader.document.refuse((*at, key), f"'{key}' of service '{at[-1]}' is refused: {DANGEROUS[key]}.")
        if key not in KNOWN and key not in IGNORED and key not in DANGEROUS and not key.startswith("x-"):
            _unknown(reader, key, KNOWN | IGNORED, (*at, key))


def _unknown(reader: ValueReader, key: str, known: Iterable[str], at: tuple[Any, ...]) -> None:
    close = get_close_matches(key, list(known), 1)
    reader.document.refuse(at, f"'{key}' is not understood.", f"Did you mean '{close[0]}'?" if close else None)


def _ordered(document: ComposeDocument, services: Mapping[str, ComposeService]) -> tuple[ComposeService, ...]:
    """Each after those it needs; `main` as late as it can be."""
    order: list[ComposeService] = []
    state: dict[str, bool] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if state.get(name):
            return
        if name in path:
            circle = " → ".join((*path[path.index(name) :], name))
            document.refuse(("services", name, "depends_on"), f"services wait for each other: {circle}.")
        service = services[name]
        after = [need.service for need in service.needs] + ([service.joins] if service.joins else [])
        for other in after:
            if other in services:
                visit(other, (*path, name))
            elif all(need.required for need in service.needs if need.service == other):
                document.refuse(("services", name), f"service '{name}' needs '{other}', which is not started here.")
        state[name] = True
        order.append(service)

    for name in sorted(services, key=lambda n: n == MAIN):
        visit(name, ())
    return tuple(order)


def check_file(path: Path) -> tuple[ComposeDocument, Project]:
    """Read a task's file with what is known before a start: enough to refuse what will be refused."""
    document = ComposeDocument.read(path)
    return document, read_project(document, path.parent, path.parent.parent, variables({}), lenient=True)
