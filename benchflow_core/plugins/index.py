"""What is installed, from metadata alone: nothing is imported here.

A plugin is one module of one distribution serving one kind. Entry points of a distribution with the same group and
value are its names: one is what it is called, the others are aliases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

from benchflow_core.plugins.distributions import Distribution, installed
from benchflow_core.quick import dataclass

__all__ = ["COMMAND_GROUP", "Index", "Plugin", "Problem", "kind_of", "normalised"]

COMMAND_GROUP: Final = "benchflow.commands"
"""As in `hookspecs.GROUPS`, which `bench --help` does not import: pluggy comes with it."""

_PREFIX: Final = "benchflow."
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.+-]*")
_MODULE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def normalised(name: str) -> str:
    """How a typed name is compared when it does not match as it is: `Claude_Code` finds `claude-code`."""
    return name.strip().lower().replace("_", "-")


def kind_of(group: str) -> str:
    """The kind a group stands for; the group itself when there is no such kind."""
    from benchflow_core.hookspecs import GROUPS

    return next((kind for kind, known in GROUPS.items() if known == group), group)


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed plugin, not imported."""

    group: str
    names: tuple[str, ...]
    """What it is called, then its aliases."""
    module: str
    distribution: Distribution

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def aliases(self) -> tuple[str, ...]:
        return self.names[1:]

    def programs(self) -> set[str]:
        """Its names, and the commands that its distribution installs."""
        lines = (self.distribution.entry_points() or "").splitlines()
        return {*self.names, *(line.partition("=")[0].strip() for line in lines if "=" in line)}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a plugin, in one line."""

    group: str
    name: str
    distribution: Distribution
    code: str
    """`name`, `entry-point`, `group`, `incompatible`, `import`, `hook`, `spec`, `output`, `misspelt`,
    `duplicate`."""
    message: str
    remedy: str = ""
    cause: BaseException | None = None
    usable: bool = False
    """It works all the same; the author should still hear of it."""

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()

    def as_plugin(self) -> Plugin:
        """What it would be, for matching it by name."""
        return Plugin(self.group, (normalised(self.name),), "", self.distribution)


class Index:
    """Group to plugins, and what could not be understood."""

    def __init__(self, distributions: Iterable[Distribution] | None = None) -> None:
        self.plugins: dict[str, list[Plugin]] = {}
        self.problems: list[Problem] = []
        for distribution in installed() if distributions is None else distributions:
            text = distribution.entry_points()
            if text and _PREFIX in text:
                self._add(distribution, text)
        for plugins in self.plugins.values():
            plugins.sort(key=lambda plugin: (plugin.name, plugin.distribution.name))

    def find(self, group: str, name: str) -> list[Plugin]:
        """Plugins that go by exactly this name; more than one when distributions collide."""
        return self._by_name.get((group, name), [])

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], list[Plugin]]:
        found: dict[tuple[str, str], list[Plugin]] = {}
        for group, plugins in self.plugins.items():
            for plugin in plugins:
                for name in plugin.names:
                    found.setdefault((group, name), []).append(plugin)
        return found

    def _add(self, distribution: Distribution, text: str) -> None:
        names: dict[tuple[str, str], list[str]] = {}
        taken: dict[tuple[str, str], str] = {}
        for group, name, value in _lines(text):
            if problem := _entry_problem(distribution, group, name, value, taken.get((group, name))):
                self.problems.append(problem)
                continue
            if taken.setdefault((group, name), value) == value and name not in names.get((group, value), ()):
                names.setdefault((group, value), []).append(name)
        for (group, module), found in names.items():
            plugin = Plugin(group, _called(found, distribution.name), module, distribution)
            self.plugins.setdefault(group, []).append(plugin)


def _lines(text: str) -> Iterator[tuple[str, str, str]]:
    """Group, name and value of every entry point in our groups; `value` is empty where there is no `=`."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif line and line[0] not in "#;" and group.startswith(_PREFIX):
            name, _, value = line.partition("=")
            yield group, name.strip(), value.strip()


def _entry_problem(
    distribution: Distribution, group: str, name: str, value: str, earlier: str | None
) -> Problem | None:
    def problem(code: str, message: str, remedy: str = "") -> Problem:
        return Problem(group, name, distribution, code, message, remedy)

    if not _MODULE.fullmatch(value):
        line = f"{name} = {value}" if value else name
        return problem(
            "entry-point",
            f"Its entry point {line!r} in [{group}] does not name a module.",
            f"Its author should write '{name or 'name'} = package.module'.",
        )
    if not _NAME.fullmatch(name):
        better = re.sub(r"[^a-z0-9.+-]+", "-", normalised(name)).strip("-.+")
        return problem(
            "name",
            f"Its name {name!r} in [{group}] cannot be used: lower-case letters, digits and . + - only.",
            f"Its author should rename it to {better!r}." if better else "",
        )
    if earlier is not None and earlier != value:
        return problem("entry-point", f"It names {name!r} in [{group}] twice: {earlier} and {value}. The first counts.")
    return None


def _called(names: list[str], distribution: str) -> tuple[str, ...]:
    """Metadata keeps no order, so: the longest name that ends the distribution's, else the shortest."""
    fitting = [name for name in names if f"-{distribution}".endswith(f"-{name}")]
    first = max(fitting, key=len) if fitting else min(names, key=lambda name: (len(name), name))
    return (first, *sorted(name for name in names if name != first))
