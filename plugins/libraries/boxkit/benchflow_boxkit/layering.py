"""Agents' layers, however they get into a box: what is checked, what makes them equal, what of the host goes along."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from benchflow_core.contracts.common import Layer, Runtime
from benchflow_core.errors import BuildError, CapabilityMissing, ConfigurationError

__all__ = ["digest", "indexes", "install_failed", "install_timed_out", "prefix_of", "require_runtimes"]

_INDEXES: Final = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "npm_config_registry")
_SAID: Final = 400


def prefix_of(layer: Layer, home: str) -> str:
    """Where it goes. Refuses one that is no place of its own, or whose files lie elsewhere; `home` is ours."""
    prefix = os.path.normpath(layer.prefix)
    taken = prefix == home or prefix.startswith(f"{home}/") or home.startswith(f"{prefix}/")
    if not prefix.startswith("/") or prefix.count("/") < 2 or taken:
        raise ConfigurationError(
            f"Layer {layer.key}: the prefix {layer.prefix!r} is not an absolute path below a folder of its own."
        )
    for name in layer.files:
        parts = PurePosixPath(name).parts
        if name.startswith("/") or ".." in parts or not parts:
            raise ConfigurationError(f"Layer {layer.key}: the file {name!r} lies outside its prefix.")
    return prefix


def digest(layer: Layer, *more: Any) -> str:
    """Equal for equal layers. `more`: what else they depend on."""
    parts = [layer.key, layer.prefix, layer.install, sorted(layer.env.items()), *more]
    found = hashlib.sha256(json.dumps(parts).encode())
    for path, data in sorted(layer.files.items()):
        found.update(path.encode() + b"\0" + hashlib.sha256(data).digest())
    return found.hexdigest()


def indexes(env: Mapping[str, str]) -> dict[str, str]:
    """The host's package indexes, without those that hold a credential."""
    return {name: env[name] for name in _INDEXES if env.get(name) and "@" not in env[name]}


_REMEDY: Final = "See whether the package index can be reached; bench eval resume installs again what failed."


def install_failed(layer: Layer, program: str, exit_code: int, output: bytes) -> BuildError:
    """In one line: how it ended, and the last that was said. More of that is in the details. It may be tried again."""
    log = output.decode(errors="replace")[-8000:]
    said = " ".join(log.split())
    last = said if len(said) <= _SAID else "… " + said[-_SAID:].partition(" ")[2]
    return BuildError(
        f"Layer {layer.key}: {program} ended with {exit_code}: {last}",
        remedy=_REMEDY,
        retryable=True,
        details={"log": log, "layer": layer.key},
    )


def install_timed_out(layer: Layer) -> BuildError:
    message = f"Layer {layer.key}: its install took longer than {layer.timeout:.0f} s."
    return BuildError(message, remedy=_REMEDY, retryable=True, details={"layer": layer.key})


def require_runtimes(runtimes: Sequence[Runtime], layers: Sequence[Layer]) -> None:
    """Python is brought along; anything else has to come as a layer."""
    for runtime in (*runtimes, *(runtime for layer in layers for runtime in layer.runtimes)):
        if runtime.name != "python":
            raise CapabilityMissing(
                f"Boxes are brought the runtime python, not {runtime.name}.",
                remedy="Bring it as a layer of the agent, from a package index.",
            )
        wanted = tuple(int(part) for part in re.findall(r"\d+", runtime.minimum))
        if sys.version_info[: len(wanted)] < wanted:
            raise CapabilityMissing(
                f"python {runtime.minimum} or newer is needed; this host brings {sys.version.split()[0]}.",
                remedy="Run bench with a newer Python.",
            )
