"""Where the account is and how boxes are made: from the environment or Modal's own file, and `--sandbox-option`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from benchflow_boxkit.options import COMMON, Options

from benchflow_core.contracts.common import Availability
from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import ConfigurationError

__all__ = ["OPTIONS", "Settings", "available"]

DEFAULT_URL: Final = "https://api.modal.com"
OPTIONS: Final = {
    "app": "the Modal app that boxes belong to (benchflow)",
    "environment": "the Modal environment, instead of MODAL_ENVIRONMENT",
    "region": "regions that boxes may be in, with commas between",
    "cloud": "the cloud provider",
    "cpus": "of a box whose task asks for none (2)",
    "memory_mb": "of a box whose task asks for none (4096)",
    "max_cpus": "most that one box may have (64)",
    "max_memory_mb": "likewise (344064)",
    "idle_minutes": "after which a box of a dead host ends itself (30)",
    **COMMON,
}
_NONE: Final = "MODAL_TOKEN_ID and MODAL_TOKEN_SECRET are not set"
_REMEDY: Final = "Run modal token new, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET."


@dataclass(frozen=True, slots=True)
class Settings:
    url: str
    token: str = field(repr=False)
    secret: str = field(repr=False)
    environment: str | None
    app: str
    regions: tuple[str, ...]
    cloud: str | None
    cpus: int
    memory_mb: int
    max_cpus: int
    max_memory_mb: int
    idle_seconds: float
    creates_at_once: int
    create_tries: int

    @classmethod
    def of(cls, env: Mapping[str, str], options: Mapping[str, str] | None = None) -> Settings:
        given = Options(options, OPTIONS, "Modal")
        found = _account(env)
        if not found.get("token_id") or not found.get("token_secret"):
            raise ConfigurationError(f"Modal has no credentials: {_missing(found)}.", remedy=_REMEDY)

        cpus, max_cpus = given.limited("cpus", 2, "max_cpus", 64)
        memory, max_memory = given.limited("memory_mb", 4096, "max_memory_mb", 344064, least=128)
        return cls(
            url=found.get("server_url") or DEFAULT_URL,
            token=found["token_id"],
            secret=found["token_secret"],
            environment=given.word("environment") or found.get("environment"),
            app=given.word("app") or "benchflow",
            regions=given.words("region"),
            cloud=given.word("cloud"),
            cpus=cpus,
            memory_mb=memory,
            max_cpus=max_cpus,
            max_memory_mb=max_memory,
            idle_seconds=given.number("idle_minutes", 30, most=24 * 60) * 60,
            creates_at_once=given.number("creates_at_once", 16),
            create_tries=given.number("create_tries", 6),
        )


def _account(env: Mapping[str, str]) -> dict[str, str]:
    """As Modal's own command reads it: the environment, then the profile of its file that is chosen or active."""
    found = _profile(env)
    for name in ("token_id", "token_secret", "server_url", "environment"):
        if value := env.get(f"MODAL_{name.upper()}"):
            found[name] = value
    return found


def _profile(env: Mapping[str, str]) -> dict[str, str]:
    path = env.get("MODAL_CONFIG_PATH") or Path(env.get("HOME") or Path.home(), ".modal.toml")
    try:
        data: dict[str, Any] = tomllib.loads(Path(path).expanduser().read_text())
    except (OSError, ValueError):
        return {}
    profiles = {name: row for name, row in data.items() if isinstance(row, dict)}
    active = next((name for name, row in profiles.items() if row.get("active")), "default")
    row = profiles.get(env.get("MODAL_PROFILE") or active, {})
    return {str(name): value for name, value in row.items() if isinstance(value, str)}


def _missing(found: Mapping[str, str]) -> str:
    missing = [f"MODAL_{name.upper()}" for name in ("token_id", "token_secret") if not found.get(name)]
    return _NONE if len(missing) == 2 else f"{missing[0]} is not set"


def available() -> Availability:
    """Without a word to the vendor."""
    found = _account(os.environ)
    if found.get("token_id") and found.get("token_secret"):
        return Availability(True, f"credentials are set, {found.get('server_url') or DEFAULT_URL}")
    return Availability(False, _missing(found), _REMEDY)
