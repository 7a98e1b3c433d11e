"""This host: which of its folders boxes read through, its interpreter, and how to tell that it changed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from pathlib import Path
from typing import Final

from benchflow_core.contracts.quick import dataclass

__all__ = ["HOST_DIRS", "PACKAGE_DIRS", "Python", "find_python", "host_dirs", "host_identity"]

_VERSION: Final = "6"
"""Of the layers made from the host. Raise it when they are made differently."""
_PYTHON_INSIDE: Final = "/opt/benchflow/python"
HOST_DIRS: Final = ("usr", "opt", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix")
"""Top-level folders of the host that boxes read through. Whatever is not here does not exist in a box."""
PACKAGE_DIRS: Final = {"dpkg": "/var/lib/dpkg"}
"""The package database, without which a package manager would not know those programs."""
_SIGNS: Final = (
    "/var/lib/dpkg/status", "/usr/bin", "/usr/local/bin", "/usr/lib", "/var/lib/rpm", "/lib/apk/db/installed",
)  # fmt: skip


def host_identity() -> str:
    """Changes when the host's programs do: what was built on them is then built again."""
    parts = [_VERSION, *os.uname()[4:]]
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        with contextlib.suppress(OSError):
            parts.append(Path(path).read_text(errors="replace"))
            break
    for path in _SIGNS:
        with contextlib.suppress(OSError):
            info = os.stat(path)
            parts.append(f"{path} {info.st_mtime_ns} {info.st_size}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def host_dirs() -> dict[str, str]:
    """Name to path of what boxes read through, parents first. What is mounted below a folder is one of its own."""
    tops = {name: f"/{name}" for name in HOST_DIRS} | PACKAGE_DIRS
    found = {name: path for name, path in tops.items() if _has_content(path)}
    below = [path for path in _mount_points() if any(path.startswith(f"{top}/") for top in found.values())]
    found |= {path.strip("/").replace("/", "-"): path for path in below if _has_content(path)}
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _mount_points() -> list[str]:
    try:
        rows = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return []
    return [row[1] for row in rows if len(row) > 2 and "\\" not in row[1]]


def _has_content(path: str) -> bool:
    try:
        return not os.path.islink(path) and bool(os.listdir(path))
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Python:
    """The interpreter that runs us, and where a box finds it."""

    prefix: str
    inside: str
    hidden: bool
    """It lies where boxes do not look, so it is mounted for them."""

    @property
    def mounts(self) -> tuple[str, ...]:
        """Where it is shown: at a place every user can reach, and at its own, which its scripts and libraries name."""
        return (_PYTHON_INSIDE, self.prefix) if self.hidden else ()


def find_python(*, visible: bool = False) -> Python:
    """`visible`: boxes see the host's paths anyway."""
    prefix = os.path.realpath(sys.base_prefix)
    program = f"bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    if visible or prefix.split("/")[1] in HOST_DIRS:
        return Python(prefix, f"{prefix}/{program}", False)
    return Python(prefix, f"{_PYTHON_INSIDE}/{program}", True)
