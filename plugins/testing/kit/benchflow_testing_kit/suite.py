"""What every conformance class has in common: marks, time limits, and `xfail` as the only way out of a test."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import reprlib
import types
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar

import pytest

from benchflow_testing_kit.host import PATIENCE

__all__ = ["Conformance", "limit", "needs", "quick", "same", "soak", "xfail"]

F = TypeVar("F", bound=Callable[..., Any])

with warnings.catch_warnings():
    # A third party's pytest configuration need not know our marks to run the tests.
    warnings.simplefilter("ignore", pytest.PytestUnknownMarkWarning)
    quick: Final = pytest.mark.quick
    soak: Final = pytest.mark.soak

_LIMIT: Final = 120.0
_SOAK_LIMIT: Final = 900.0


def same(got: object, wanted: object) -> None:
    """`assert got == wanted` for large data: pytest's own diff of it takes minutes, and all of it where CI is set."""
    if got != wanted:
        pytest.fail(f"expected {reprlib.repr(wanted)}, got {reprlib.repr(got)}")


def limit(seconds: float) -> Callable[[F], F]:
    """The test fails when it takes longer, instead of hanging the whole run."""
    return _attribute("benchflow_limit", seconds)


def needs(*capabilities: str) -> Callable[[F], F]:
    """The test is skipped unless the plugin declares all of these."""
    return _attribute("benchflow_needs", tuple(str(c) for c in capabilities))


def _attribute(name: str, value: object) -> Callable[[F], F]:
    def mark(function: F) -> F:
        setattr(function, name, value)
        return function

    return mark


class xfail:
    """`test_name = xfail(reason="…")` in a subclass: the inherited test is expected to fail, and must."""

    def __init__(self, *, reason: str) -> None:
        if not reason.strip():
            raise TypeError("xfail needs a reason: say what the backend cannot do.")
        self.reason = reason


class Conformance:
    """Base of every conformance class. Subclasses supply fixtures; tests are changed by `xfail(reason=…)` only."""

    settings: ClassVar[frozenset[str]] = frozenset({"plugin"})
    """Fixtures that a subclass may define."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if not _of_kit(cls):
            _guard(cls)
        for name, value in list(vars(cls).items()):
            if name.startswith("test") and inspect.isfunction(value) and not hasattr(value, "benchflow_dressed"):
                setattr(cls, name, _dress(value))

    @pytest.fixture(autouse=True)
    def only_when_asked(self, request: pytest.FixtureRequest) -> None:
        """Soak tests run with `-m soak` or BENCHFLOW_SOAK=1, so that a plain `pytest` stays quick."""
        if request.node.get_closest_marker("soak") is None or os.environ.get("BENCHFLOW_SOAK") == "1":
            return
        if "soak" not in (request.config.getoption("markexpr", "") or ""):
            pytest.skip("soak test: run with -m soak")


def _of_kit(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "benchflow_testing_kit"


def _guard(cls: type[Conformance]) -> None:
    """Refuse whatever would quietly weaken the suite; turn `xfail` objects into marked copies of the tests."""
    marks = vars(cls).get("pytestmark", ())
    names = {mark.name for mark in (marks if isinstance(marks, list | tuple) else (marks,))}
    if vars(cls).get("__test__") is False or names & {"skip", "skipif", "xfail"}:
        raise TypeError(f"{cls.__name__}: a conformance class is not switched off as a whole.")
    allowed: frozenset[str] = next(vars(c)["settings"] for c in cls.__mro__ if _of_kit(c) and "settings" in vars(c))
    for name in dir(cls):
        expected = next((vars(c)[name] for c in cls.__mro__ if _of_kit(c) and name in vars(c)), None)
        found = inspect.getattr_static(cls, name)
        if name.startswith("__") or expected is None or found is expected or name in allowed:
            if isinstance(found, xfail):
                raise TypeError(f"{cls.__name__}.{name}: there is no such test to expect a failure of.")
            continue
        if isinstance(found, xfail) and name.startswith("test"):
            setattr(cls, name, _expected_to_fail(expected, found.reason))
        elif not hasattr(found, "benchflow_xfail"):
            raise TypeError(
                f"{cls.__name__}.{name} replaces a part of the conformance suite. A test that the plugin cannot pass "
                f'is declared as `{name} = xfail(reason="…")`; fixtures to set: {", ".join(sorted(allowed))}.'
            )


def _expected_to_fail(test: types.FunctionType, reason: str) -> types.FunctionType:
    copy = types.FunctionType(test.__code__, test.__globals__, test.__name__, test.__defaults__, test.__closure__)
    functools.update_wrapper(copy, test)
    copy.__kwdefaults__ = test.__kwdefaults__
    copy.__dict__["pytestmark"] = list(getattr(test, "pytestmark", ()))
    copy.__dict__["benchflow_xfail"] = reason
    # Of a parametrized test one case may fail and the others pass: only a single one can be held to its excuse.
    strict = all(mark.name != "parametrize" for mark in copy.__dict__["pytestmark"])
    marked: types.FunctionType = pytest.mark.xfail(reason=reason, strict=strict)(copy)
    return marked


def _dress(test: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a test for quick or soak runs; give a coroutine the class's event loop and a time limit."""
    marks = {mark.name for mark in getattr(test, "pytestmark", ())}
    if inspect.iscoroutinefunction(test):
        seconds = getattr(test, "benchflow_limit", _SOAK_LIMIT if "soak" in marks else _LIMIT)
        test = _limited(test, seconds * max(PATIENCE, 1.0))
        if "asyncio" not in marks:
            test = pytest.mark.asyncio(loop_scope="class")(test)
    if not marks & {"quick", "soak"}:
        test = quick(test)
    test.benchflow_dressed = True  # type: ignore[attr-defined]
    return test


def _limited(test: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    @functools.wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        try:
            async with asyncio.timeout(seconds) as scope:
                await test(*args, **kwargs)
        except TimeoutError:
            if scope.expired():
                pytest.fail(f"did not end within {seconds:g} s")
            raise

    return run
