"""Looks a plugin over: does it load, is what it needs here, what would help. Never shows the value of a variable."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from benchflow_core.contracts import Availability, Check
from benchflow_core.plugins.complaints import duplicate, told
from benchflow_core.plugins.distributions import Distribution, canonical, installed
from benchflow_core.plugins.index import Plugin, Problem, kind_of
from benchflow_core.plugins.policy import CORE
from benchflow_core.plugins.registry import Registry
from benchflow_core.plugins.remedies import install_command
from benchflow_core.plugins.stdout import quiet_stdout
from benchflow_core.quick import dataclass

__all__ = ["Diagnosis", "diagnose", "diagnose_problem"]

Status = Literal["ok", "warn", "fail", "skip"]
_WORST: Final[tuple[Status, ...]] = ("fail", "warn", "ok", "skip")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The checks of one plugin."""

    kind: str
    name: str
    distribution: str
    version: str
    checks: tuple[Check, ...]

    @property
    def status(self) -> Status:
        """The worst of its checks."""
        return min((check.status for check in self.checks), key=_WORST.index)

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        checks = [
            {"name": check.name, "status": check.status, "detail": check.detail, "remedy": check.remedy}
            for check in self.checks
        ]
        head = {"kind": self.kind, "name": self.name, "distribution": self.distribution, "version": self.version}
        return {**head, "status": self.status, "checks": checks}


def diagnose(registry: Registry, plugin: Plugin, env: Mapping[str, str], timeout: float) -> Diagnosis:
    """`fail` means broken; `warn`, not usable here and now, or not quite right."""
    owner = plugin.distribution
    checks = tuple(_checks(registry, plugin, env, timeout))
    return Diagnosis(kind_of(plugin.group), plugin.name, owner.name, owner.version, checks)


def diagnose_problem(problem: Problem) -> Diagnosis:
    """An entry point that does not get as far as being a plugin."""
    check = Check("entry point", "fail", problem.message, problem.remedy)
    owner = problem.distribution
    return Diagnosis(kind_of(problem.group), problem.name, owner.name, owner.version, (check,))


def _checks(registry: Registry, plugin: Plugin, env: Mapping[str, str], timeout: float) -> Iterator[Check]:
    if block := registry.policy.block(plugin):
        yield Check("load", "skip", f"Blocked by {block.by}.", block.remedy)
        return
    outcome = registry.load(plugin)
    for name, claimants in registry.collisions(plugin.group).items():
        if plugin in claimants:
            problem = duplicate(name, claimants)
            yield Check("name", "warn", problem.message, problem.remedy)
    if outcome.problem:
        yield Check("load", "fail", outcome.problem.message, outcome.problem.remedy.removeprefix("Try: "))
        return
    yield Check("load", "ok", outcome.spec.summary)
    for note in outcome.notes:
        yield Check(note.code, "warn", note.message, note.remedy)
    yield from _requirements(plugin.distribution)
    available = list(_available(outcome.spec, timeout))
    yield from _environment(
        outcome.spec, env, elsewhere=any(check.status == "ok" and check.detail for check in available)
    )
    yield from available
    yield from _own(outcome.spec, timeout)


def _requirements(distribution: Distribution) -> Iterator[Check]:
    """Are the distributions it depends on here, in the versions it asks for?"""
    from packaging.requirements import InvalidRequirement, Requirement

    here = {found.name: found for found in installed()}
    for text in distribution.header("Requires-Dist"):
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            yield Check("requires", "fail", f"Its metadata has the unreadable requirement {text!r}.")
            continue
        if canonical(wanted.name) == CORE or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        found = here.get(canonical(wanted.name))
        remedy = install_command(f"'{wanted.name}{wanted.specifier}'" if wanted.specifier else wanted.name)
        if found is None:
            yield Check("requires", "fail", f"{wanted.name} is not installed.", remedy)
        elif not wanted.specifier.contains(found.version, prereleases=True):
            yield Check("requires", "fail", f"{found} does not satisfy {wanted.specifier}.", remedy)
        else:
            yield Check("requires", "ok", str(found))


def _environment(spec: Any, env: Mapping[str, str], *, elsewhere: bool) -> Iterator[Check]:
    """`elsewhere`: the plugin says that it can be used. A variable that is not set then stands in its own files."""
    for name in getattr(spec, "requires", ()):
        present = bool(env.get(name))
        said = f"{name} is {_set(present)}" + ("; it was found elsewhere." if elsewhere and not present else ".")
        fine = present or elsewhere
        yield Check("variable", "ok" if fine else "warn", said, "" if fine else _export(name))
    options = getattr(spec, "auth", ())
    if not options:
        return
    for option in options:
        if all(env.get(name) for name in option.env) and all(_exists(path) for path in option.files):
            yield Check(
                "credentials", "ok", f"{option.name}: {', '.join([*option.env, *option.files]) or 'nothing needed'}"
            )
            return
    hints = [option.hint or " and ".join([*map(_export, option.env), *option.files]) for option in options]
    yield Check("credentials", "warn", "None found.", " or ".join(filter(None, hints)))


def _set(present: bool) -> str:
    return "set" if present else "not set"


def _export(name: str) -> str:
    return f"export {name}=…"


def _exists(path: str) -> bool:
    return Path(path).expanduser().exists()


def _available(spec: Any, timeout: float) -> Iterator[Check]:
    ask = getattr(spec, "available", None)
    if ask is None:
        return
    found = _limited("available", ask, timeout)
    if isinstance(found, Check):
        yield found
    elif isinstance(found, Availability):
        yield Check("available", "ok" if found.ok else "warn", found.reason, found.remedy)
    else:
        yield Check("available", "fail", "Its available() returned something else than an Availability.")


def _own(spec: Any, timeout: float) -> Iterator[Check]:
    found = _limited("check", spec.check, timeout)
    if isinstance(found, Check):
        yield found
    elif isinstance(found, list | tuple) and all(isinstance(item, Check) for item in found):
        yield from found
    else:
        yield Check("check", "fail", "Its check() returned something else than a list of Check.")


def _limited(name: str, ask: Callable[[], Any], timeout: float) -> Any:
    """The answer of plugin code, or a failed `Check`. A thread that does not come back is left behind."""
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:
            answers.append(Check(name, "fail", f"Its {name}() raised {told(error)}."))

    thread = threading.Thread(target=run, daemon=True)
    with quiet_stdout():
        thread.start()
        thread.join(timeout)
    return answers[0] if answers else Check(name, "fail", f"Its {name}() did not answer in {timeout:g} s.")
