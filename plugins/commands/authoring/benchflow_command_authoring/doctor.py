"""Check plugins: does it load, is what it needs here, what would help. The value of a variable is never shown."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from benchflow_core.contracts import Availability, Check
from benchflow_core.contracts.core import InstalledPlugin

__all__ = ["Diagnosis", "Doctor"]

Status = Literal["ok", "warn", "fail", "skip"]
_WORST: Final[tuple[Status, ...]] = ("fail", "warn", "ok", "skip")
_CORE: Final = "benchflow-core"


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
        """Return the worst status of its checks."""
        return min((check.status for check in self.checks), key=_WORST.index)

    def to_json(self) -> dict[str, Any]:
        """Return it for `--json`."""
        checks = [
            {"name": check.name, "status": check.status, "detail": check.detail, "remedy": check.remedy}
            for check in self.checks
        ]
        head = {"kind": self.kind, "name": self.name, "distribution": self.distribution, "version": self.version}
        return {**head, "status": self.status, "checks": checks}


class Doctor:
    """Diagnoses plugins for one environment."""

    def __init__(self, env: Mapping[str, str], timeout: float, install_command: Callable[[str], str]) -> None:
        self._env = env
        self._timeout = timeout
        self._install_command = install_command

    def diagnose(self, plugin: InstalledPlugin) -> Diagnosis:
        """Check a plugin: `fail` means broken; `warn`, not usable here and now, or not quite right."""
        checks = tuple(self._checks(plugin))
        return Diagnosis(plugin.kind, plugin.name, plugin.distribution, plugin.version, checks)

    def _checks(self, plugin: InstalledPlugin) -> Iterator[Check]:
        if plugin.problem is not None:
            yield plugin.problem
        if plugin.spec is None:
            return
        yield Check("load", "ok", plugin.summary)
        yield from plugin.warnings
        yield from self._requirements(plugin.requires)
        available = list(self._available(plugin.spec))
        usable = any(check.status == "ok" and check.detail for check in available)
        yield from self._variables(plugin.spec, usable=usable)
        yield from self._credentials(plugin.spec)
        yield from available
        yield from self._own(plugin.spec)

    def _requirements(self, requires: Sequence[str]) -> Iterator[Check]:
        """Are the distributions it depends on here, in the versions it asks for?"""
        for text in requires:
            try:
                wanted = Requirement(text)
            except InvalidRequirement:
                yield Check("requires", "fail", f"Its metadata has the unreadable requirement {text!r}.")
                continue
            name = canonicalize_name(wanted.name)
            if name == _CORE or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
                continue
            remedy = self._install_command(f"'{wanted.name}{wanted.specifier}'" if wanted.specifier else wanted.name)
            try:
                found = version(name)
            except PackageNotFoundError:
                yield Check("requires", "fail", f"{wanted.name} is not installed.", remedy)
                continue
            if wanted.specifier.contains(found, prereleases=True):
                yield Check("requires", "ok", f"{name} {found}")
            else:
                yield Check("requires", "fail", f"{name} {found} does not satisfy {wanted.specifier}.", remedy)

    def _variables(self, spec: Any, *, usable: bool) -> Iterator[Check]:
        """`usable`: the plugin says that it can be used. A variable that is not set then stands in its own files."""
        for name in getattr(spec, "requires", ()):
            if self._env.get(name):
                yield Check("variable", "ok", f"{name} is set.")
            elif usable:
                yield Check("variable", "ok", f"{name} is not set; it was found elsewhere.")
            else:
                yield Check("variable", "warn", f"{name} is not set.", _export(name))

    def _credentials(self, spec: Any) -> Iterator[Check]:
        options = getattr(spec, "auth", ())
        for option in options:
            if all(self._env.get(name) for name in option.env) and all(_exists(path) for path in option.files):
                found = ", ".join([*option.env, *option.files]) or "nothing needed"
                yield Check("credentials", "ok", f"{option.name}: {found}")
                return
        if options:
            hints = [option.hint or " and ".join([*map(_export, option.env), *option.files]) for option in options]
            yield Check("credentials", "warn", "None found.", " or ".join(filter(None, hints)))

    def _available(self, spec: Any) -> Iterator[Check]:
        ask = getattr(spec, "available", None)
        if ask is None:
            return
        found = self._answer("available", ask)
        if isinstance(found, Check):
            yield found
        elif isinstance(found, Availability):
            yield Check("available", "ok" if found.ok else "warn", found.reason, found.remedy)
        else:
            yield Check("available", "fail", "Its available() returned something else than an Availability.")

    def _own(self, spec: Any) -> Iterator[Check]:
        found = self._answer("check", spec.check)
        if isinstance(found, Check):
            yield found
        elif isinstance(found, list | tuple) and all(isinstance(item, Check) for item in found):
            yield from found
        else:
            yield Check("check", "fail", "Its check() returned something else than a list of Check.")

    def _answer(self, name: str, ask: Callable[[], Any]) -> Any:
        """Return the answer of plugin code, or a failed `Check`. A thread that does not come back is left behind."""
        answers: list[Any] = []

        def run() -> None:
            try:
                answers.append(ask())
            except BaseException as error:
                text = " ".join(str(error).split()).rstrip(".")
                said = f"{type(error).__name__}: {text}" if text else type(error).__name__
                answers.append(Check(name, "fail", f"Its {name}() raised {said}."))

        thread = threading.Thread(target=run, daemon=True)
        with redirect_stdout(io.StringIO()):
            thread.start()
            thread.join(self._timeout)
        return answers[0] if answers else Check(name, "fail", f"Its {name}() did not answer in {self._timeout:g} s.")


def _export(name: str) -> str:
    return f"export {name}=…"


def _exists(path: str) -> bool:
    return Path(path).expanduser().exists()
