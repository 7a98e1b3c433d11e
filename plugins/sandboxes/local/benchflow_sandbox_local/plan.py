"""Which layers a box is made of, mount by mount."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchflow_core.contracts.quick import dataclass

__all__ = ["Layout", "Mounts"]

Mounts = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Layout:
    """What all boxes of a provider have in common. Names are relative to `state`; `low/…` are the host's folders."""

    state: Path
    stage: int
    base: str
    dirs: Mapping[str, str]
    """Name to path of the host's folders that boxes read through."""
    read_only: frozenset[str]
    """Those that no overlay can be put on."""
    always: Mapping[str, str]
    """Path in the box to source, shown read-only in every box."""

    def mounts(
        self, layers: Sequence[str], shown: Mapping[str, str], writable: Mapping[str, str] | None = None
    ) -> Mounts:
        """Everything to mount, in order. `layers`: topmost first; `shown` and `writable`: path to source."""
        extra, open_ = {**self.always, **shown}, writable or {}
        if self.stage == 2:
            pieces = self._host_in_pieces([*extra, *open_])
            tree = self._without_overlays(layers, pieces, self._points([*extra, *open_, *pieces]))
        else:
            tree = self._tree(layers, self._points([*extra, *open_]))
        return [*tree, *self._shown(extra, False), *self._shown(open_, True)]

    def _tree(self, layers: Sequence[str], points: str) -> Mounts:
        mounts: Mounts = []
        for at, name in {"/": "root", **{self._at(name): name for name in self.dirs}}.items():
            if name in self.read_only:
                mounts.append({"at": at, "name": name, "kind": "bind", "source": f"low/{name}"})
                continue
            lower = [f"data/{path}" for path in self._existing((*layers, points, self.base), name)]
            if name in self.dirs:
                lower.append(f"low/{name}")
            mounts.append({"at": at, "name": name, "kind": "overlay", "lower": lower})
        return mounts

    def _without_overlays(self, layers: Sequence[str], pieces: Mapping[str, str], points: str) -> Mounts:
        below = layers[:1] or [self.base]
        lower = [f"data/{path}" for path in self._existing((*below, points), "root")]
        return [{"at": "/", "name": "root", "kind": "private", "lower": lower}, *self._shown(pieces, False)]

    def _host_in_pieces(self, points: Sequence[str]) -> dict[str, str]:
        """The host's folders to bind. One that has to hold mount points of ours is shown folder by folder instead."""
        found: dict[str, str] = {}
        for name, path in self.dirs.items():
            at = self._at(name)
            taken = {point.removeprefix(f"{at}/").split("/")[0] for point in points if point.startswith(f"{at}/")}
            if not taken:
                found[at] = f"low/{name}"
                continue
            for child in sorted(os.listdir(path)):
                if child not in taken and os.path.isdir(f"{path}/{child}") and not os.path.islink(f"{path}/{child}"):
                    found[f"{at}/{child}"] = f"low/{name}/{child}"
        return found

    def _shown(self, extra: Mapping[str, str], writable: bool) -> Mounts:
        found: Mounts = []
        for at, source in sorted(extra.items()):
            place = source if source.startswith("low/") else f"data/{source}"
            found.append({"at": at, "name": "", "kind": "bind", "source": place, "writable": writable})
        return found

    def _at(self, name: str) -> str:
        return self.dirs[name]

    def _existing(self, layers: Sequence[str], name: str) -> list[str]:
        return [f"{layer}/{name}" for layer in layers if layer and os.path.isdir(f"{self.state}/{layer}/{name}")]

    def _owner(self, path: str) -> tuple[str, str]:
        """The mount a path of the box lies in, and the path below it."""
        if self.stage == 2:
            return "root", path.strip("/")
        places = {self._at(name): name for name in self.dirs if name not in self.read_only}
        at = max((a for a in places if path.startswith(f"{a}/")), key=len, default="/")
        return places.get(at, "root"), path.removeprefix(at).strip("/")

    def _points(self, shown: Sequence[str]) -> str:
        """A layer that holds nothing but the directories to mount on, so that making them changes no box."""
        if not shown:
            return ""
        wanted = sorted(self._owner(path) for path in shown)
        name = f"points/{hashlib.sha256(repr(wanted).encode()).hexdigest()[:12]}"
        if os.path.isdir(f"{self.state}/{name}"):
            return name
        final = self.state / name
        making = Path(tempfile.mkdtemp(prefix=".new-", dir=final.parent))
        try:
            making.chmod(0o755)
            for mount, below in wanted:
                folder = making / mount
                for part in ["", *below.split("/")]:
                    folder = folder / part
                    folder.mkdir(exist_ok=True)
                    folder.chmod(0o755)
                    like = f"{self._host(mount)}/{os.path.relpath(folder, making / mount)}"
                    with contextlib.suppress(OSError):
                        folder.chmod(os.stat(like).st_mode & 0o7777)
            with contextlib.suppress(OSError):
                making.rename(final)
        finally:
            shutil.rmtree(making, ignore_errors=True)
        return name

    def _host(self, mount: str) -> str:
        return self.dirs.get(mount) or str(self.state / self.base / mount)
