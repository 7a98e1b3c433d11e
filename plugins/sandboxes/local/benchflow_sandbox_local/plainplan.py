"""What a box without namespaces is told: which paths are its own, and where they really are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["plain_plan"]

_FOLDERS: Final = {
    "app": 0o755, "tests": 0o755, "solution": 0o755, "logs/agent": 0o755, "logs/verifier": 0o755,
    "logs/artifacts": 0o755, "tmp": 0o1777, "root": 0o700, "home": 0o755, "srv": 0o755, "mnt": 0o755,
}  # fmt: skip


def plain_plan(
    state: Path, box: str, shown: Mapping[str, str], writable: Mapping[str, str], python: str, *, landlock: bool
) -> dict[str, Any]:
    root = state / "boxes" / box / "root"
    tops = sorted({name.split("/")[0] for name in _FOLDERS})
    notes = [
        "stage 3: no namespaces here; paths such as /app are rewritten in arguments, variables and uploaded scripts",
        "stage 3: programs see this machine's processes and network",
    ]
    if not landlock:
        notes.append("stage 3: this kernel has no Landlock: nothing keeps programs from your files")
    return {
        "box": box,
        "plain": True,
        "root": str(root),
        "folders": _FOLDERS,
        "paths": {f"/{top}": str(root / top) for top in tops}
        | {at: str(state / name) for at, name in (*shown.items(), *writable.items())},
        "real": [str(state), python],
        "readable": [python, *(str(state / name) for name in shown.values())],
        "writable": [str(state / name) for name in writable.values()],
        "notes": notes,
    }
