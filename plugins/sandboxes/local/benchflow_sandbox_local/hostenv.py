"""Settings of the host without which a box cannot reach the package indexes: certificates and index addresses.

Only what holds no credential, and only paths that a box can see.
"""

from __future__ import annotations

import configparser
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from benchflow_sandbox_local import host

__all__ = ["host_environment"]

_CERTIFICATES: Final = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT",
    "GIT_SSL_CAINFO", "NIX_SSL_CERT_FILE",
)  # fmt: skip
_INDEXES: Final = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX_URL", "UV_DEFAULT_INDEX")
_PIP_OPTIONS: Final = {
    "index-url": "PIP_INDEX_URL", "extra-index-url": "PIP_EXTRA_INDEX_URL", "find-links": "PIP_FIND_LINKS",
    "cert": "PIP_CERT",
}  # fmt: skip


def host_environment(env: Mapping[str, str]) -> dict[str, str]:
    found = {name: env[name] for name in (*_CERTIFICATES, *_INDEXES) if env.get(name)}
    for name, value in _pip_settings(env).items():
        found.setdefault(name, value)
    registry = _npm_registry(env)
    if registry:
        found["npm_config_registry"] = registry
    return {name: value for name, value in found.items() if all(_harmless(word) for word in value.split())}


def _harmless(word: str) -> bool:
    parts = urlsplit(word)
    if parts.scheme in ("http", "https"):
        return parts.username is None and parts.password is None and not parts.query
    path = parts.path if parts.scheme == "file" else word
    top = path.split("/")[1] if path.startswith("/") else ""
    return (top in host.HOST_DIRS or top == "etc") and os.path.exists(path)


def _pip_settings(env: Mapping[str, str]) -> dict[str, str]:
    """The user's own pip configuration, which lies in the hidden home folder."""
    home = Path(env.get("HOME") or "~").expanduser()
    config = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    found: dict[str, str] = {}
    for path in (home / ".pip/pip.conf", config / "pip/pip.conf", Path(env.get("PIP_CONFIG_FILE") or os.devnull)):
        parser = configparser.RawConfigParser(strict=False)
        with contextlib.suppress(OSError, configparser.Error, UnicodeError):
            parser.read_string(path.read_text())
        for option, name in _PIP_OPTIONS.items():
            if parser.has_option("global", option):
                found[name] = " ".join(parser.get("global", option).split())
    return found


def _npm_registry(env: Mapping[str, str]) -> str | None:
    with contextlib.suppress(OSError, UnicodeError):
        text = (Path(env.get("HOME") or "~").expanduser() / ".npmrc").read_text()
        for line in text.splitlines():
            name, equals, value = line.partition("=")
            if equals and name.strip() == "registry":
                return value.strip()
    return None
