"""Imports one plugin at a time, and keeps whatever it does wrong to itself."""

from __future__ import annotations

import importlib
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from difflib import get_close_matches
from types import ModuleType
from typing import Any

import pluggy

from benchflow_core import __version__, contracts, hookspecs
from benchflow_core.plugins.compatibility import incompatible
from benchflow_core.plugins.complaints import told, with_article
from benchflow_core.plugins.index import Plugin, Problem, kind_of
from benchflow_core.plugins.remedies import reinstall_command, update_command
from benchflow_core.plugins.specs import wrong_fields
from benchflow_core.plugins.stdout import quiet_stdout
from benchflow_core.quick import dataclass

__all__ = ["Loader", "Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What loading a plugin came to: a spec, or the problem that prevents one; and what else was noticed."""

    spec: Any = None
    problem: Problem | None = None
    notes: tuple[Problem, ...] = ()


class _Broken(Exception):
    def __init__(self, code: str, message: str, remedy: str = "", cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.remedy, self.cause = code, message, remedy, cause


class Loader:
    """Registers each module once with pluggy, as `distribution:module`, whatever kinds and names it serves."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._modules: dict[str, ModuleType | _Broken] = {}
        self._outcomes: dict[Plugin, Outcome] = {}

    def knows(self, plugin: Plugin) -> bool:
        return plugin in self._outcomes

    def load(self, plugin: Plugin) -> Outcome:
        """Never raises, `KeyboardInterrupt` apart. A plugin's outcome stays the same for the life of the process."""
        if plugin not in self._outcomes:
            self._outcomes[plugin] = self._load(plugin)
        return self._outcomes[plugin]

    def _load(self, plugin: Plugin) -> Outcome:
        spec: Any = None
        problem: Problem | None = None
        notes: list[Problem] = []
        with quiet_stdout() as caught:
            try:
                spec = self._spec(plugin)
                notes += self._misspelt(plugin)
            except _Broken as broken:
                problem = _problem(plugin, broken)
        if text := caught.getvalue().strip():
            notes.append(_note(plugin, "output", f"It prints to stdout when it is loaded: {_start(text)!r}."))
        return Outcome(spec, problem, tuple(notes))

    def _spec(self, plugin: Plugin) -> Any:
        kind = kind_of(plugin.group)
        if kind not in hookspecs.GROUPS:
            close = get_close_matches(plugin.group, hookspecs.GROUPS.values(), n=1)
            hint = f"Did its author mean [{close[0]}]?" if close else ""
            raise _Broken("group", f"No kind of plugin has the entry-point group [{plugin.group}].", hint)
        if wanted := incompatible(plugin.distribution):
            raise _Broken(
                "incompatible",
                f"It needs {wanted!r}; this is benchflow-core {__version__}.",
                f"Update both: {update_command('benchflow-core', plugin.distribution.name)}",
            )
        hook = f"benchflow_{kind}"
        module = self._module(plugin)
        callers = [caller for caller in self._manager.get_hookcallers(module) or [] if caller.name == hook]
        if not callers:
            raise _Broken("hook", f"Its module {plugin.module} has no hook {hook}.", self._hook_hint(module, hook))
        return _checked(kind, hook, self._call(hook, module))

    def _module(self, plugin: Plugin) -> ModuleType:
        name = f"{plugin.distribution.name}:{plugin.module}"
        if name not in self._modules:
            try:
                self._modules[name] = self._register(name, plugin)
            except _Broken as broken:
                self._modules[name] = broken
        known = self._modules[name]
        if isinstance(known, _Broken):
            raise known
        return known

    def _register(self, name: str, plugin: Plugin) -> ModuleType:
        try:
            module = importlib.import_module(plugin.module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            remedy = f"Try: {reinstall_command(plugin.distribution.name)}" if isinstance(error, ImportError) else ""
            raise _Broken("import", f"It fails on import: {told(error)}.", remedy, error) from error
        try:
            self._manager.register(module, name)
        except Exception as error:
            with suppress(Exception):
                self._manager.unregister(name=name)
            raise _Broken("hook", f"Its hooks are not as specified: {told(error)}.", cause=error) from error
        return module

    def _call(self, hook: str, module: ModuleType) -> Any:
        others = [plugin for plugin in self._manager.get_plugins() if plugin is not module]
        try:
            answers = self._manager.subset_hook_caller(hook, others)()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _Broken("hook", f"Its hook {hook} raised {told(error)}.", cause=error) from error
        return answers[0] if answers else None

    def _unknown_hooks(self, module: ModuleType) -> list[str]:
        """What pluggy's `check_pending` looks for, of one plugin."""
        callers = self._manager.get_hookcallers(module) or []
        return [
            caller.name
            for caller in callers
            if not caller.has_spec()
            and not all(impl.optionalhook for impl in caller.get_hookimpls() if impl.plugin is module)
        ]

    def _misspelt(self, plugin: Plugin) -> Iterator[Problem]:
        for name in self._unknown_hooks(self._module(plugin)):
            yield _note(plugin, "misspelt", f"It has a hook {name} that does not exist.{_nearest(name)}")

    def _hook_hint(self, module: ModuleType, hook: str) -> str:
        if callable(getattr(module, hook, None)):
            return "Its author should mark the function with @hookimpl."
        return " ".join(f"It has {name} instead.{_nearest(name)}" for name in self._unknown_hooks(module))


def _nearest(hook: str) -> str:
    close = get_close_matches(hook, [f"benchflow_{kind}" for kind in hookspecs.GROUPS], n=1)
    return f" Did its author mean {close[0]}?" if close else ""


def _checked(kind: str, hook: str, spec: Any) -> Any:
    wanted = getattr(contracts, f"{kind.capitalize()}Spec")
    if isinstance(spec, Coroutine):
        spec.close()
        raise _Broken("spec", f"Its hook {hook} is async; a hook is a plain function.")
    if not isinstance(spec, wanted):
        given = "None" if spec is None else with_article(type(spec))
        raise _Broken("spec", f"Its hook {hook} returned {given}, not {with_article(wanted)}.")
    if wrong := wrong_fields(spec):
        raise _Broken("spec", f"Its {wanted.__name__} is wrong: {'; '.join(wrong)}.")
    return spec


def _start(text: str) -> str:
    first = text.splitlines()[0]
    return first if len(first) <= 60 else f"{first[:60]}…"


def _problem(plugin: Plugin, broken: _Broken) -> Problem:
    return Problem(
        plugin.group, plugin.name, plugin.distribution, broken.code, broken.message, broken.remedy, broken.cause
    )


def _note(plugin: Plugin, code: str, message: str) -> Problem:
    return Problem(plugin.group, plugin.name, plugin.distribution, code, message, usable=True)
