"""Every installed plugin and how it fares: what `bench plugins list` shows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from benchflow_core.contracts.common import Check
from benchflow_core.contracts.core import InstalledPlugin
from benchflow_core.errors import PluginError
from benchflow_core.hookspecs import GROUPS
from benchflow_core.plugins.complaints import duplicate
from benchflow_core.plugins.distributions import Distribution
from benchflow_core.plugins.index import COMMAND_GROUP, Plugin, Problem, kind_of, normalised
from benchflow_core.plugins.policy import matches
from benchflow_core.plugins.registry import Registry

__all__ = ["select", "survey", "text_of", "to_json"]


def survey(
    registry: Registry, wanted: str | None = None, *, kind: str | None = None, reserved: Collection[str] = ()
) -> list[InstalledPlugin]:
    """Every plugin that `wanted` means, imported where it is not blocked.

    `reserved`: commands of bench itself, which no plugin can replace.
    """
    plugins, problems = select(registry, wanted)
    found = [_describe(registry, plugin, reserved) for plugin in plugins if kind in (None, kind_of(plugin.group))]
    found += [_unreadable(problem) for problem in problems if kind in (None, kind_of(problem.group))]
    kinds = list(GROUPS)
    return sorted(
        found, key=lambda one: (kinds.index(one.kind) if one.kind in kinds else 99, one.name, one.distribution)
    )


def to_json(one: InstalledPlugin) -> dict[str, Any]:
    """What `bench plugins list --json` says of a plugin."""
    found: dict[str, Any] = {
        name: getattr(one, name) for name in ("kind", "name", "version", "distribution", "status", "reason")
    }
    summary = one.summary if one.spec is not None else ""
    return {**found, "summary": summary, "aliases": one.aliases, "warnings": [text_of(note) for note in one.warnings]}


def text_of(check: Check) -> str:
    """A check in one line."""
    return f"{check.detail} {check.remedy}".rstrip()


def _describe(registry: Registry, plugin: Plugin, reserved: Collection[str]) -> InstalledPlugin:
    known = _installed(plugin.group, plugin.name, plugin.distribution)
    known = replace(known, aliases=plugin.aliases, module=plugin.module)
    if block := registry.policy.block(plugin):
        problem = Check("load", "skip", f"Blocked by {block.by}.", block.remedy)
        return replace(known, status="blocked", reason=f"By {block.by}. {block.remedy}", problem=problem)
    outcome = registry.load(plugin)
    if outcome.problem:
        remedy = outcome.problem.remedy.removeprefix("Try: ")
        problem = Check("load", "fail", outcome.problem.message, remedy)
        return replace(known, status="failed", reason=str(outcome.problem), problem=problem)
    notes = tuple(Check(note.code, "warn", note.message, note.remedy) for note in outcome.notes)
    known = replace(known, spec=outcome.spec, summary=outcome.spec.summary, warnings=notes)
    if plugin.group == COMMAND_GROUP and (taken := [name for name in plugin.names if name in reserved]):
        if plugin.name in taken:
            return replace(known, status="failed", reason=f"bench has a command {plugin.name!r} of its own.")
        own = f"bench has a command {taken[0]!r} of its own, so that alias is never used."
        known = replace(known, warnings=(*notes, Check("name", "warn", own)))
    for name, claimants in registry.collisions(plugin.group).items():
        if plugin in claimants:
            rivals = duplicate(name, claimants)
            problem = Check("name", "warn", rivals.message, rivals.remedy)
            return replace(known, status="duplicate", reason=_rivals(name, plugin, claimants), problem=problem)
    return known


def _installed(group: str, name: str, owner: Distribution) -> InstalledPlugin:
    requires = tuple(owner.header("Requires-Dist"))
    kind = kind_of(group)
    return InstalledPlugin(kind, name, owner.version, owner.name, "active", summary=owner.summary, requires=requires)


def _rivals(name: str, plugin: Plugin, claimants: list[Plugin]) -> str:
    others = " and ".join(str(one.distribution) for one in claimants if one is not plugin)
    return f"{others} provides {name!r} too. Use this one as {plugin.distribution.name}::{name}, or block the other."


def _unreadable(problem: Problem) -> InstalledPlugin:
    found = _installed(problem.group, problem.name, problem.distribution)
    check = Check("entry point", "fail", problem.message, problem.remedy)
    return replace(found, status="failed", reason=str(problem), problem=check)


def select(registry: Registry, wanted: str | None = None) -> tuple[list[Plugin], list[Problem]]:
    """What `kind:name`, `distribution::name`, a name or a distribution means, blocked or not; `None` means all."""
    groups = {**dict.fromkeys(GROUPS.values()), **registry.index.plugins}
    plugins = [plugin for group in groups for plugin in registry.index.plugins.get(group, ())]
    problems = [problem for problem in registry.index.problems if not registry.problem_block(problem)]
    if wanted is None:
        return plugins, problems
    found = [plugin for plugin in plugins if matches(wanted, plugin)]
    broken = [problem for problem in problems if matches(wanted, problem.as_plugin())]
    if found or broken:
        return found, broken
    names = {name for plugin in plugins for name in (*plugin.names, plugin.distribution.name)}
    close = get_close_matches(normalised(wanted.rpartition(":")[2]), sorted(names), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise PluginError(f"No plugin {wanted!r} is installed.{hint}", remedy="See: bench plugins list")
