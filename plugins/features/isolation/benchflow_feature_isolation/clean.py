"""The clean reading: from a list of changes to what is undone, each with the row of the table that asks for it.

Pure: the same changes, places and names of the image give the same answer. No text of the task's is an input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchflow_core.contracts import Change
from benchflow_feature_isolation.links import leads_astray, links_of
from benchflow_feature_isolation.origin import SYSTEM, Places, ancestors, name_of, parent_of, under
from benchflow_feature_isolation.powers import Power, Table, load_table
from benchflow_feature_isolation.shadowing import ImageNames, Shadows

__all__ = ["Judgement", "Undo", "judge"]

_PACKAGE = re.compile(r"^(.*/(?:site-packages|dist-packages|node_modules))/((?:@[^/]+/)?[^/]+)")
_METADATA = re.compile(r"^(.+?)-[^-/]+\.(?:dist|egg)-info$")
_CACHED = re.compile(r"^(.*)/__pycache__/([^/.]+)\.[^/]*\.pyc$")


@dataclass(frozen=True, slots=True)
class Undo:
    """One change that the clean reading undoes."""

    path: str
    kind: str
    row: str
    why: str
    unit: str
    """What is undone together, and what the reference solution's changes are compared by."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Not reverted: these variables tell the tool to look elsewhere."""

    @property
    def reverts(self) -> bool:
        """Tell whether it is undone by putting a path back."""
        return not self.env and self.path.startswith("/")

    def to_json(self) -> dict[str, str]:
        return {"path": self.path, "change": self.kind, "row": self.row, "why": self.why}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What becomes of an agent's changes."""

    always: tuple[str, ...]
    """Undone in every reading: what lies in the verifier's own folders, and compiled copies without their source."""
    undos: tuple[Undo, ...]
    declared: tuple[str, ...]
    """Not undone because the task's `keep_changes` covers it."""


def judge(
    changes: Sequence[Change], places: Places, names: ImageNames, task_files: frozenset[str] = frozenset()
) -> Judgement:
    """Return what a clean reading undoes of these changes."""
    table = load_table(places.home, places.workdir)
    always = _own_folders(changes, places)
    agents = [c for c in changes if c.path not in task_files and not _inside(c.path, always)]
    there = {c.path for c in agents if c.kind != "deleted"}
    always |= dict.fromkeys(c.path for c in agents if _is_orphan(c, there))
    agents = [c for c in agents if c.path not in always]
    rules = _Rules(table, places, names, agents)
    found = {c.path: undo for c in agents if (undo := rules.apply(c))}
    found |= _rest_of_packages(agents, found)
    found |= _stale_copies(agents, found)
    declared = [path for path in found if places.declared(path)]
    undos = [undo for path, undo in found.items() if path not in set(declared)]
    return Judgement(tuple(always), tuple(sorted(undos, key=lambda u: (u.row, u.path))), tuple(declared))


class _Rules:
    """The rules that look at one change at a time; the first that applies decides."""

    def __init__(self, table: Table, places: Places, names: ImageNames, changes: Sequence[Change]) -> None:
        self.table, self.places = table, places
        self.links, self.shadows = links_of(changes), Shadows(changes, names)

    def apply(self, change: Change) -> Undo | None:
        path, kind = change.path, change.kind
        if power := self.table.power(change):
            return self._by_power(change, power)
        if kind != "added" and _is_replaced(change):
            place = self.table.of_the_image(path, in_work=self.places.in_work(path))
            if place or parent_of(path) in self.places.path:
                why = place.why if place else "it is a command that came with the image"
                return Undo(path, kind, "program", why, self._unit(path))
        if path in self.links and leads_astray(path, self.links, self.places):
            return self._by_rule(change, "link")
        if path in self.links and name_of(path) in self.places.test_names:
            return self._by_rule(change, "link-in-the-way")
        if self._gives_rights(change):
            return self._by_rule(change, "rights")
        if hidden := self.shadows.hidden(change):
            what, name, place_of_it = hidden
            row = self.table.searches[what]
            unit = {"python": f"package:{_distribution(name)}", "command": f"command:{name}"}.get(what)
            return Undo(place_of_it, kind, row["id"], row["why"], unit or f"{row['id']}:{name}")
        return None

    def _by_rule(self, change: Change, rule: str) -> Undo:
        return Undo(change.path, change.kind, rule, self.table.rules[rule]["why"], f"{rule}:{change.path}")

    def _by_power(self, change: Change, power: Power) -> Undo:
        unit = {"row": power.id, "name": f"{power.id}:{name_of(change.path)}"}.get(
            power.covers, f"{power.id}:{change.path}"
        )
        env = power.env if change.kind == "added" and change.type == "file" else {}
        return Undo(change.path, change.kind, power.id, power.why, unit, env)

    def _unit(self, path: str) -> str:
        package = _PACKAGE.match(path)
        if package:
            return f"package:{_distribution(package[2])}"
        return f"command:{name_of(path)}" if parent_of(path) in self.places.path else f"program:{path}"

    def _gives_rights(self, change: Change) -> bool:
        if change.type == "file":
            return change.kind != "deleted" and bool(change.mode & 0o6000)
        if change.type != "dir" or change.kind != "modified" or change.mode & 0o1000:
            return False
        system = change.path in self.places.path or any(under(change.path, prefix) for prefix in SYSTEM)
        opened = bool(change.uid or change.mode & 0o022)
        return opened and (system or change.path == "/etc") and not self.places.in_work(change.path)


def _own_folders(changes: Sequence[Change], places: Places) -> dict[str, None]:
    """The verifier's folders are new: what the agent has there, or in their way, goes."""
    found: dict[str, None] = {}
    for change in changes:
        for target in (places.tests, places.logs):
            inside = under(change.path, target) and (change.path != places.logs or change.type != "dir")
            if inside or (change.path in ancestors(target) and (change.kind == "deleted" or change.type != "dir")):
                found[change.path] = None
    return found


def _inside(path: str, paths: Mapping[str, object]) -> bool:
    return bool(paths) and (path in paths or any(folder in paths for folder in ancestors(path)))


def _is_replaced(change: Change) -> bool:
    """A folder that is one still has only another mode or owner."""
    return change.kind == "deleted" or change.type != "dir" or change.was not in (None, "dir")


def _is_orphan(change: Change, paths: set[str]) -> bool:
    """A compiled copy of a module that is not the agent's: Python would run it in place of the source."""
    cached = _CACHED.match(change.path) if change.kind != "deleted" else None
    return cached is not None and f"{cached[1]}/{cached[2]}.py" not in paths


def _stale_copies(changes: Sequence[Change], found: Mapping[str, Undo]) -> dict[str, Undo]:
    """A compiled copy goes with its source."""
    more = {}
    for change in changes:
        cached = _CACHED.match(change.path) if change.kind != "deleted" and change.path not in found else None
        source = found.get(f"{cached[1]}/{cached[2]}.py") if cached else None
        if source:
            more[change.path] = Undo(change.path, change.kind, source.row, source.why, source.unit)
    return more


def _distribution(name: str) -> str:
    """The name of a distribution, from a folder's or a module's."""
    metadata = _METADATA.match(name)
    return re.sub(r"[-_.]+", "-", metadata[1] if metadata else name.removesuffix(".py")).lower()


def _rest_of_packages(changes: Sequence[Change], found: Mapping[str, Undo]) -> dict[str, Undo]:
    """A package of the image's that was changed is put back as a whole: no mixture of two versions."""
    touched = {}
    for undo in found.values():
        package = _PACKAGE.match(undo.path) if undo.row == "program" else None
        if package and "__pycache__" not in undo.path:
            touched[package[1], _distribution(package[2])] = undo
    more = {}
    for change in changes if touched else ():
        package = _PACKAGE.match(change.path)
        whole = touched.get((package[1], _distribution(package[2]))) if package else None
        if whole and change.path not in found and change.type != "dir":
            more[change.path] = Undo(change.path, change.kind, whole.row, whole.why, whole.unit)
    return more
