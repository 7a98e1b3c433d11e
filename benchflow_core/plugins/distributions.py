"""Installed distributions, read straight from `sys.path`.

`importlib.metadata` gives the same answer, but importing it costs about half as much as importing click, and one
unreadable `entry_points.txt` of any package makes its `entry_points()` raise for everybody. It is used only for what is
not a plain folder: archives on the path and import hooks that bring distributions of their own.
"""

# pathlib would double the cost of the scan, and this runs on every `bench --help`.
# ruff: noqa: PTH118, PTH119, PTH123, PTH208

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib.machinery import PathFinder

__all__ = ["Distribution", "canonical", "installed"]

_INFO = (".dist-info", ".egg-info")


def canonical(name: str) -> str:
    """A distribution name as it is compared: `Benchflow_Agent.X` is `benchflow-agent-x`."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Distribution:
    """One installed distribution. Files are read on demand."""

    def __init__(self, name: str, version: str, read: Callable[[str], str | None]) -> None:
        self.name = name
        self._version = version
        self._read = read

    def __repr__(self) -> str:
        return f"Distribution({self})"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def version(self) -> str:
        return self._version or next(iter(self.header("Version")), "?")

    @property
    def summary(self) -> str:
        return next(iter(self.header("Summary")), "")

    def entry_points(self) -> str | None:
        """The text of `entry_points.txt`."""
        return self._read("entry_points.txt")

    def header(self, name: str) -> list[str]:
        """Every value of one metadata field."""
        return self._headers.get(name.lower(), [])

    @cached_property
    def _headers(self) -> dict[str, list[str]]:
        text = self._read("METADATA") or self._read("PKG-INFO") or ""
        found: dict[str, list[str]] = {}
        values: list[str] = []
        for line in text.splitlines():
            if not line.strip():
                break
            if line[0] in " \t" and values:
                values[-1] = f"{values[-1]} {line.strip()}"
                continue
            key, _, value = line.partition(":")
            values = found.setdefault(key.strip().lower(), [])
            values.append(value.strip())
        return found


def installed() -> Iterator[Distribution]:
    """Every distribution, each once; as for imports, the first on the path wins."""
    seen: set[str] = set()
    for distribution in _all():
        if distribution.name not in seen:
            seen.add(distribution.name)
            yield distribution


def _all() -> Iterator[Distribution]:
    for entry in sys.path:
        try:
            names = sorted(os.listdir(entry or "."))
        except NotADirectoryError:
            yield from _in_archive(entry)
            continue
        except OSError:
            continue
        for name in names:
            if name.endswith(_INFO):
                yield _in_folder(os.path.join(entry or ".", name))
    yield from _from_import_hooks()


def _in_folder(path: str) -> Distribution:
    name, dash, version = os.path.basename(path)[: -len(_INFO[0])].rpartition("-")
    if not dash:
        name, version = version, ""

    def read(file: str) -> str | None:
        try:
            with open(os.path.join(path, file), encoding="utf-8", errors="replace") as stream:
                return stream.read()
        except OSError:
            return None

    return Distribution(canonical(name), version, read)


def _in_archive(path: str) -> Iterator[Distribution]:
    from importlib.metadata import distributions

    for found in distributions(path=[path]):
        yield Distribution(canonical(found.name), found.version, found.read_text)


def _from_import_hooks() -> Iterator[Distribution]:
    for finder in sys.meta_path:
        find = getattr(finder, "find_distributions", None)
        if find is None or finder is PathFinder:
            continue
        from importlib.metadata import DistributionFinder

        for found in find(DistributionFinder.Context()):
            yield Distribution(canonical(found.name), found.version, found.read_text)
