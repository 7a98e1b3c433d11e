"""One service of a compose file: every key read, or refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from benchflow_sandbox_docker.compose.model import MAIN, Build, ComposeService, Condition, Dependency, Health
from benchflow_sandbox_docker.compose.mounts import Mounts
from benchflow_sandbox_docker.compose.rules import CAPABILITIES
from benchflow_sandbox_docker.compose.values import ValueReader

__all__ = ["ServiceReader"]

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}")
_BUILD = {"context", "dockerfile", "args", "target"}
_BUILD_IGNORED = {"cache_from", "cache_to", "labels", "no_cache", "platforms", "pull", "shm_size", "tags"}
_CONDITIONS: dict[str, Condition] = {
    "service_started": "service_started",
    "service_healthy": "service_healthy",
    "service_completed_successfully": "service_completed_successfully",
}
_OWN_NAMESPACES = {"ipc": ("private", "none", "shareable"), "pid": (), "uts": (), "userns_mode": ()}


_PTRACE = "SYS_PTRACE"
"""With it a program could take over the box's first process, which holds the walls."""


class ServiceReader:
    """Reads the table of one service."""

    def __init__(
        self, reader: ValueReader, data: Mapping[str, Any], name: str, body: Mapping[str, Any], known: Mapping[str, str]
    ) -> None:
        self.reader, self.data, self.name, self.body, self.known = reader, data, name, body, known
        self.at: tuple[Any, ...] = ("services", name)
        self.notices: list[str] = []

    def _at(self, *more: Any) -> tuple[Any, ...]:
        return (*self.at, *more)

    def _refuse(self, key: str, message: str, remedy: str | None = None) -> None:
        self.reader.document.refuse(self._at(key), message, remedy)

    def read(self) -> ComposeService:
        body, reader = self.body, self.reader
        if not _NAME.fullmatch(self.name):
            reader.document.refuse(self.at, f"{self.name!r} is not a service's name.")
        self._namespaces()
        mounts = self._mounts()
        health, health_off = self._health()
        networks, no_network, joins = self._network()
        limits = self._limits()
        return ComposeService(
            name=self.name,
            image=reader.text(body["image"], self._at("image")) or None if body.get("image") else None,
            build=self._build(),
            entrypoint=reader.argv(body.get("entrypoint"), self._at("entrypoint")),
            command=reader.argv(body.get("command"), self._at("command")),
            environment={
                **reader.env_files(body.get("env_file"), self._at("env_file")),
                **reader.environment(body.get("environment"), self._at("environment"), self.known),
            },
            needs=self._needs(),
            health=health,
            health_off=health_off,
            copies=tuple(mounts.copies),
            shared=tuple(mounts.shared),
            tmpfs=mounts.tmpfs,
            networks=networks,
            no_network=no_network,
            joins=joins,
            expose=self._ports(),
            working_dir=self._text("working_dir"),
            user=self._text("user"),
            hostname=self._text("hostname"),
            extra_hosts=self._extra_hosts(),
            cap_add=self._capabilities("cap_add"),
            cap_drop=self._capabilities("cap_drop"),
            read_only=reader.flag(body.get("read_only"), self._at("read_only")),
            restart=self._restart(),
            cpus=limits["cpus"],
            memory=None if limits["memory"] is None else int(limits["memory"]),
            pids=None if limits["pids"] is None else int(limits["pids"]),
            shm_size=reader.size(body["shm_size"], self._at("shm_size")) if body.get("shm_size") else None,
            ulimits=self._ulimits(),
            sysctls=self._sysctls(),
            platform=self._text("platform"),
        )

    def _text(self, key: str) -> str | None:
        value = self.body.get(key)
        return None if value in (None, "") else self.reader.text(value, self._at(key))

    def _namespaces(self) -> None:
        for key, fine in _OWN_NAMESPACES.items():
            value = self.body.get(key)
            if value is not None and value not in fine:
                self._refuse(key, f"'{key}: {value}' of service '{self.name}' is refused: it would share a namespace.")
        for value in self.reader.texts(self.body.get("security_opt"), self._at("security_opt")):
            if value.replace("=", ":") not in ("no-new-privileges", "no-new-privileges:true"):
                self._refuse("security_opt", f"'security_opt: {value}' is refused: it would take a wall away.")
        deploy = self.reader.mapping(self.body.get("deploy"), self._at("deploy"))
        for key, table in (("scale", self.body), ("replicas", deploy)):
            if table.get(key) not in (None, 1, "1"):
                at = self._at(key) if table is self.body else self._at("deploy", key)
                self.reader.document.refuse(
                    at, f"service '{self.name}' asks for {table[key]} containers; one is supported."
                )

    def _build(self) -> Build | None:
        value, at = self.body.get("build"), self._at("build")
        if value is None:
            return None
        table = {"context": value} if isinstance(value, str) else self.reader.mapping(value, at)
        for key in table:
            if key not in _BUILD | _BUILD_IGNORED:
                self.reader.document.refuse((*at, key), f"'build.{key}' of service '{self.name}' is refused.")
        context = self.reader.path(self.reader.text(table.get("context", "."), (*at, "context")), at)
        if not context.is_dir():
            self.reader.document.refuse(at, f"the build context of service '{self.name}' is not a folder.")
        dockerfile = self.reader.text(table.get("dockerfile", "Dockerfile"), (*at, "dockerfile"))
        return Build(
            context=context,
            dockerfile=self.reader.path(dockerfile, (*at, "dockerfile"), context),
            args=self.reader.environment(table.get("args"), (*at, "args"), self.known),
            target=self.reader.text(table["target"], (*at, "target")) if table.get("target") else None,
        )

    def _needs(self) -> tuple[Dependency, ...]:
        value, at = self.body.get("depends_on"), self._at("depends_on")
        if not isinstance(value, dict):
            return tuple(Dependency(name) for name in self.reader.texts(value, at))
        found = []
        for name, entry in value.items():
            table = self.reader.mapping(entry, (*at, name))
            condition = table.get("condition", "service_started")
            if condition not in _CONDITIONS:
                self.reader.document.refuse((*at, name), f"condition '{condition}' is not understood.")
            required = self.reader.flag(table.get("required", True), (*at, name, "required"))
            found.append(Dependency(name, _CONDITIONS[condition], required))
        return tuple(found)

    def _health(self) -> tuple[Health | None, bool]:
        value, at, reader = self.body.get("healthcheck"), self._at("healthcheck"), self.reader
        if value is None:
            return None, False
        table = reader.mapping(value, at)
        test = table.get("test")
        if reader.flag(table.get("disable"), (*at, "disable")) or test in (["NONE"], "NONE"):
            return None, True
        if test is None:
            reader.document.refuse(at, f"the healthcheck of service '{self.name}' has no 'test'.")
        words = ["CMD-SHELL", test] if isinstance(test, str) else list(reader.texts(test, (*at, "test")))
        if words[:1] not in (["CMD"], ["CMD-SHELL"]) or len(words) < 2:
            reader.document.refuse((*at, "test"), "'test' must start with CMD, CMD-SHELL or NONE.")
        argv = ("/bin/sh", "-c", *words[1:]) if words[0] == "CMD-SHELL" else tuple(words[1:])
        times = {
            k: reader.duration(table[k], (*at, k))
            for k in ("interval", "timeout", "start_period", "start_interval")
            if k in table
        }
        retries = int(reader.number(table["retries"], (*at, "retries"))) if "retries" in table else 3
        return Health(argv, retries=max(retries, 1), **times), False

    def _mounts(self) -> Mounts:
        mounts = Mounts(self.reader, self.reader.mapping(self.data.get("volumes"), ("volumes",)))
        mounts.add(self.name, self.body.get("volumes"), self._at("volumes"))
        mounts.add_tmpfs(self.body.get("tmpfs"), self._at("tmpfs"))
        for key, folder in (("secrets", "/run/secrets"), ("configs", "/")):
            declared = self.reader.mapping(self.data.get(key), (key,))
            mounts.add_files(self.body.get(key), self._at(key), declared, folder)
        return mounts

    def _network(self) -> tuple[dict[str, tuple[str, ...]], bool, str | None]:
        mode = self._text("network_mode")
        if mode is not None:
            joined = mode.removeprefix("service:") if mode.startswith("service:") else None
            if joined is None and mode not in ("none", "bridge"):
                self._refuse("network_mode", f"'network_mode: {mode}' of service '{self.name}' is refused.")
            if joined is not None and self.name == MAIN:
                self._refuse("network_mode", "'main' cannot live in another service's network.", "Turn it around.")
            return ({} if mode != "bridge" else {"default": ()}), mode == "none", joined
        value, at = self.body.get("networks"), self._at("networks")
        declared = {"default", *self.reader.mapping(self.data.get("networks"), ("networks",))}
        tables = value if isinstance(value, dict) else dict.fromkeys(self.reader.texts(value, at))
        found: dict[str, tuple[str, ...]] = {}
        for name, entry in (tables or {"default": None}).items():
            if name not in declared:
                self.reader.document.refuse((*at, name), f"network '{name}' is not declared under 'networks'.")
            table = self.reader.mapping(entry, (*at, name))
            for key in set(table) - {"aliases", "priority"}:
                self.reader.document.refuse((*at, name, key), f"'{key}' is refused: the sandbox decides the network.")
            found[name] = self.reader.texts(table.get("aliases"), (*at, name, "aliases"))
        own = self._text("container_name")
        return {name: (*aliases, *((own,) if own else ())) for name, aliases in found.items()}, False, None

    def _ports(self) -> tuple[int, ...]:
        """Ports inside. None is published on the host: the sandbox reaches them another way."""
        found = []
        for key in ("expose", "ports"):
            for index, entry in enumerate(self.reader.items(self.body.get(key), self._at(key))):
                target = entry.get("target") if isinstance(entry, dict) else str(entry).split("/")[0].split(":")[-1]
                if str(target).isdigit() and 0 < int(str(target)) < 65536:
                    found.append(int(str(target)))
                elif not re.fullmatch(r"\d+-\d+", str(target)):
                    self.reader.document.refuse(self._at(key, index), f"'{entry}' is not a port.")
        return tuple(dict.fromkeys(found))

    def _extra_hosts(self) -> tuple[str, ...]:
        value, at = self.body.get("extra_hosts"), self._at("extra_hosts")
        pairs = (
            value.items()
            if isinstance(value, dict)
            else [re.split("[:=]", t, maxsplit=1) for t in self.reader.texts(value, at)]
        )
        found = [tuple(pair) for pair in pairs]
        for pair in found:
            if len(pair) != 2 or pair[1] == "host-gateway":
                self.reader.document.refuse(at, f"'{':'.join(map(str, pair))}' is refused: it would reach the host.")
        return tuple(f"{name}:{address}" for name, address in found)

    def _capabilities(self, key: str) -> tuple[str, ...]:
        names = [name.upper().removeprefix("CAP_") for name in self.reader.texts(self.body.get(key), self._at(key))]
        for name in names:
            if key == "cap_add" and name not in CAPABILITIES:
                self._refuse(
                    key,
                    f"capability {name} of service '{self.name}' is refused.",
                    f"Allowed: {', '.join(sorted(CAPABILITIES))}.",
                )
        if key == "cap_add" and _PTRACE in names:
            where = self.reader.document.where(self._at(key))
            self.notices.append(f"{where}: {_PTRACE} is not given: programs trace what they start without it")
        return tuple(name for name in names if key != "cap_add" or name != _PTRACE)

    def _restart(self) -> bool:
        value = self._text("restart") or "no"
        deploy = self.reader.mapping(self.body.get("deploy"), self._at("deploy"))
        policy = self.reader.mapping(deploy.get("restart_policy"), self._at("deploy", "restart_policy")).get(
            "condition"
        )
        return value.lower() not in ("no", "false") or policy in ("any", "on-failure")

    def _limits(self) -> dict[str, float | None]:
        """The service's own keys, else those below `deploy.resources.limits`."""
        deploy = self.reader.mapping(self.body.get("deploy"), self._at("deploy"))
        resources = self.reader.mapping(deploy.get("resources"), self._at("deploy", "resources"))
        kept = self.reader.mapping(resources.get("reservations"), self._at("deploy", "resources", "reservations"))
        if kept.get("devices"):
            at = self._at("deploy", "resources", "reservations", "devices")
            self.reader.document.refuse(at, "devices are refused here.", "Ask for GPUs in the task's own settings.")
        limits = self.reader.mapping(resources.get("limits"), self._at("deploy", "resources", "limits"))
        found: dict[str, float | None] = {"cpus": None, "memory": None, "pids": None}
        for key, own in (("cpus", "cpus"), ("memory", "mem_limit"), ("pids", "pids_limit")):
            value = self.body.get(own, limits.get(key))
            at = self._at(own) if own in self.body else self._at("deploy", "resources", "limits", key)
            if value not in (None, "", 0, "0", -1, "-1"):
                found[key] = self.reader.size(value, at) if key == "memory" else self.reader.number(value, at)
        return found

    def _ulimits(self) -> dict[str, tuple[int, int]]:
        found = {}
        for name, value in self.reader.mapping(self.body.get("ulimits"), self._at("ulimits")).items():
            at = self._at("ulimits", name)
            table = value if isinstance(value, dict) else {"soft": value, "hard": value}
            soft, hard = (int(self.reader.number(table.get(k), at)) for k in ("soft", "hard"))
            found[name] = (soft, hard)
        return found

    def _sysctls(self) -> dict[str, str]:
        found = {k: v or "" for k, v in self.reader.pairs(self.body.get("sysctls"), self._at("sysctls")).items()}
        for name in found:
            if not name.startswith("net."):
                self._refuse(
                    "sysctls", f"sysctl '{name}' is refused: only those of the container's own network are allowed."
                )
        return found
