"""What a box without namespaces is told: which paths are its own, and where they really are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # the helper reads this module as well, and every page that it has makes its forks slower
    from pathlib import Path

__all__ = ["claimed", "is_claimable", "plain_plan"]

_FOLDERS: Final = {
    "app": 0o755, "tests": 0o755, "solution": 0o755, "logs/agent": 0o755, "logs/verifier": 0o755,
    "logs/artifacts": 0o755, "tmp": 0o1777, "root": 0o700, "home": 0o755, "srv": 0o755, "mnt": 0o755,
}  # fmt: skip


_NEVER: Final = ("/", "/opt", "/nix")
_SYSTEM: Final = ("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/nix", "/proc", "/dev", "/sys")
_TOPS: Final = tuple(sorted({f"/{name.split('/')[0]}" for name in _FOLDERS}))


def claimed(paths: Iterable[str]) -> tuple[str, ...]:
    """Return those that become the box's own beside the usual ones."""
    found = dict.fromkeys(os.path.normpath(path) for path in paths)
    usual = tuple(f"{top}/" for top in _TOPS)
    return tuple(p for p in found if p not in ("/", *_TOPS) and not p.startswith(usual) and is_claimable(p))


def is_claimable(path: str) -> bool:
    """A path that is named becomes the box's own, whatever this machine has there; of the folders that programs need,
    only what this machine lacks."""
    system = any(path == top or path.startswith(f"{top}/") for top in _SYSTEM)
    return path not in _NEVER and not (system and os.path.lexists(path))


def plain_plan(
    state: Path,
    box: str,
    shown: Mapping[str, str],
    writable: Mapping[str, str],
    python: str,
    *,
    layers: Iterable[str] = (),
    places: Iterable[str] = (),
    workdir: str = "/",
    building: bool = False,
    landlock: bool,
) -> dict[str, Any]:
    """`layers`: roots of earlier boxes, the topmost of which this one begins as. `places`: paths that are its own, too.

    `building`: what is put in stays as it is, since the box that will read it lies elsewhere.
    """
    root = state / "boxes" / box / "root"
    notes = [
        "stage 3: no namespaces here; paths such as /app are rewritten in arguments, variables and uploaded scripts",
        "stage 3: programs see this machine's processes and network",
        "stage 3: an agent is told where its working directory really is; other paths in its prompt are not rewritten",
    ]
    if not landlock:
        notes.append("stage 3: this kernel has no Landlock: nothing keeps programs from your files")
    return {
        "box": box,
        "plain": True,
        "root": str(root),
        "folders": _FOLDERS,
        "seed": next((str(state / name) for name in layers), None),
        "rewrite": not building,
        "workdir": workdir,
        "paths": {path: f"{root}{path}" for path in (*_TOPS, *places, *claimed([workdir]))}
        | {at: str(state / name) for at, name in (*shown.items(), *writable.items())},
        "real": [str(state), python],
        "readable": [python, *(str(state / name) for name in shown.values())],
        "writable": [str(state / name) for name in writable.values()],
        "notes": notes,
    }
