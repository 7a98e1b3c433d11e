"""Which engine: DOCKER_HOST, the current context, or a socket in one of the usual places."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from benchflow_core.contracts.common import Availability
from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import ConfigurationError

__all__ = ["EngineAddress", "available", "find"]

_REMEDY = (
    "Install Docker or Podman and start it (Debian: apt-get install docker.io, then dockerd), "
    "or point DOCKER_HOST at an engine."
)
_PING = b"GET /_ping HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n"
_PING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """Where an engine listens, and where we learned it."""

    source: str
    path: str = ""
    """A Unix socket."""
    host: str = ""
    port: int = 0
    certificates: str = ""
    """A folder with ca.pem, cert.pem and key.pem: TLS."""

    @property
    def local(self) -> bool:
        return bool(self.path)

    def __str__(self) -> str:
        return f"unix://{self.path}" if self.path else f"tcp://{self.host}:{self.port}"

    def tls(self) -> ssl.SSLContext | None:
        if not self.certificates:
            return None
        folder = Path(self.certificates)
        context = ssl.create_default_context(cafile=str(folder / "ca.pem") if (folder / "ca.pem").exists() else None)
        if (folder / "cert.pem").exists():
            context.load_cert_chain(str(folder / "cert.pem"), str(folder / "key.pem"))
        return context


def find(env: Mapping[str, str] | None = None) -> EngineAddress:
    """The engine the docker command would use; without any setting, the first socket that exists."""
    env = os.environ if env is None else env
    if env.get("DOCKER_HOST"):
        verify = env.get("DOCKER_TLS_VERIFY")
        certificates = env.get("DOCKER_CERT_PATH") or str(_config_folder(env))
        return _parse(env["DOCKER_HOST"], "DOCKER_HOST", certificates if verify else "")
    name = env.get("DOCKER_CONTEXT") or _current_context(env)
    if name and name != "default":
        return _from_context(name, env)
    return EngineAddress("the default socket", path=next(p for p in [*_sockets(env), _DEFAULT] if _exists(p)))


_DEFAULT = "/var/run/docker.sock"


def _exists(path: str) -> bool:
    return path == _DEFAULT or Path(path).exists()


def _sockets(env: Mapping[str, str]) -> list[str]:
    home, run = Path(env.get("HOME") or "~").expanduser(), env.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    found = [f"{run}/docker.sock", str(home / ".docker/run/docker.sock"), f"{run}/podman/podman.sock"]
    if Path(_DEFAULT).exists():
        return [_DEFAULT, *found]
    return [*found, "/run/podman/podman.sock"]


def _parse(url: str, source: str, certificates: str = "") -> EngineAddress:
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return EngineAddress(source, path=parts.path or parts.netloc)
    if parts.scheme in ("tcp", "http", "https"):
        tls = certificates if certificates or parts.scheme != "https" else "."
        return EngineAddress(source, host=parts.hostname or "localhost", port=parts.port or 2375, certificates=tls)
    what = "an engine over ssh" if parts.scheme == "ssh" else f"the scheme {parts.scheme or '(none)'!r}"
    raise ConfigurationError(
        f"{source} is {url!r}: {what} is not supported.",
        remedy="Forward its socket (ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock HOST) "
        "and set DOCKER_HOST=unix:///tmp/docker.sock.",
    )


def _config_folder(env: Mapping[str, str]) -> Path:
    return Path(env.get("DOCKER_CONFIG") or Path(env.get("HOME") or "~").expanduser() / ".docker")


def _current_context(env: Mapping[str, str]) -> str:
    try:
        return str(json.loads((_config_folder(env) / "config.json").read_text()).get("currentContext") or "")
    except (OSError, ValueError, AttributeError):
        return ""


def _from_context(name: str, env: Mapping[str, str]) -> EngineAddress:
    contexts, key = _config_folder(env) / "contexts", hashlib.sha256(name.encode()).hexdigest()
    try:
        meta = json.loads((contexts / "meta" / key / "meta.json").read_text())
        url = str(meta["Endpoints"]["docker"]["Host"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"The Docker context {name!r} cannot be read: {error}.", remedy="See docker context ls, or set DOCKER_HOST."
        ) from error
    tls = contexts / "tls" / key / "docker"
    return _parse(url, f"the Docker context {name}", str(tls) if tls.is_dir() else "")


def available(env: Mapping[str, str] | None = None) -> Availability:
    """One ping over the socket."""
    try:
        address = find(env)
    except ConfigurationError as error:
        return Availability(False, error.message, error.remedy or "")
    try:
        answer = _ping(address)
    except OSError as error:
        return Availability(False, f"no engine answers at {address} ({error.strerror or error})", _REMEDY)
    if b" 200 " not in answer.split(b"\r\n", 1)[0]:
        return Availability(False, f"what answers at {address} is no container engine", _REMEDY)
    return Availability(True, f"engine at {address}")


def _ping(address: EngineAddress) -> bytes:
    if address.path:
        raw = socket.socket(socket.AF_UNIX)
        raw.settimeout(_PING_SECONDS)
        raw.connect(address.path)
    else:
        raw = socket.create_connection((address.host, address.port), timeout=_PING_SECONDS)
        context = address.tls()
        raw = context.wrap_socket(raw, server_hostname=address.host) if context else raw
    with raw:
        raw.sendall(_PING)
        return raw.recv(4096)
