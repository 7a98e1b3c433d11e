"""Where the account is and how boxes are made: from the environment, and from `--sandbox-option`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Final

from benchflow_boxkit.options import COMMON, Options

from benchflow_core.contracts.common import Availability
from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import ConfigurationError

__all__ = ["OPTIONS", "Settings", "available"]

DEFAULT_URL: Final = "https://app.daytona.io/api"
OPTIONS: Final = {
    "target": "the region, instead of DAYTONA_TARGET",
    "cpus": "of a box whose task asks for none (2)",
    "memory_gb": "of a box whose task asks for none (4)",
    "disk_gb": "of a box whose task asks for none (10)",
    "max_cpus": "most that the organization may give one box (4)",
    "max_memory_gb": "likewise (8)",
    "max_disk_gb": "likewise (10)",
    "auto_stop_minutes": "after which a box of a dead host is stopped and deleted (30)",
    **COMMON,
}
_KEY: Final = ("DAYTONA_API_KEY", "DAYTONA_JWT_TOKEN")
_CONFIG: Final = ".config/daytona/config.json"
"""Where the vendor's own command keeps its profiles."""
_NONE: Final = "DAYTONA_API_KEY is not set"
_REMEDY: Final = "Make a key in Daytona's dashboard and set DAYTONA_API_KEY."


@dataclass(frozen=True, slots=True)
class Settings:
    url: str
    key: str = field(repr=False)
    organization: str | None
    target: str | None
    default: Mapping[str, int]
    """cpu, memory and disk of a box whose task asks for none."""
    most: Mapping[str, int]
    auto_stop_minutes: int
    creates_at_once: int
    create_tries: int

    @classmethod
    def of(cls, env: Mapping[str, str], options: Mapping[str, str] | None = None) -> Settings:
        given = Options(options, OPTIONS, "Daytona")
        env = {**_profile(env), **{name: value for name, value in env.items() if value}}
        key = next((env[name] for name in _KEY if env.get(name)), "")
        if not key:
            raise ConfigurationError(f"Daytona has no credentials: {_NONE}.", remedy=_REMEDY)
        if not env.get("DAYTONA_API_KEY") and not env.get("DAYTONA_ORGANIZATION_ID"):
            raise ConfigurationError(
                "DAYTONA_JWT_TOKEN needs DAYTONA_ORGANIZATION_ID beside it.", remedy="Set it, or use DAYTONA_API_KEY."
            )

        sizes = {
            "cpu": given.limited("cpus", 2, "max_cpus", 4),
            "memory": given.limited("memory_gb", 4, "max_memory_gb", 8),
            "disk": given.limited("disk_gb", 10, "max_disk_gb", 10),
        }
        return cls(
            url=(env.get("DAYTONA_API_URL") or DEFAULT_URL).rstrip("/"),
            key=key,
            organization=None if env.get("DAYTONA_API_KEY") else env.get("DAYTONA_ORGANIZATION_ID"),
            target=given.word("target") or env.get("DAYTONA_TARGET"),
            default={name: row[0] for name, row in sizes.items()},
            most={name: row[1] for name, row in sizes.items()},
            auto_stop_minutes=given.number("auto_stop_minutes", 30),
            creates_at_once=given.number("creates_at_once", 16),
            create_tries=given.number("create_tries", 6),
        )


def _profile(env: Mapping[str, str]) -> dict[str, str]:
    """The active profile of `daytona login`, in the environment's words; nothing where there is none."""
    try:
        path = Path(env.get("HOME") or Path.home(), _CONFIG)
        data = json.loads(path.read_text())
        profile = next(row for row in data["profiles"] if row["id"] == data["activeProfile"])
        found = {"DAYTONA_API_URL": profile["api"].get("url"), "DAYTONA_API_KEY": profile["api"].get("key")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return {}
    return {name: str(value) for name, value in found.items() if value} if found["DAYTONA_API_KEY"] else {}


def available() -> Availability:
    """Without a word to the vendor."""
    env = {**_profile(os.environ), **{name: value for name, value in os.environ.items() if value}}
    if any(env.get(name) for name in _KEY):
        return Availability(True, f"credentials are set, {env.get('DAYTONA_API_URL') or DEFAULT_URL}")
    return Availability(False, _NONE, _REMEDY)
