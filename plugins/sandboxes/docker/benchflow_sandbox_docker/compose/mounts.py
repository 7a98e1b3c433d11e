"""Volumes, tmpfs, secrets and configs of a service.

A folder of the task is copied into the container before it starts, not bound: a rollout can then not change the task,
two rollouts cannot meet in it, and an engine on another machine serves as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from benchflow_sandbox_docker.compose.model import Copy, Shared
from benchflow_sandbox_docker.compose.values import At, ValueReader

__all__ = ["HOST_LOGS", "Mounts"]

HOST_LOGS = "/.benchflow-host"
"""Stands for the host folders that Harbor binds for logs; here every box has such a folder of its own."""
_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock")


class Mounts:
    """The mounts of one service, collected."""

    def __init__(self, reader: ValueReader, volumes: Mapping[str, Any]) -> None:
        self.reader = reader
        self.volumes = volumes
        self.copies: list[Copy] = []
        self.shared: list[Shared] = []
        self.tmpfs: dict[str, str] = {}
        self._unnamed = 0

    def add(self, service: str, entries: Any, at: At) -> None:
        for index, entry in enumerate(self.reader.items(entries, at)):
            place = (*at, index)
            if isinstance(entry, dict):
                self._long(service, self.reader.mapping(entry, place), place)
            else:
                self._short(service, self.reader.text(entry, place), place)

    def _short(self, service: str, entry: str, at: At) -> None:
        parts = entry.split(":")
        if len(parts) == 1:
            self._volume(service, None, parts[0], False, at)
        elif len(parts) > 3 or not parts[0]:
            self.reader.document.refuse(at, f"'{entry}' is not understood as a volume.", "Write SOURCE:TARGET[:ro].")
        else:
            options = parts[2].split(",") if len(parts) == 3 else []
            self._one(service, parts[0], parts[1], "ro" in options, at)

    def _one(self, service: str, source: str, target: str, read_only: bool, at: At) -> None:
        if source.startswith((".", "/", "~")):
            self._bind(source, target, at)
        else:
            self._volume(service, source, target, read_only, at)

    def _long(self, service: str, entry: dict[str, Any], at: At) -> None:
        reader = self.reader
        kind = reader.text(entry.get("type", "volume"), (*at, "type"))
        target = reader.text(entry.get("target"), (*at, "target"))
        source = entry.get("source")
        read_only = reader.flag(entry.get("read_only", False), (*at, "read_only"))
        if kind == "bind":
            self._bind(reader.text(source, (*at, "source")), target, at)
        elif kind == "volume":
            self._volume(service, None if source is None else reader.text(source, at), target, read_only, at)
        elif kind == "tmpfs":
            options = reader.mapping(entry.get("tmpfs"), (*at, "tmpfs"))
            size = options.get("size")
            self.tmpfs[reader.inside(target, at)] = f"size={reader.size(size, (*at, 'tmpfs', 'size'))}" if size else ""
        else:
            reader.document.refuse((*at, "type"), f"mounts of type '{kind}' are refused.", "Use bind, volume or tmpfs.")

    def _bind(self, source: str, target: str, at: At) -> None:
        if source.startswith(HOST_LOGS):
            return
        if source.rstrip("/").endswith(_SOCKETS):
            self.reader.document.refuse(at, f"'{source}' would hand over the engine itself: refused.")
        self.copies.append(Copy(self.reader.path(source, at), self.reader.inside(target, at)))

    def _volume(self, service: str, name: str | None, target: str, read_only: bool, at: At) -> None:
        if name is None:
            self._unnamed += 1
            name = f"{service}-{self._unnamed}"
        elif name not in self.volumes:
            self.reader.document.refuse(at, f"volume '{name}' is not declared under 'volumes'.")
        self.shared.append(Shared(name, self.reader.inside(target, at), read_only))

    def add_tmpfs(self, value: Any, at: At) -> None:
        for entry in self.reader.texts(value, at):
            target, _, options = entry.partition(":")
            allowed = [
                o for o in options.split(",") if o.split("=")[0] in ("size", "mode", "uid", "gid", "exec", "noexec")
            ]
            self.tmpfs[self.reader.inside(target, at)] = ",".join(allowed)

    def add_files(self, value: Any, at: At, declared: Mapping[str, Any], folder: str) -> None:
        """Secrets and configs: files of the task under the names that the service gives them."""
        for index, entry in enumerate(self.reader.items(value, at)):
            place = (*at, index)
            wanted = self.reader.mapping(entry, place) if isinstance(entry, dict) else {"source": entry}
            name = self.reader.text(wanted.get("source"), place)
            table = self.reader.mapping(declared.get(name), (at[-1], name)) if name in declared else None
            if table is None or "file" not in table:
                self.reader.document.refuse(
                    place, f"{at[-1]} '{name}' must be declared with a 'file' of the task.", "Nothing else is read."
                )
            source = self.reader.path(self.reader.text(table["file"], (at[-1], name, "file")), (at[-1], name, "file"))
            target = self.reader.text(wanted.get("target", name), place)
            full = target if target.startswith("/") else str(PurePosixPath(folder, target))
            self.copies.append(Copy(source, self.reader.inside(full, place), 0o444))
