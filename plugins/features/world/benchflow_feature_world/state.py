"""The state backends that come with the core: databases by online backup, files and folders, and the whole box."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.contracts import Sandbox, StateBackend
from benchflow_core.errors import ConfigurationError, InfrastructureError

if TYPE_CHECKING:
    from benchflow_feature_world.installed import Plugins

__all__ = ["BOX", "FILES", "PYTHON_VARIABLE", "SQLITE", "StateBusy", "in_box", "state_backend"]

PYTHON_VARIABLE: Final = "BENCHFLOW_PYTHON"
"""In the world's box: the interpreter that our programs and those of services run on."""
_FOLDER: Final = "/var/lib/benchflow/snapshots"
_BUSY: Final = 75
_SECONDS: Final = 300.0
_PYTHON: Final = ("sh", "-c", 'exec "${BENCHFLOW_PYTHON:-python3}" -I -S -c "$@"', "sh")
_COPY: Final = """
set -e; folder=$1; shift; mkdir -p -m 700 "$folder"; n=0
for path in "$@"; do
  if [ -e "$path" ] || [ -L "$path" ]; then cp -a -- "$path" "$folder/$n"; fi; n=$((n+1))
done
"""
_BACK: Final = """
set -e; folder=$1; shift; n=0
for path in "$@"; do
  rm -rf -- "$path"
  if [ -e "$folder/$n" ] || [ -L "$folder/$n" ]; then
    mkdir -p -- "$(dirname -- "$path")"; cp -a -- "$folder/$n" "$path"
  fi
  n=$((n+1))
done
"""


class StateBusy(InfrastructureError):
    """A service was in the middle of a write: the same again after it went on."""


@cache
def _program() -> str:
    return resources.files("benchflow_feature_world").joinpath("inside.py").read_text(encoding="utf-8")


async def in_box(box: Sandbox, what: str, order: Mapping[str, Any]) -> dict[str, Any]:
    """One order to our program in the world's box."""
    stdin = json.dumps(order).encode()
    done = await box.exec((*_PYTHON, _program(), what), cwd="/", timeout=_SECONDS, stdin=stdin)
    if done.exit_code == _BUSY:
        raise StateBusy(f"{what}: a database is being written to.")
    if done.exit_code or done.timed_out:
        said = done.stderr.decode("utf-8", "replace").strip()[-300:] or f"exit code {done.exit_code}"
        raise InfrastructureError(f"the world's state cannot be handled ({what}): {said}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


async def _backup(box: Sandbox, paths: Sequence[str], name: str) -> Mapping[str, Any]:
    return await in_box(box, "backup", {"paths": list(paths), "folder": f"{_FOLDER}/{name}"})


async def _put_back(box: Sandbox, paths: Sequence[str], kept: Mapping[str, Any]) -> None:
    await in_box(box, "restore", {"paths": list(paths), **kept})


async def _copy(box: Sandbox, paths: Sequence[str], name: str) -> Mapping[str, Any]:
    folder = f"{_FOLDER}/{name}"
    await _shell(box, _COPY, folder, *paths)
    return {"folder": folder, "files": [[path, str(n), 0, 0, 0] for n, path in enumerate(paths)]}


async def _copy_back(box: Sandbox, paths: Sequence[str], kept: Mapping[str, Any]) -> None:
    await _shell(box, _BACK, kept["folder"], *(row[0] for row in kept["files"]))


async def _shell(box: Sandbox, script: str, *args: str) -> None:
    done = await box.exec(("sh", "-c", script, "sh", *args), cwd="/", timeout=_SECONDS)
    if done.exit_code or done.timed_out:
        said = done.stderr.decode("utf-8", "replace").strip()[-300:]
        raise InfrastructureError(f"the world's files cannot be copied: {said}")


async def _whole(box: Sandbox, paths: Sequence[str], name: str) -> Mapping[str, Any]:
    return {"snapshot": await box.snapshot(f"world-{name}")}


async def _whole_back(box: Sandbox, paths: Sequence[str], kept: Mapping[str, Any]) -> None:
    await box.restore(kept["snapshot"])


SQLITE: Final = StateBackend("sqlite", _backup, _put_back)
FILES: Final = StateBackend("files", _copy, _copy_back)
BOX: Final = StateBackend("sandbox", _whole, _whole_back)
_OWN: Final = {backend.kind: backend for backend in (SQLITE, FILES, BOX)}
_ALSO: Final = {"directory": "files", "file": "files", "box": "sandbox"}


def state_backend(kind: str, plugins: Plugins) -> StateBackend:
    """By the manifest's `state.kind`: the core's own, else an installed plugin's."""
    if (own := _OWN.get(_ALSO.get(kind, kind))) is not None:
        return own
    known = dict(_OWN)
    for loaded in plugins.mentioned("environment", None):
        known |= {backend.kind: backend for backend in loaded.spec.state_backends}
    if kind not in known:
        raise ConfigurationError(f"there is no state backend '{kind}'.", remedy=f"Known: {', '.join(sorted(known))}.")
    return known[kind]
