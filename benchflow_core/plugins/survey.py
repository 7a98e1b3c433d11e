"""Every installed plugin and how it fares: what `bench plugins list` shows."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Any, Literal

from benchflow_core.errors import PluginError
from benchflow_core.hookspecs import GROUPS
from benchflow_core.plugins.index import COMMAND_GROUP, Plugin, Problem, kind_of, normalised
from benchflow_core.plugins.policy import CORE, matches
from benchflow_core.plugins.registry import Registry
from benchflow_core.quick import dataclass

__all__ = ["Surveyed", "requirements", "select", "survey"]

Status = Literal["active", "blocked", "failed", "duplicate"]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """One line of the list."""

    kind: str
    name: str
    version: str
    distribution: str
    status: Status
    reason: str = ""
    """Why it is not active."""
    summary: str = ""
    aliases: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What its author should mend although it works."""

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {name: getattr(self, name) for name in self.__slots__}


def survey(registry: Registry, kind: str | None = None, *, reserved: Collection[str] = ()) -> list[Surveyed]:
    """Imports every plugin that is not blocked. `reserved`: commands of bench itself, which no plugin can replace."""
    plugins, problems = select(registry)
    lines = [_line(registry, plugin, reserved) for plugin in plugins if kind in (None, kind_of(plugin.group))]
    lines += [_unreadable(problem) for problem in problems if kind in (None, kind_of(problem.group))]
    kinds = list(GROUPS)
    return sorted(
        lines, key=lambda one: (kinds.index(one.kind) if one.kind in kinds else 99, one.name, one.distribution)
    )


def _line(registry: Registry, plugin: Plugin, reserved: Collection[str]) -> Surveyed:
    def line(status: Status, reason: str = "", summary: str = "", warnings: tuple[str, ...] = ()) -> Surveyed:
        owner = plugin.distribution
        kind = kind_of(plugin.group)
        return Surveyed(kind, plugin.name, owner.version, owner.name, status, reason, summary, plugin.aliases, warnings)

    if block := registry.policy.block(plugin):
        return line("blocked", f"By {block.by}. {block.remedy}")
    outcome = registry.load(plugin)
    if outcome.problem:
        return line("failed", str(outcome.problem))
    notes = tuple(map(str, outcome.notes))
    if plugin.group == COMMAND_GROUP and (taken := [name for name in plugin.names if name in reserved]):
        if plugin.name in taken:
            return line("failed", f"bench has a command {plugin.name!r} of its own.")
        notes += (f"bench has a command {taken[0]!r} of its own, so that alias is never used.",)
    for name, claimants in registry.collisions(plugin.group).items():
        if plugin in claimants:
            return line("duplicate", _rivals(name, plugin, claimants), outcome.spec.summary, notes)
    return line("active", summary=outcome.spec.summary, warnings=notes)


def _rivals(name: str, plugin: Plugin, claimants: list[Plugin]) -> str:
    others = " and ".join(str(one.distribution) for one in claimants if one is not plugin)
    return f"{others} provides {name!r} too. Use this one as {plugin.distribution.name}::{name}, or block the other."


def _unreadable(problem: Problem) -> Surveyed:
    owner = problem.distribution
    return Surveyed(kind_of(problem.group), problem.name, owner.version, owner.name, "failed", str(problem))


def requirements(registry: Registry, kind: str | None = None) -> list[str]:
    """`distribution==version` of the core and of everything that may be used, from metadata alone."""
    from benchflow_core import __version__

    found = {CORE: __version__}
    for group in registry.index.plugins:
        for plugin in registry.plugins(group) if kind in (None, kind_of(group)) else ():
            found.setdefault(plugin.distribution.name, plugin.distribution.version)
    return [f"{name}=={version}" for name, version in sorted(found.items())]


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
