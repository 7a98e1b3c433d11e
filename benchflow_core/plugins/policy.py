"""Which plugins may be imported at all. Decided from metadata, before anything is imported.

`BENCHFLOW_PLUGINS=a,b` allows only these (empty: none), `--no-plugins` allows none, `-p no:NAME` takes one out. A NAME
is `kind:name`, a name, or a distribution. What `benchflow-core` itself provides is part of the core: only an explicit
`-p no:NAME` takes it out. `BENCHFLOW_PLUGINS_STRICT=1` and `--strict-plugins` turn every plugin problem into an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from benchflow_core.plugins.distributions import canonical
from benchflow_core.plugins.index import Plugin, kind_of, normalised
from benchflow_core.quick import dataclass

__all__ = ["CORE", "Block", "Policy"]

CORE: Final = "benchflow-core"
_ALLOW: Final = "BENCHFLOW_PLUGINS"
_STRICT: Final = "BENCHFLOW_PLUGINS_STRICT"


@dataclass(frozen=True, slots=True)
class Block:
    """Who keeps a plugin out, and what would let it in."""

    by: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Policy:
    """What the user allowed."""

    allow: tuple[str, ...] | None = None
    """`None`: everything."""
    none: bool = False
    blocked: tuple[str, ...] = ()
    strict: bool = False

    @classmethod
    def read(
        cls,
        env: Mapping[str, str] | None = None,
        *,
        none: bool = False,
        blocked: Iterable[str] = (),
        strict: bool = False,
    ) -> Policy:
        """From the environment and the command line."""
        env = os.environ if env is None else env
        listed = env.get(_ALLOW)
        allow = None if listed is None else tuple(item.strip() for item in listed.split(",") if item.strip())
        strict = strict or env.get(_STRICT, "").strip().lower() not in ("", "0", "false", "no")
        return cls(allow=allow, none=none, blocked=tuple(blocked), strict=strict)

    def block(self, plugin: Plugin) -> Block | None:
        """Why this plugin may not be imported; `None` if it may."""
        for item in self.blocked:
            if matches(item, plugin):
                return Block(f"-p no:{item}", "Leave that option out to use it.")
        if plugin.distribution.name == CORE:
            return None
        if self.none:
            return Block("--no-plugins", "Leave that option out to use it.")
        if self.allow is not None and not any(matches(item, plugin) for item in self.allow):
            listed = ",".join(self.allow)
            return Block(f"{_ALLOW}={listed!r}", f"Add {plugin.name} to {_ALLOW}, or unset it.")
        return None

    def idle(self, plugins: Iterable[Plugin]) -> list[str]:
        """Where an item of the user's matches nothing installed: most likely misspelt."""
        known = list(plugins)
        said = [
            *((f"-p no:{item}", item) for item in self.blocked),
            *((f"{_ALLOW}={item}", item) for item in self.allow or ()),
        ]
        return [words for words, item in said if not any(matches(item, plugin) for plugin in known)]


def matches(item: str, plugin: Plugin) -> bool:
    """Does `kind:name`, `distribution::name`, a name or a distribution mean this plugin? An alias is a name."""
    owner, separator, name = item.partition("::")
    if separator:
        return canonical(owner) == plugin.distribution.name and normalised(name) in plugin.names
    kind, separator, name = item.partition(":")
    if separator:
        return normalised(kind) == kind_of(plugin.group) and normalised(name) in plugin.names
    return normalised(item) in plugin.names or canonical(item) == plugin.distribution.name
