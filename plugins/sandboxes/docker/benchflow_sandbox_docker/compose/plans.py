"""From a service to the engine's settings of its container."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from benchflow_core.contracts.sandboxes import ImageRef, Resources, StartRequest
from benchflow_sandbox_docker.compose.model import MAIN, ComposeService, Project
from benchflow_sandbox_docker.compose.networks import Nets
from benchflow_sandbox_docker.container import ContainerPlan
from benchflow_sandbox_docker.interpreter import PYTHON

__all__ = ["change_of", "program_of", "request_of", "service_image"]

Change = Callable[[ContainerPlan], ContainerPlan]
_STAY: Final = ("sh", "-c", "sleep infinity")
_CAPABILITY_NAMES: Final = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
    "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN "
    "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP"
)
"""In the order of their numbers."""
_NEVER_SEALED: Final = ("/dev", "/logs", "/tests", "/solution", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
"""Stay writable under `read_only`: what the engine mounts by itself, and what belongs to us."""
_DROP: Final = (
    "import ctypes,os,sys\n"
    "for n in sys.argv[1].split(','): ctypes.CDLL(None).prctl(24, int(n), 0, 0, 0)\n"
    "os.execvp(sys.argv[2], sys.argv[2:])"
)


def service_image(service: ComposeService, image: ImageRef) -> ImageRef:
    """As a box of its own: its program is started by us, once everything it needs is there."""
    volumes = [*(image.meta.get("volumes") or ()), *(mount.target for mount in service.shared if not mount.read_only)]
    meta = {**image.meta, "entrypoint": [], "compose": None, "volumes": volumes, "tmpfs": list(service.tmpfs)}
    if service.read_only:
        meta["sealed"] = [*volumes, *service.tmpfs, *(copy.target for copy in service.copies), *_NEVER_SEALED]
    return replace(image, user=service.user or image.user, meta=meta)


def request_of(service: ComposeService, project: Project, request: StartRequest) -> StartRequest:
    """The start of one service. The task's own variables and limits are `main`'s; the file's limits win."""
    main = service.name == MAIN
    direct: dict[str, str] = {}
    if request.network.mode == "allowlist":  # services are reached directly, the rest through the proxy
        names = [name for s in project.services for name in (s.name, *(a for n in s.networks.values() for a in n))]
        direct = dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(("localhost", "127.0.0.1", "::1", *names)))
    given = request.resources if main else Resources()
    limits = replace(
        given,
        cpus=service.cpus if service.cpus is not None else given.cpus,
        memory_mb=max(service.memory // 1024**2, 6) if service.memory is not None else given.memory_mb,
        pids=service.pids if service.pids is not None else given.pids,
    )
    return replace(
        request,
        name=request.name if main else f"{request.name}/{service.name}",
        env={**direct, **service.environment, **(request.env if main else {})},
        workdir=(request.workdir if main else None) or service.working_dir,
        resources=limits,
        labels={**request.labels, "service": service.name},
        revert=(),
        access_views=request.access_views or service.read_only,
    )


def program_of(service: ComposeService, config: Mapping[str, Any]) -> tuple[str, ...]:
    """ENTRYPOINT and CMD as the engine joins them: an entrypoint of the file's clears the image's CMD.

    `main` only stays alive, unless its file gives it a command; without an entrypoint there is then nothing to run.
    """
    entry = service.entrypoint if service.entrypoint is not None else tuple(config.get("Entrypoint") or ())
    command = service.command
    if command is None and service.name == MAIN:
        command = _STAY if entry else ()
    elif command is None:
        command = () if service.entrypoint is not None else tuple(config.get("Cmd") or ())
    return _without(service, (*entry, *command))


def _without(service: ComposeService, argv: tuple[str, ...]) -> tuple[str, ...]:
    """`cap_drop` is for the program: the box's own first process goes on with what it needs."""
    names = _CAPABILITY_NAMES.split()
    dropped = [n for n in names if n not in service.cap_add] if "ALL" in service.cap_drop else service.cap_drop
    numbers = ",".join(str(names.index(name)) for name in dropped if name in names)
    return (PYTHON, "-I", "-S", "-c", _DROP, numbers, *argv) if numbers and argv else argv


def change_of(
    service: ComposeService, project: Project, nets: Nets, volumes: Mapping[str, str], joined: str | None
) -> Change:
    """What differs from the container of a plain task."""

    def change(plan: ContainerPlan) -> ContainerPlan:
        host: dict[str, Any] = {
            **plan.host_config,
            "Binds": [f"{volumes[m.volume]}:{m.target}{':ro' if m.read_only else ''}" for m in service.shared],
            "Tmpfs": dict(service.tmpfs),
            "Sysctls": dict(service.sysctls),
            "Ulimits": [{"Name": n, "Soft": soft, "Hard": hard} for n, (soft, hard) in service.ulimits.items()],
            "ExtraHosts": [*nets.hosts(project, service), *service.extra_hosts],
        }
        if service.shm_size:
            host["ShmSize"] = service.shm_size
        if service.cap_add:
            host["CapAdd"] = [*plan.create_config()["HostConfig"]["CapAdd"], *service.cap_add]
        config = dict(plan.config)
        if service.hostname:
            config["Hostname"] = service.hostname
        return _connected(replace(plan, host_config=host, config=config), service, nets, joined)

    return change


def _connected(plan: ContainerPlan, service: ComposeService, nets: Nets, joined: str | None) -> ContainerPlan:
    if joined is not None:
        host = {k: v for k, v in plan.host_config.items() if k not in ("ExtraHosts", "Sysctls")}
        return replace(plan, network=f"container:{joined}", host_config=host, forbidden=())
    if service.no_network:
        return replace(plan, network="none", forbidden=())
    mine = list(nets.of(service).values())
    if not mine:
        return plan
    first = mine[0].id
    config = {**plan.config, "NetworkingConfig": {"EndpointsConfig": {first: nets.endpoints(service)[first]}}}
    peers: Sequence[str] = [net.subnet for net in mine]
    never = [f"{address}/32" for address in (*(net.gateway for net in mine), *nets.apart)]
    return replace(plan, network=first, config=config, peers=peers, never=never)
