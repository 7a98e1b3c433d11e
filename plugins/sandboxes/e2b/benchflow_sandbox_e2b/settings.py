"""Where the account is and how boxes are made: from the environment, and from `--sandbox-option`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from benchflow_boxkit.options import COMMON, Options

from benchflow_core.contracts.common import Availability
from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import ConfigurationError

__all__ = ["LEAST_MB", "OPTIONS", "Settings", "available"]

OPTIONS: Final = {
    "cpus": "of a box whose task asks for none (2)",
    "memory_mb": "of a box whose task asks for none (2048)",
    "max_cpus": "most that the team may give one box (8)",
    "max_memory_mb": "likewise (8192)",
    "max_disk_mb": "most free disk that the team's boxes have (10240)",
    "keep_minutes": "after which a box of a dead host ends (15)",
    **COMMON,
}
LEAST_MB: Final = 512
"""Of memory, in the smallest box."""
_CONFIG: Final = ".e2b/config.json"
"""Where the vendor's own command keeps what `e2b auth login` got."""
_NONE: Final = "E2B_API_KEY is not set"
_REMEDY: Final = "Make a key in E2B's dashboard and set E2B_API_KEY."
_MAPPED: Final = {
    "E2B_API_KEY": "api_key",
    "E2B_DOMAIN": "domain",
    "E2B_API_URL": "api_url",
    "E2B_SANDBOX_URL": "sandbox_url",
    "E2B_HTTP_VERSION": "http_version",
}


@dataclass(frozen=True, slots=True)
class Settings:
    connection: Mapping[str, Any] = field(repr=False)
    """What every call of the SDK is given, the key included."""
    place: str
    """The account's address, for messages."""
    default: Mapping[str, int]
    most: Mapping[str, int]
    keep_seconds: int
    creates_at_once: int
    create_tries: int

    @classmethod
    def of(cls, env: Mapping[str, str], options: Mapping[str, str] | None = None) -> Settings:
        given = Options(options, OPTIONS, "E2B")
        env = {**_login(env), **{name: value for name, value in env.items() if value}}
        if not env.get("E2B_API_KEY"):
            raise ConfigurationError(f"E2B has no credentials: {_NONE}.", remedy=_REMEDY)

        cpus = given.limited("cpus", 2, "max_cpus", 8)
        memory = given.limited("memory_mb", 2048, "max_memory_mb", 8192, least=LEAST_MB)
        if odd := next((found for found in memory if found % 2), None):
            raise ConfigurationError(f"E2B sells even megabytes; {odd} is odd.", remedy=f"Use {odd + 1}.")
        return cls(
            connection={word: env[name] for name, word in _MAPPED.items() if env.get(name)},
            place=_place(env),
            default={"cpu": cpus[0], "memory": memory[0]},
            most={"cpu": cpus[1], "memory": memory[1], "disk": given.number("max_disk_mb", 10240)},
            keep_seconds=given.number("keep_minutes", 15, most=24 * 60) * 60,
            creates_at_once=given.number("creates_at_once", 16),
            create_tries=given.number("create_tries", 6),
        )


def _place(env: Mapping[str, str]) -> str:
    return env.get("E2B_API_URL") or f"https://api.{env.get('E2B_DOMAIN') or 'e2b.app'}"


def _login(env: Mapping[str, str]) -> dict[str, str]:
    """What the vendor's own command was given, in the environment's words; nothing where there is nothing."""
    try:
        data = json.loads(Path(env.get("HOME") or Path.home(), _CONFIG).read_text())
        key = data.get("teamApiKey")
    except (OSError, ValueError, AttributeError):
        return {}
    return {"E2B_API_KEY": key} if isinstance(key, str) and key else {}


def available() -> Availability:
    """Without a word to the vendor."""
    env = {**_login(os.environ), **{name: value for name, value in os.environ.items() if value}}
    if env.get("E2B_API_KEY"):
        return Availability(True, f"credentials are set, {_place(env)}")
    return Availability(False, _NONE, _REMEDY)
