"""Longer work on the files of boxes, each done in a fork of the helper: as the user whose files they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benchflow_sandbox_local.helper import changes, linux, tree

Mounts = list[dict[str, Any]]


class Places(NamedTuple):
    """Where the names of a plan are, seen from the helper."""

    state: str
    dirs: dict[str, str]
    """The host's folders by name."""

    def lower(self, name: str) -> str:
        kind, _, rest = name.partition("/")
        return f"{self.state}/{rest}" if kind == "data" else self.dirs[rest]

    def parts(self, mounts: Mounts, layer: str) -> list[changes.Part]:
        """The captured layers of the mounts that can change, and what lies below each."""
        return [
            changes.Part(
                entry["at"],
                f"{self.state}/{layer}/{entry['name']}",
                tuple(self.lower(name) for name in entry["lower"]),
                entry["kind"] == "private",
            )
            for entry in mounts
            if entry["kind"] in ("overlay", "private")
        ]


def snapshot(places: Places, box: str, layer: str, mounts: Mounts) -> dict[str, Any]:
    """Copy a box's own files, which nobody writes meanwhile, into a new layer; and list what it changes."""
    target = f"{places.state}/{layer}"
    try:
        size = tree.copy(f"{places.state}/boxes/{box}/u", target)
        return {"size": size, "changes": changes.compare(places.parts(mounts, layer))}
    except BaseException:
        tree.remove(target)
        raise


def revert(places: Places, source: str, layer: str, mounts: Mounts, paths: list[str]) -> dict[str, Any]:
    """A layer like `source` without its changes to `paths`."""
    tree.clone(f"{places.state}/{source}", f"{places.state}/{layer}")
    changes.revert(places.parts(mounts, layer), paths)
    return {}


def seed(places: Places, box: str, mounts: Mounts) -> dict[str, Any]:
    """For boxes without overlays: a copy of everything is the box's own, and the directories to mount on are in it."""
    os.makedirs(f"{places.state}/boxes/{box}/u")
    for entry in mounts:
        if entry["kind"] == "private":
            first, *points = [places.lower(name) for name in entry["lower"]]
            target = f"{places.state}/boxes/{box}/u/{entry['name']}"
            tree.copy(first, target)
            for folder in points:
                tree.add_folders(folder, target)
    return {}


def carry(places: Places, box: str, source: str, mounts: Mounts) -> dict[str, Any]:
    """What a captured layer changes is what the box has changed, before anything runs in it."""
    os.makedirs(f"{places.state}/boxes/{box}", exist_ok=True)
    tree.copy(f"{places.state}/{source}", f"{places.state}/boxes/{box}/u")
    for entry in mounts:
        if entry["kind"] == "private":
            for folder in entry["lower"][1:]:
                tree.add_folders(places.lower(folder), f"{places.state}/boxes/{box}/u/{entry['name']}")
    return {}


def keep_layer(places: Places, box: str, layer: str) -> dict[str, Any]:
    """What a build box wrote becomes a layer; the box has ended."""
    target = f"{places.state}/{layer}"
    os.rename(f"{places.state}/boxes/{box}/u", target)
    linux.sync_file_system(target)  # a box's own writes are not synced, a cached image's must be
    tops = [(f"{target}/{name}", places.dirs.get(name, "")) for name in os.listdir(target)]
    return {"repositories": sorted(path for top, at in tops for path in _repositories(top, at))}


def keep_root(places: Places, box: str, layer: str) -> dict[str, Any]:
    """The same where there are no namespaces."""
    os.rename(f"{places.state}/boxes/{box}/root", f"{places.state}/{layer}")
    return {"repositories": []}


def _repositories(top: str, at: str) -> Iterator[str]:
    """Where the repositories of git in a layer keep their objects, as paths in a box."""
    for folder, folders, files in os.walk(top):
        if "HEAD" in files and {"objects", "refs"} <= set(folders):
            folders.remove("objects")
            yield f"{at}{folder.removeprefix(top)}/objects"


def discard(places: Places, paths: list[str]) -> dict[str, Any]:
    for path in paths:
        tree.remove(f"{places.state}/{path}")
    return {}


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "snapshot": snapshot,
    "revert": revert,
    "seed": seed,
    "carry": carry,
    "keep_layer": keep_layer,
    "keep_root": keep_root,
    "discard": discard,
}
