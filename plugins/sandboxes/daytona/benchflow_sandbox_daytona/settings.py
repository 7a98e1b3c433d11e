"""Where the account is and how boxes are made: from the environment, and from `--sandbox-option`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from benchflow_boxkit.options import COMMON, Credentials, Options, with_login
from benchflow_boxkit.sizes import Catalogue, Quantity, size_options

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import ConfigurationError

__all__ = ["OPTIONS", "DaytonaSettings", "credentials", "read_settings"]

DEFAULT_URL: Final = "https://app.daytona.io/api"
_SIZES: Final = (
    Quantity("cpus", "cpus", "cores", 2, 4, step=1),
    Quantity("memory_mb", "memory_gb", "GB of memory", 4, 8, step=1, scale=1024),
    Quantity("storage_mb", "disk_gb", "GB of disk", 10, 10, step=1, scale=1024),
)
OPTIONS: Final = {
    "target": "the region, instead of DAYTONA_TARGET",
    **size_options(_SIZES),
    "auto_stop_minutes": "after which a box of a dead host is stopped and deleted (30)",
    **COMMON,
}
_KEYS: Final = ("DAYTONA_API_KEY", "DAYTONA_JWT_TOKEN")
_CONFIG: Final = ".config/daytona/config.json"
"""Where `daytona login` keeps its profiles."""


@dataclass(frozen=True, slots=True)
class DaytonaSettings:
    place: str
    """The API's address."""
    key: str = field(repr=False)
    organization: str | None
    target: str | None
    sizes: Catalogue
    auto_stop_minutes: int
    creates_at_once: int
    create_tries: int

    @classmethod
    def of(cls, env: Mapping[str, str], options: Mapping[str, str] | None = None) -> DaytonaSettings:
        given = Options(options, OPTIONS, "Daytona")
        found = credentials(env)
        values = found.require()
        by_key = bool(values.get("DAYTONA_API_KEY"))
        if not by_key and not values.get("DAYTONA_ORGANIZATION_ID"):
            raise ConfigurationError(
                "DAYTONA_JWT_TOKEN needs DAYTONA_ORGANIZATION_ID beside it.", remedy="Set it, or use DAYTONA_API_KEY."
            )
        return cls(
            place=found.place,
            key=next(values[name] for name in _KEYS if values.get(name)),
            organization=None if by_key else values["DAYTONA_ORGANIZATION_ID"],
            target=given.word("target") or values.get("DAYTONA_TARGET"),
            sizes=Catalogue("Daytona", _SIZES, given, gpus=True),
            auto_stop_minutes=given.number("auto_stop_minutes", 30),
            **given.pace,
        )


def credentials(env: Mapping[str, str]) -> Credentials:
    values = with_login(env, _CONFIG, _profile)
    return Credentials(
        "Daytona",
        values,
        (values.get("DAYTONA_API_URL") or DEFAULT_URL).rstrip("/"),
        "" if any(values.get(name) for name in _KEYS) else "DAYTONA_API_KEY is not set",
        "Make a key in Daytona's dashboard and set DAYTONA_API_KEY.",
    )


def _profile(text: str) -> dict[str, str | None]:
    """Return the active profile as variables; nothing where it holds no key."""
    data = json.loads(text)
    api = next(row for row in data["profiles"] if row["id"] == data["activeProfile"])["api"]
    return {"DAYTONA_API_URL": api.get("url"), "DAYTONA_API_KEY": api["key"]} if api.get("key") else {}


read_settings = DaytonaSettings.of
"""What the spec of a cloud asks for by this name."""
