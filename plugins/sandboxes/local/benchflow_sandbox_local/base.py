"""The lowest layers of every box, generated once per host: an empty root with a cleaned /etc, masks over what the host
keeps to itself, and for a normal user directories of our own where root's could not be written to."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchflow_sandbox_local.etc import copy_etc, entries
from benchflow_sandbox_local.host import HOST_DIRS, PACKAGE_DIRS, host_identity

__all__ = ["build_base"]

_PRIVATE_DIRS: Final = {
    "app": 0o755, "tests": 0o755, "solution": 0o755, "logs": 0o755, "logs/agent": 0o777, "logs/verifier": 0o755,
    "logs/artifacts": 0o777, "tmp": 0o1777, "root": 0o700, "home": 0o755, "srv": 0o755, "mnt": 0o755, "media": 0o755,
    "boot": 0o755, "run": 0o755, "run/lock": 0o1777, "proc": 0o555, "sys": 0o555, "dev": 0o755, "dev/shm": 0o1777,
    "etc": 0o755,
    "var": 0o755, "var/tmp": 0o1777, "var/log": 0o755, "var/log/apt": 0o755, "var/cache": 0o755, "var/lib": 0o755,
    "var/cache/apt/archives/partial": 0o755, "var/lib/apt/lists/partial": 0o755, "var/lib/dpkg": 0o755,
    "var/lib/misc": 0o755, "var/spool": 0o755, "var/mail": 0o2775, "var/opt": 0o755, "var/local": 0o2775,
}  # fmt: skip
_LINKS: Final = {"var/run": "/run", "var/lock": "/run/lock"}

_MASKED: Final = ("/opt", "/usr/local")
"""Where administrators put things of their own: what others may not read there does not exist in a box."""
_MASK_DEPTH: Final = 3
_UNUSED_SECONDS: Final = 14 * 24 * 3600
_HALF: Final = ".new-"
_HALF_SECONDS: Final = 600
_MOST_OWN_DIRS: Final = 8000


def build_base(state: Path, *, own: bool) -> str:
    """The name, below `state`, of the base for this host as it is now. `own`: we are not root (see the module)."""
    etc, hidden = list(entries()), [] if own else list(_hidden())
    text = "\n".join(f"{e} {i.st_mtime_ns} {i.st_size} {i.st_mode}" for e, i in etc)
    signs = f"{host_identity()} {own} {os.geteuid()} {hidden}\n{text}"
    key = hashlib.sha256(signs.encode(errors="surrogateescape")).hexdigest()[:12]
    name = f"base/{key}"
    final = state / name
    there = final.is_dir()
    if there:
        os.utime(final)
    _remove_old(final.parent)
    if there:
        return name
    final.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=_HALF, dir=final.parent))
    try:
        making.chmod(0o755)
        _make_root(making / "root")
        copy_etc(making / "root/etc", etc)
        if own:
            _make_own_dirs(making)
        for path, is_dir in hidden:
            _hide(making / path.lstrip("/"), is_dir)
        with contextlib.suppress(OSError):
            making.rename(final)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return name


def _remove_old(folder: Path) -> None:
    """Bases of a host that looked different, once nobody has used them for a while; halves that a killed run left."""
    with contextlib.suppress(OSError):
        for old in folder.iterdir():
            patience = _HALF_SECONDS if old.name.startswith(_HALF) else _UNUSED_SECONDS
            if time.time() - old.stat().st_mtime > patience:
                shutil.rmtree(old, ignore_errors=True)


def _make_root(root: Path) -> None:
    root.mkdir()
    for name in HOST_DIRS:
        host = Path("/", name)
        if host.is_symlink():
            (root / name).symlink_to(os.readlink(host))
        elif host.is_dir():
            (root / name).mkdir()
    (root / "opt").mkdir(exist_ok=True)
    for name, mode in _PRIVATE_DIRS.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name).chmod(mode)
    for name, target in _LINKS.items():
        (root / name).symlink_to(target)
    for folder, _, _ in os.walk(root):
        if folder.removeprefix(f"{root}/") not in _PRIVATE_DIRS:
            os.chmod(folder, 0o755)


def _make_own_dirs(making: Path) -> None:
    for name in HOST_DIRS:
        if os.path.isdir(f"/{name}") and not os.path.islink(f"/{name}"):
            _own_dirs(f"/{name}", str(making / name))
    if os.path.isdir(PACKAGE_DIRS["dpkg"]):
        _own_dirs(PACKAGE_DIRS["dpkg"], str(making / "dpkg"))
        for below in ("", "triggers", "alternatives", "updates"):
            _own_files(f"{PACKAGE_DIRS['dpkg']}/{below}", making / "dpkg" / below)


def _own_files(source: str, target: Path) -> None:
    """Copies, since root's files could not be written to."""
    with contextlib.suppress(FileNotFoundError), os.scandir(source) as found:
        for entry in found:
            if not entry.is_file(follow_symlinks=False):
                continue
            try:
                shutil.copyfile(entry.path, target / entry.name)
            except PermissionError:
                (target / entry.name).write_bytes(b"")  # lock files that only root reads


def _own_dirs(source: str, target: str) -> None:
    """Directories like those of `source`, the upper ones first, up to a limit: deeper ones stay as they are, root's."""
    pending = deque([(source, target)])
    for _ in range(_MOST_OWN_DIRS):
        if not pending:
            return
        folder, copy = pending.popleft()
        os.mkdir(copy)
        try:
            os.chmod(copy, stat.S_IMODE(os.stat(folder).st_mode) | 0o700)
            with os.scandir(folder) as found:
                names = sorted(entry.name for entry in found if entry.is_dir(follow_symlinks=False))
        except OSError:
            os.setxattr(copy, "user.overlay.opaque", b"y")
            continue
        pending.extend((f"{folder}/{name}", f"{copy}/{name}") for name in names)


def _hidden() -> Iterator[tuple[str, bool]]:
    """Paths that are not for everybody, and whether they are directories."""
    pending = [(path, _MASK_DEPTH) for path in _MASKED]
    while pending:
        folder, depth = pending.pop()
        try:
            with os.scandir(folder) as found:
                rows = sorted((entry.path, entry.stat(follow_symlinks=False).st_mode) for entry in found)
        except OSError:
            continue
        for path, mode in rows:
            if stat.S_ISDIR(mode) and mode & 0o005 != 0o005:
                yield path, True
            elif stat.S_ISDIR(mode) and depth > 1:
                pending.append((path, depth - 1))
            elif stat.S_ISREG(mode) and not mode & 0o004:
                yield path, False


def _hide(target: Path, is_dir: bool) -> None:
    """In a layer: an empty directory in place of one, nothing in place of a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if is_dir:
        target.mkdir()
        os.setxattr(target, "user.overlay.opaque", b"y")
    else:
        os.mknod(target, stat.S_IFCHR, 0)
