"""Rules that no change tells by itself: they look at all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.asked import asks_to_change
from benchflow_core.verify.author import normal
from benchflow_core.verify.findings import Finding
from benchflow_core.verify.ground import Ground, ancestors, parent_of, under
from benchflow_core.verify.plan import Plan
from benchflow_core.verify.programs import Package, package_of
from benchflow_core.verify.shadows import DISTRIBUTION
from benchflow_core.verify.startup import is_login_file

__all__ = ["BROUGHT", "bytecode", "own_folders", "own_installs", "own_tools", "sourced", "whole_packages"]

BROUGHT = "the tests bring this tool themselves"
_CACHED = re.compile(r"^(.*)/__pycache__/([^/.]+)\.[^/]*\.pyc$")
_METADATA = re.compile(r"^(.+?)-[^-/]+\.(?:dist|egg)-info$")
_PACKAGE_DATABASE = re.compile(r"^/var/lib/(?:dpkg|rpm)/|^/lib/apk/db/")


def own_folders(changes: Sequence[Change], ground: Ground, plan: Plan) -> None:
    """`/tests` and the verifier's log folder are new: what the agent has there, or in their way, goes."""
    for change in changes:
        for target in (ground.tests, ground.logs):
            if change.path == ground.logs and change.type == "dir":
                continue  # made anew in the box
            if under(change.path, target):
                plan.revert[change.path] = None
                if change.path != target or change.type != "dir":
                    why = "the verifier's own folder starts new"
                    plan.findings.append(Finding("verifier-folder", change.path, "set-aside", why))
            elif change.path in ancestors(target) and (change.kind == "deleted" or change.type != "dir"):
                plan.undo(change, "verifier-folder", "it lies in the way of the verifier's own folders")


def whole_packages(changes: Sequence[Change], plan: Plan) -> None:
    """A package of the image's that was changed is put back as a whole: no mixture of two versions."""
    touched: set[Package] = set()
    names: set[tuple[str, str]] = set()
    for change in changes:
        package = package_of(change.path)
        if package and change.kind != "added" and change.path in plan.revert and "__pycache__" not in change.path:
            touched.add(package)
            if metadata := _METADATA.match(package[1]):
                names.add((package[0], normal(metadata[1])))
    if not touched:
        return
    added = {c.path for c in changes if c.kind == "added"}
    for change in changes:
        package = package_of(change.path)
        if package is None or change.kind != "added" or plan.reverts(change.path):
            continue
        metadata = _METADATA.match(package[1])
        twin = metadata is not None and (package[0], normal(metadata[1])) in names
        if twin or (package in touched and "/".join(package) not in added):
            plan.undo(change, "program-changed", "part of another version of a library that came with the image")


def own_installs(changes: Sequence[Change], ground: Ground, plan: Plan) -> None:
    """Distributions that the tests install for themselves: with the agent's copy in place they would get that one."""
    owned: set[Package] = set()
    for change in changes:
        package = package_of(change.path) if change.kind == "added" else None
        metadata = _METADATA.match(package[1]) if package else None
        if package and metadata and (name := normal(metadata[1])) in ground.author.installs:
            if asks_to_change(name, ground.author):
                continue
            module = name.replace("-", "_")
            owned |= {package, *((package[0], n) for n in (module, f"{module}.py", f"_{module}"))}
    for change in changes if owned else ():
        if change.kind == "added" and package_of(change.path) in owned and not plan.reverts(change.path):
            plan.undo(change, "own-install", "the tests install this distribution themselves")


def own_tools(changes: Sequence[Change], plan: Plan) -> None:
    """Where a tool was set aside that the tests install, the package manager must not take it for installed."""
    if not any(f.why == BROUGHT and parent_of(f.path) in DISTRIBUTION for f in plan.findings):
        return
    for change in changes:
        if _PACKAGE_DATABASE.match(change.path) and not plan.reverts(change.path):
            plan.undo(change, "own-install", "the tests install packages, starting from those of the image")


def bytecode(changes: Sequence[Change], plan: Plan) -> None:
    """Compiled copies of modules that are not the agent's: Python would run them in place of the source."""
    own = {c.path for c in changes if c.kind != "deleted" and not plan.reverts(c.path)}
    for change in changes:
        found = _CACHED.match(change.path) if change.kind != "deleted" else None
        if found and f"{found[1]}/{found[2]}.py" not in own and not plan.reverts(change.path):
            plan.undo(change, "bytecode", "a compiled copy of a module that is not the agent's")


def sourced(ground: Ground, plan: Plan) -> None:
    """Shell code of the agent's that the tests take into their own shell, or that a login shell of theirs reads."""
    sourced = {path.replace("~", ground.home, 1) for path in ground.author.sourced}
    for change in plan.agents:
        if change.path in sourced or (ground.author.starts_login_shells and is_login_file(change.path)):
            why = "the tests' own shell reads it, where nothing is safe from it"
            plan.findings.append(Finding("agent-code-in-verifier", change.path, "noted", why))
