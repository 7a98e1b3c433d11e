"""From what the `plugin` fixture returned to a spec, and to the distribution it came in."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from typing import Any

import pytest

from benchflow_core.hookspecs import GROUPS

__all__ = ["Resolved", "resolve", "spec_type"]


@dataclass(frozen=True)
class Resolved:
    """The plugin under test."""

    kind: str
    spec: Any
    name: str | None
    """`None` when the fixture gave a spec and no entry point is involved."""

    def entry_point(self) -> importlib.metadata.EntryPoint:
        """Its entry point; the test is skipped for a plugin given as a spec."""
        if self.name is None:
            pytest.skip("the plugin was given as a spec, not by its entry-point name")
        dist, _, name = self.name.rpartition("::")
        found = [
            e
            for e in importlib.metadata.entry_points(group=GROUPS[self.kind], name=name)
            if e.dist is not None and dist in ("", e.dist.name)
        ]
        assert found, f"no entry point {self.name!r} in the group {GROUPS[self.kind]!r}: is the package installed?"
        assert len({e.value for e in found}) == 1, (
            f"several distributions claim {self.name!r}: {[e.dist for e in found]}"
        )
        return found[0]

    def distribution(self) -> importlib.metadata.Distribution:
        dist = self.entry_point().dist
        assert dist is not None
        return dist


def resolve(kind: str, plugin: object) -> Resolved:
    """A name is looked up as `bench` does it; anything else is taken as the spec itself."""
    if not isinstance(plugin, str):
        return Resolved(kind, plugin, None)
    from benchflow_core.plugins import registry

    return Resolved(kind, registry().get(kind, plugin).spec, plugin)


def spec_type(kind: str) -> type[Any]:
    from benchflow_core import contracts

    found: type[Any] = getattr(contracts, f"{kind.capitalize()}Spec")
    return found
