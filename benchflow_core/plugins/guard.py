"""Where plugin code is called: whatever it raises that is not an error of ours becomes one that names the plugin."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from benchflow_core.contracts.common import Availability
from benchflow_core.errors import BenchflowError, PluginFailed

__all__ = ["Guarded", "failed", "guarded_spec", "wrong_type"]

T = TypeVar("T")
Passed = tuple[type[BaseException], ...]
_PASSED: Final[Passed] = (BenchflowError, OSError)
"""What callers look for themselves. An `OSError` may be the host's own: a full disk, a file that is not there."""
_DEFECT: Final = "This is a defect of the plugin."
_OWN: Final = ("command", "observer")
"""Kinds whose caller already keeps each call to itself."""


def failed(who: str, function: str, error: BaseException) -> PluginFailed:
    """`who`: kind, name, distribution and version."""
    from benchflow_core.plugins.complaints import told

    return PluginFailed(f"{who} failed in {function}(): {told(error)}.", remedy=_DEFECT, details={"plugin": who})


def wrong_type(who: str, function: str, value: object, wanted: type) -> PluginFailed:
    from benchflow_core.plugins.complaints import with_article

    given = "None" if value is None else with_article(type(value))
    return PluginFailed(
        f"{who}: its {function}() returned {given}, not {with_article(wanted)}.",
        remedy=_DEFECT,
        details={"plugin": who},
    )


def guarded_spec(kind: str, who: str, spec: T) -> T:
    """The spec with each function of the plugin's own guarded."""
    if kind in _OWN:
        return spec
    changed = {}
    for field in dataclasses.fields(spec):  # type: ignore[arg-type]
        value = getattr(spec, field.name)
        if not callable(value) or isinstance(value, type) or value is field.default:
            continue
        if field.name == "available":
            changed[field.name] = _availability(who, value)
        else:
            changed[field.name] = _guard(who, field.name, value, awaited="Awaitable[" in str(field.type))
    return dataclasses.replace(spec, **changed) if changed else spec  # type: ignore[type-var]


def _availability(who: str, ask: Callable[[], Any]) -> Callable[[], Availability]:
    """One that cannot tell is not available: it must not keep others from being chosen."""

    @functools.wraps(ask)
    def available() -> Availability:
        try:
            found = ask()
        except (Exception, SystemExit) as error:
            return Availability(False, str(failed(who, "available", error)))
        return found if isinstance(found, Availability) else Availability(False, _no_availability(who, found))

    return available


def _no_availability(who: str, found: object) -> str:
    return str(wrong_type(who, "available", found, Availability))


def _guard(
    who: str, name: str, function: Callable[..., Any], *, awaited: bool = False, passed: Passed = _PASSED
) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
        except passed:
            raise
        except (Exception, SystemExit) as error:
            raise failed(who, name, error) from error
        if inspect.isawaitable(result):
            return _to_the_end(who, name, result, passed)
        if awaited:
            raise PluginFailed(f"{who}: its {name}() is not async.", remedy=_DEFECT, details={"plugin": who})
        return result

    return call


async def _to_the_end(who: str, name: str, result: Awaitable[T], passed: Passed) -> T:
    try:
        return await result
    except passed:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, NotImplementedError) and name == "expose_to_box":
            raise  # it leaves the way to the core
        raise failed(who, name, error) from error


class Guarded:
    """An object of a plugin's, its coroutines guarded. Everything else of it is as it was."""

    def __init__(self, thing: Any, who: str, passed: Passed = _PASSED) -> None:
        """`passed`: what it may raise."""
        self._thing = thing
        self._who = who
        self._passed = passed

    async def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A coroutine of the object, for a subclass that looks at its answer."""
        return await _guard(self._who, name, getattr(self._thing, name), awaited=True, passed=self._passed)(
            *args, **kwargs
        )

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._thing, name)
        if inspect.iscoroutinefunction(value):
            value = self.__dict__[name] = _guard(self._who, name, value, passed=self._passed)
        return value
