"""Services by name: those of installed plugins, and those that a Python program registered."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode

from benchflow_core.contracts import ServiceContext, ServiceSpec
from benchflow_core.errors import ConfigurationError

if TYPE_CHECKING:
    from benchflow_core.contracts import LoadedPlugin, Sandbox
    from benchflow_feature_world.installed import Plugins

__all__ = [
    "DATA",
    "Service",
    "ServiceHook",
    "detect_services_from_dockerfile",
    "known_services",
    "register_service",
    "service_of",
    "services_in",
]

DATA: Final = "/data"
_WORD: Final = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(:(?P<port>\d{1,5}))?(\?(?P<options>.*))?")


@dataclass(frozen=True)
class Service:
    """One service to run beside the agent."""

    name: str
    spec: ServiceSpec
    port: int
    options: Mapping[str, str] = field(default_factory=dict)
    loaded: LoadedPlugin | None = None
    """The plugin it comes from."""

    def __str__(self) -> str:
        """As `services:` would say it."""
        port = "" if self.port == self.spec.port else f":{self.port}"
        return f"{self.name}{port}" + (f"?{urlencode(self.options)}" if self.options else "")

    @property
    def cli_name(self) -> str:
        return self.spec.program

    @property
    def health_path(self) -> str:
        return self.spec.health_path

    @property
    def description(self) -> str:
        return self.spec.summary

    @property
    def db(self) -> str:
        return f"{DATA}/{self.name}.db"

    def context(self, **more: Any) -> ServiceContext:
        return ServiceContext(port=self.port, data_dir=DATA, options=self.options, db=self.db, **more)


_REGISTERED: dict[str, Service] = {}
"""Of this process only: a job that runs elsewhere needs a plugin."""


def register_service(
    name: str,
    cli_name: str | None = None,
    port: int = 0,
    *,
    command: str | None = None,
    health_path: str = "/health",
    description: str = "",
    ready_timeout: float = 30.0,
) -> Service:
    """Make a service known to this process: a program of the task's image, and how it is started."""
    program = cli_name or (shlex.split(command)[0] if command else name)
    if not 0 < port < 65536:
        raise ConfigurationError(f"service '{name}' needs a port between 1 and 65535, not {port}.")

    def argv(context: ServiceContext) -> tuple[str, ...]:
        if command is not None:
            return ("sh", "-c", f"exec {command}")
        where = ("--host", "127.0.0.1", "--port", str(context.port))
        return (context.program or program, "--db", context.db, "serve", *where, "--no-mcp")

    spec = ServiceSpec(
        summary=description or f"{program} on port {port}",
        command=argv,
        port=port,
        program=program,
        health_path=health_path,
        ready_timeout=ready_timeout,
    )
    _REGISTERED[name] = Service(name, spec, port)
    return _REGISTERED[name]


def known_services(plugins: Plugins, text: str | None = None) -> dict[str, Service]:
    """By every name and alias; a registered one before a plugin's.

    `text`: only plugins with a name or a command that it mentions; the others are not imported.

    In a world, and so in the names of its files, it is called by the last part of its program's name, `gmail` for
    `claw-gmail`, whatever the entry point is called.
    """
    found: dict[str, Service] = {}
    for loaded in plugins.mentioned("service", text):
        own = loaded.spec.program.rpartition("-")[2] or loaded.name
        service = Service(own, loaded.spec, loaded.spec.port, loaded=loaded)
        found |= dict.fromkeys((loaded.name, *loaded.aliases), service)
    return {**found, **_REGISTERED}


def service_of(word: str | Service, plugins: Plugins) -> Service:
    """`name`, `name:port`, `name?scenario=inbox&seed=7`."""
    if isinstance(word, Service):
        return word
    said = _WORD.fullmatch(word)
    if said is None:
        raise ConfigurationError(f"'{word}' is no service: write NAME, NAME:PORT or NAME?key=value.")
    known = known_services(plugins)
    name = said["name"]
    if name not in known:
        close = get_close_matches(name, sorted(known), 1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        installed = ", ".join(sorted({s.name for s in known.values()})) or "none"
        raise ConfigurationError(
            f"there is no service '{name}'.{hint}", remedy=f"Installed: {installed}. Try: bench plugins list"
        )
    port = int(said["port"]) if said["port"] else known[name].port
    if not 0 < port < 65536:
        raise ConfigurationError(f"service '{word}': {port} is no port.")
    options = dict(parse_qsl(said["options"] or "", keep_blank_values=True))
    service = known[name]
    called = service.name if service.spec.program else name
    return replace(service, name=called, port=port, options=options)


def services_in(dockerfile: Path, plugins: Plugins) -> list[Service]:
    """Return the services that a task's Dockerfile asks for; plugins that it cannot mean are not imported."""
    seeded = any(path.name.endswith((".db", ".scenario.json")) for path in dockerfile.parent.iterdir())
    text = None if seeded else dockerfile.read_text(encoding="utf-8", errors="replace")
    return detect_services_from_dockerfile(dockerfile, known_services(plugins, text))


def detect_services_from_dockerfile(dockerfile: str | Path | None, services: Mapping[str, Service]) -> list[Service]:
    """Return the services whose program a Dockerfile names, comments left out. A path, or the text itself.

    A plugin may see from the whole build context that its service is meant (`ServiceSpec.seeded_in`).
    """
    if dockerfile is None:
        return []
    text, context = dockerfile, None
    if isinstance(dockerfile, Path) or "\n" not in dockerfile:
        path = Path(dockerfile)
        if path.is_dir():
            path = path / "Dockerfile"
        if not path.is_file():
            return []
        text, context = path.read_text(encoding="utf-8", errors="replace"), path.parent
    lines = [line for line in str(text).splitlines() if not line.lstrip().startswith("#")]
    body = "\n".join(lines)
    unique = {service.name: service for service in services.values() if service.spec.program}

    def is_meant(service: Service) -> bool:
        if context and service.spec.seeded_in and service.spec.seeded_in(context) is not None:
            return True
        return re.search(rf"(?<![\w.-]){re.escape(service.spec.program)}(?![\w-])", body) is not None

    return sorted(filter(is_meant, unique.values()), key=lambda service: service.port)


class ServiceHook:
    """A `pre_agent_hooks` entry that stands for a service: a rollout takes it into its world, out of the agent's reach.

    Called with a box, by whoever has no rollout, it starts the service right there.
    """

    def __init__(self, service: Service) -> None:
        self.service = service

    async def __call__(self, box: Sandbox) -> None:
        from benchflow_feature_world.beside import start_beside

        await start_beside(box, self.service)
