"""The one place the rest of the core asks for a plugin."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from threading import RLock, Timer
from typing import TYPE_CHECKING, Any, Final

from benchflow_core.errors import BenchflowError, PluginError
from benchflow_core.plugins.index import COMMAND_GROUP, Index, Plugin, Problem, kind_of, normalised
from benchflow_core.plugins.policy import CORE, Block, Policy
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.plugins.loading import Loader, Outcome

__all__ = ["Loaded", "Registry", "Report"]

_LONG: Final = 5.0
"""Seconds after which the user hears what is being waited for."""

Report = Callable[[str, BaseException | None], None]
"""Gets each warning once: the line, and the exception behind it."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A plugin that is ready for use."""

    kind: str
    name: str
    """What it is called, whichever alias it was asked for by."""
    distribution: str
    version: str
    spec: Any
    aliases: tuple[str, ...] = ()
    inner: Loaded | None = None
    """What it wraps, for `wrapper/agent`."""

    @property
    def called(self) -> str:
        """The one of its names that it wants to be listed by."""
        wanted = getattr(self.spec, "name", "")
        return wanted if wanted in (self.name, *self.aliases) else self.name

    @property
    def who(self) -> str:
        """For messages: `sandbox 'e2b' of benchflow-sandbox-e2b 1.0`."""
        owner = f" of {self.distribution} {self.version}" if self.distribution else ""
        return f"{self.kind} '{self.name}'{owner}"

    def stamp(self) -> dict[str, str]:
        """For results."""
        return {"kind": self.kind, "name": self.name, "distribution": self.distribution, "version": self.version}


def _still_loading(plugin: Plugin) -> str:
    who = f"{kind_of(plugin.group)}:{plugin.name} of {plugin.distribution}"
    return f"Plugin {who} is still being loaded after {_LONG:g} s. Leave it out with -p no:{plugin.distribution.name}."


def _to_stderr(line: str, cause: BaseException | None) -> None:
    print(f"warning: {line}", file=sys.stderr)


class Registry:
    """Installed plugins by kind and name. Names come from metadata; a plugin is imported when it is asked for."""

    def __init__(self, policy: Policy | None = None, report: Report = _to_stderr) -> None:
        self.policy = policy or Policy.read()
        self._report = report
        self._reported: set[str] = set()
        self._loaded: dict[Plugin, Loaded] = {}
        self._lock = RLock()

    # --- from metadata ---------------------------------------------------------------------------------------

    @cached_property
    def index(self) -> Index:
        """Everything installed, allowed or not."""
        index = Index()
        for words in self.policy.idle(plugin for plugins in index.plugins.values() for plugin in plugins):
            self._warn(f"{words} matches no installed plugin.")
        return index

    def plugins(self, group: str) -> list[Plugin]:
        """What may be used of a group."""
        return [plugin for plugin in self.index.plugins.get(group, ()) if not self.policy.block(plugin)]

    def kept_out(self, kind: str) -> str:
        """A remedy for whoever misses a plugin of that kind: what the user blocked; empty where that is nothing."""
        found = ((plugin, self.policy.block(plugin)) for plugin in self.index.plugins.get(_group(kind), ()))
        kept = [f"{plugin.name} (by {block.by})" for plugin, block in found if block]
        return f"Blocked: {', '.join(sorted(kept))}." if kept else ""

    def names(self, kind: str, *, aliases: bool = False) -> list[str]:
        """What may be asked for, sorted; nothing is imported."""
        plugins = self.plugins(_group(kind))
        return sorted({name for plugin in plugins for name in (plugin.names if aliases else (plugin.name,))})

    def requirements(self, kind: str | None = None) -> list[str]:
        """`distribution==version` of the core and of everything that may be used."""
        from benchflow_core import __version__

        found = {CORE: __version__}
        for group in self.index.plugins:
            for plugin in self.plugins(group) if kind in (None, kind_of(group)) else ():
                found.setdefault(plugin.distribution.name, plugin.distribution.version)
        return [f"{name}=={version}" for name, version in sorted(found.items())]

    def problems(self) -> Iterator[Problem]:
        """What metadata alone shows to be wrong with plugins that are not blocked."""
        for problem in self.index.problems:
            if not self.problem_block(problem):
                yield problem
        from benchflow_core.plugins.complaints import duplicate

        for group in self.index.plugins:
            for name, plugins in self.collisions(group).items():
                yield duplicate(name, plugins)

    def collisions(self, group: str) -> dict[str, list[Plugin]]:
        """Names that more than one distribution claims."""
        by_name: dict[str, list[Plugin]] = {}
        for plugin in self.plugins(group):
            for name in plugin.names:
                by_name.setdefault(name, []).append(plugin)
        return {name: plugins for name, plugins in by_name.items() if len(plugins) > 1}

    def problem_block(self, problem: Problem) -> Block | None:
        """As `Policy.block`, for what did not become a plugin."""
        return self.policy.block(problem.as_plugin())

    # --- loading ---------------------------------------------------------------------------------------------

    @cached_property
    def _loader(self) -> Loader:
        from benchflow_core.plugins.loading import Loader

        return Loader()

    def load(self, plugin: Plugin) -> Outcome:
        """Imports a plugin, whatever the policy says of it, and reports nothing: for `bench plugins`."""
        with self._lock:
            if self._loader.knows(plugin):
                return self._loader.load(plugin)
            slow = Timer(_LONG, self._warn, (_still_loading(plugin),))
            slow.daemon = True
            slow.start()
            try:
                return self._loader.load(plugin)
            finally:
                slow.cancel()

    def get(self, kind: str, name: str) -> Loaded:
        """The plugin of that name, imported; `distribution::name` picks one of two. Raises `PluginError`.

        `outer/inner` is `inner` as changed by the `wrap` of `outer`.
        """
        outer, slash, inner = name.partition("/")
        if slash and _can_wrap(kind):
            return self._wrapped(self.get(kind, outer), self.get(kind, inner))
        self._insist()
        return self._use(self._pick(kind, name))

    def all(self, kind: str, wanted: Callable[[Plugin], bool] | None = None) -> list[Loaded]:
        """Every plugin of a kind that works, by name. The others become one warning each.

        `wanted` looks at metadata alone: what it refuses is not imported.
        """
        from benchflow_core.plugins.complaints import left_out

        self._insist()
        group = _group(kind)
        collisions = self.collisions(group)
        for problem in self.problems():
            if problem.group == group:
                self._warn(left_out(problem), problem.cause)
        loaded = []
        for plugin in self.plugins(group):
            if plugin.name in collisions or (wanted and not wanted(plugin)):
                continue
            outcome = self.load(plugin)
            if outcome.problem is None:
                loaded.append(self._use(plugin))
            elif self.policy.strict:
                self._use(plugin)
            else:
                self._warn(left_out(outcome.problem), outcome.problem.cause)
        return loaded

    def mentioned(self, kind: str, text: str | None) -> list[Loaded]:
        """Every plugin of a kind that works and that has a name or a program in `text`; without a text, all."""
        return self.all(kind, None if text is None else lambda plugin: any(name in text for name in plugin.programs()))

    def observers(self) -> list[Loaded]:
        """Every observer that says it is enabled, asked once: call this once per job."""
        return [observer for observer in self.all("observer") if self._enabled(observer)]

    def loaded(self) -> list[Loaded]:
        """What was asked for so far: for results."""
        return list(self._loaded.values())

    def _pick(self, kind: str, name: str) -> Plugin:
        from benchflow_core.plugins import complaints
        from benchflow_core.plugins.distributions import canonical

        group = _group(kind)
        owner, separator, plain = name.rpartition("::")
        found = self.index.find(group, plain) or self.index.find(group, normalised(plain))
        if separator:
            found = [plugin for plugin in found if plugin.distribution.name == canonical(owner)]
        allowed = [plugin for plugin in found if not self.policy.block(plugin)]
        if len(allowed) == 1:
            return allowed[0]
        if allowed:
            raise complaints.broken(complaints.duplicate(normalised(plain), allowed))
        for plugin in found:
            if block := self.policy.block(plugin):
                raise complaints.blocked(kind, plugin, block)
        for problem in self.index.problems:
            if problem.group == group and normalised(problem.name) == normalised(plain):
                raise complaints.broken(problem)
        raise complaints.unknown(kind, name, self.names(kind))

    def _use(self, plugin: Plugin) -> Loaded:
        from benchflow_core.plugins.complaints import broken, noticed, strict

        outcome = self.load(plugin)
        if outcome.problem:
            raise broken(outcome.problem)
        for note in outcome.notes:
            if self.policy.strict:
                raise strict(note)
            self._warn(noticed(note))
        if plugin not in self._loaded:
            from benchflow_core.plugins.guard import guarded_spec

            owner = plugin.distribution
            kind = kind_of(plugin.group)
            found = Loaded(kind, plugin.name, owner.name, owner.version, outcome.spec, plugin.aliases)
            self._loaded[plugin] = replace(found, spec=guarded_spec(kind, found.who, outcome.spec))
        return self._loaded[plugin]

    def _wrapped(self, outer: Loaded, inner: Loaded) -> Loaded:
        from benchflow_core.plugins.complaints import told, with_article

        wrap = getattr(outer.spec, "wrap", None)
        name = f"{outer.name}/{inner.name}"
        if wrap is None:
            raise PluginError(
                f"{outer.kind.capitalize()} {outer.name!r} wraps no other {outer.kind}, so {name!r} does not exist.",
                remedy=f"Use {inner.name!r} alone.",
            )
        try:
            spec = wrap(inner.spec)
        except PluginError:
            raise
        except Exception as error:
            message = (
                f"{name!r} cannot be used: {outer.name} of {outer.distribution} {outer.version} raised {told(error)}."
            )
            raise PluginError(message) from error
        if not isinstance(spec, type(inner.spec)):
            given, wanted = with_article(type(spec)), with_article(type(inner.spec))
            owner = f"{outer.distribution} {outer.version}"
            raise PluginError(f"{name!r} cannot be used: wrap of {owner} returned {given}, not {wanted}.")
        return Loaded(outer.kind, name, outer.distribution, outer.version, spec, (), inner)

    def _enabled(self, observer: Loaded) -> bool:
        from benchflow_core.plugins.complaints import told

        try:
            return bool(observer.spec.enabled())
        except Exception as error:
            owner = f"{observer.name} of {observer.distribution} {observer.version}"
            self._warn(f"Observer {owner} is left out. Its enabled() raised {told(error)}.", error)
            return False

    # --- saying what is wrong --------------------------------------------------------------------------------

    def warn(self, error: BenchflowError) -> None:
        """A plugin that failed and was not needed: said once."""
        self._warn(str(error), error.__cause__)

    def _insist(self) -> None:
        """Under strict mode nothing runs while metadata shows a problem."""
        if self.policy.strict:
            from benchflow_core.plugins.complaints import strict

            for problem in self.problems():
                raise strict(problem)

    def _warn(self, line: str, cause: BaseException | None = None) -> None:
        if line not in self._reported:
            self._reported.add(line)
            self._report(line, cause)


def _group(kind: str) -> str:
    if kind == "command":
        return COMMAND_GROUP
    from benchflow_core.hookspecs import GROUPS

    return GROUPS[kind]


def _can_wrap(kind: str) -> bool:
    from benchflow_core import contracts

    return hasattr(getattr(contracts, f"{kind.capitalize()}Spec"), "wrap")
