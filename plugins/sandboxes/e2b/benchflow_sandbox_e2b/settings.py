"""Where the account is and how boxes are made: from the environment, and from `--sandbox-option`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from benchflow_boxkit.options import COMMON, Credentials, Options, with_login
from benchflow_boxkit.sizes import Catalogue, Quantity, size_options

from benchflow_core.contracts.quick import dataclass

__all__ = ["OPTIONS", "E2bSettings", "credentials", "read_settings"]

_SIZES: Final = (
    Quantity("cpus", "cpus", "cores", 2, 8, step=1),
    Quantity("memory_mb", "memory_mb", "MB of memory", 2048, 8192, least=512, step=2),
    Quantity("storage_mb", "disk_mb", "MB of free disk", None, 10240),
)
OPTIONS: Final = {
    **size_options(_SIZES),
    "keep_minutes": "after which a box of a dead host ends (15)",
    **COMMON,
}
_CONFIG: Final = ".e2b/config.json"
"""Where `e2b auth login` keeps its key."""
_ARGUMENTS: Final = {
    "E2B_API_KEY": "api_key",
    "E2B_DOMAIN": "domain",
    "E2B_API_URL": "api_url",
    "E2B_SANDBOX_URL": "sandbox_url",
    "E2B_HTTP_VERSION": "http_version",
}
"""Variable to argument of the SDK."""


@dataclass(frozen=True, slots=True)
class E2bSettings:
    connection: Mapping[str, Any] = field(repr=False)
    """What every call of the SDK is given, the key included."""
    place: str
    """The account's address, for messages."""
    sizes: Catalogue
    keep_seconds: int
    creates_at_once: int
    create_tries: int

    @classmethod
    def of(cls, env: Mapping[str, str], options: Mapping[str, str] | None = None) -> E2bSettings:
        given = Options(options, OPTIONS, "E2B")
        found = credentials(env)
        values = found.require()
        return cls(
            connection={word: values[name] for name, word in _ARGUMENTS.items() if values.get(name)},
            place=found.place,
            sizes=Catalogue("E2B", _SIZES, given),
            keep_seconds=given.number("keep_minutes", 15, most=24 * 60) * 60,
            **given.pace,
        )

    def api_client(self) -> Any:
        """Return the SDK's generated client, for requests that its classes do not offer."""
        from e2b.api.client_async import get_api_client
        from e2b.connection_config import ConnectionConfig

        return get_api_client(ConnectionConfig(**self.connection))


def credentials(env: Mapping[str, str]) -> Credentials:
    values = with_login(env, _CONFIG, lambda text: {"E2B_API_KEY": json.loads(text).get("teamApiKey")})
    return Credentials(
        "E2B",
        values,
        values.get("E2B_API_URL") or f"https://api.{values.get('E2B_DOMAIN') or 'e2b.app'}",
        "" if values.get("E2B_API_KEY") else "E2B_API_KEY is not set",
        "Make a key in E2B's dashboard and set E2B_API_KEY.",
    )


read_settings = E2bSettings.of
"""What the spec of a cloud asks for by this name."""
