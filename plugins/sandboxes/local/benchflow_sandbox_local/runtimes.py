"""Language runtimes of the host that boxes can use."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache

from benchflow_core.contracts.common import Runtime
from benchflow_core.errors import CapabilityMissing
from benchflow_sandbox_local import host

__all__ = ["find", "require"]


@cache
def _version(path: str) -> tuple[int, ...]:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return _numbers(done.stdout)


def _numbers(text: str) -> tuple[int, ...]:
    found = re.search(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def find(python: host.Python) -> dict[str, str]:
    """Name to path in the box."""
    found = {"python": python.inside}
    node = shutil.which("node")
    if (
        node is not None
        and os.path.realpath(node).split("/")[1] in host.HOST_DIRS
        and node.split("/")[1] in host.HOST_DIRS
    ):
        found["node"] = node
    return found


def require(wanted: Sequence[Runtime], python: host.Python) -> dict[str, str]:
    """All that there are; raises when one that is wanted is missing or too old."""
    found = find(python)
    for runtime in wanted:
        if runtime.name not in found:
            raise CapabilityMissing(
                f"The runtime {runtime.name} is not on this host, and the embedded sandbox uses the host's programs.",
                remedy=f"Install {runtime.name} system-wide, or use another sandbox.",
            )
        if not runtime.minimum:
            continue
        version = sys.version_info[:3] if runtime.name == "python" else _version(found[runtime.name])
        if version < _numbers(runtime.minimum):
            shown = ".".join(map(str, version)) or "unknown"
            raise CapabilityMissing(
                f"{runtime.name} {runtime.minimum} or newer is needed; this host has {shown}.",
                remedy=f"Install a newer {runtime.name}, or use another sandbox.",
            )
    return found
