"""The sentences for plugins that are unknown, blocked, claimed twice or broken."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from benchflow_core.errors import PluginError
from benchflow_core.plugins.index import Plugin, Problem, kind_of, normalised
from benchflow_core.plugins.policy import Block
from benchflow_core.plugins.remedies import guess_distribution, install_command

__all__ = ["blocked", "broken", "duplicate", "left_out", "noticed", "strict", "told", "unknown", "with_article"]


def with_article(kind: type) -> str:
    """`a dict`, `an AgentSpec`."""
    return f"{'an' if kind.__name__[0] in 'AEIOUaeiou' else 'a'} {kind.__name__}"


def told(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, SyntaxError) and error.filename:
        text = f"{error.msg} ({error.filename}, line {error.lineno})"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def unknown(kind: str, name: str, installed: Sequence[str]) -> PluginError:
    """Nothing goes by this name: what does, and what to install."""
    close = get_close_matches(normalised(name), installed, n=1)
    message = f"Unknown {kind} {name!r}."
    if close:
        message += f" Did you mean {close[0]!r}?"
    message += f" Installed: {_listed(installed)}."
    distribution = None if close else guess_distribution(kind, name)
    return PluginError(message, remedy=f"Try: {install_command(distribution)}" if distribution else None)


def blocked(kind: str, plugin: Plugin, block: Block) -> PluginError:
    """It is there, but the user keeps it out."""
    message = f"{kind.capitalize()} {plugin.name!r} of {plugin.distribution} is blocked by {block.by}."
    return PluginError(message, remedy=block.remedy)


def duplicate(name: str, plugins: Sequence[Plugin]) -> Problem:
    """More than one distribution claims a name."""
    first, second = plugins[0], plugins[1]
    owners = " and by ".join(str(plugin.distribution) for plugin in plugins)
    message = f"{kind_of(first.group).capitalize()} {name!r} is provided by {owners}."
    remedy = f"Pick one with {first.distribution.name}::{name}, or block one with -p no:{second.distribution.name}."
    return Problem(first.group, name, first.distribution, "duplicate", message, remedy)


def _who(problem: Problem) -> str:
    return f"{kind_of(problem.group)}:{problem.name or '?'} of {problem.distribution}"


def broken(problem: Problem) -> PluginError:
    """A plugin that was asked for, or any under strict mode."""
    message = problem.message
    if problem.code != "duplicate":
        kind = kind_of(problem.group).capitalize()
        message = f"{kind} {problem.name!r} of {problem.distribution} cannot be used. {message}"
    error = PluginError(message, remedy=problem.remedy or None, details={"code": problem.code})
    error.__cause__ = problem.cause
    return error


def strict(problem: Problem) -> PluginError:
    """Any problem under strict mode."""
    error = PluginError(f"Plugin {_who(problem)} has a problem, and plugins are strict. {problem.message}")
    error.remedy = problem.remedy or None
    error.__cause__ = problem.cause
    return error


def left_out(problem: Problem) -> str:
    """A broken plugin that nobody asked for."""
    if problem.code == "duplicate":
        return f"{problem.message} None of them is used. {problem.remedy}"
    block = f"silence this with -p no:{problem.distribution.name}"
    return f"Plugin {_who(problem)} is left out ({block}). {problem}"


def noticed(problem: Problem) -> str:
    """Something odd about a plugin that works."""
    return f"Plugin {_who(problem)}: {problem}"
