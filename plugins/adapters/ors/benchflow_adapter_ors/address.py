"""Where an environment is: `openreward/OWNER/NAME`, or the address of a server that speaks ORS."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from benchflow_core.errors import ConfigurationError

__all__ = ["PREFIX", "OrsServer", "matches", "read_address"]

PREFIX: Final = "env:"
_HOSTED: Final = re.compile(r"openreward/([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)")
_ANY: Final = re.compile(r"env:(openreward/[^\s\0]+|https?://[^\s\0]+(?<!\.whl))")
_SITE: Final = "https://openreward.ai"


@dataclass(frozen=True)
class OrsServer:
    """A server, and which of its deployments is meant where it has several."""

    base: str
    """Without a slash at the end."""
    deployment: str | None = None

    def __str__(self) -> str:
        return f"openreward/{self.deployment}" if self.deployment else self.base

    @property
    def key_variable(self) -> str:
        return "OPENREWARD_API_KEY" if self.deployment else "ORS_API_KEY"

    def headers(self) -> dict[str, str]:
        """The key goes where the user sent us, and nowhere else."""
        key = os.environ.get(self.key_variable)
        found = {"X-API-Key": key} if key else {}
        return {**found, "X-Deployment": self.deployment} if self.deployment else found


def matches(uri: str) -> bool:
    return _ANY.fullmatch(uri) is not None


def read_address(uri: str) -> tuple[OrsServer, dict[str, str]]:
    """The server, and what stands behind the question mark."""
    place, _, query = uri.removeprefix(PREFIX).partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if found := _HOSTED.fullmatch(place):
        return OrsServer(_hosted(), found[1]), options
    split = urlsplit(place)
    if split.scheme not in ("http", "https") or not split.hostname or split.username or split.fragment:
        remedy = "Write openreward/OWNER/NAME or http://HOST:PORT."
        raise ConfigurationError(f"'{place}' is no address of an ORS environment.", remedy=remedy)
    return OrsServer(place.rstrip("/")), options


def _hosted() -> str:
    """As the original client reads it: an address for sessions, or the site whose part it is."""
    if sessions := os.environ.get("OPENREWARD_SESSION_URL"):
        return sessions.rstrip("/")
    site = urlsplit(os.environ.get("OPENREWARD_URL") or _SITE)
    return f"{site.scheme}://sessions.{site.netloc}"
