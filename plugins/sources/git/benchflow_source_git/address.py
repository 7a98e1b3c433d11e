"""Addresses of repositories: shorthands written out, secrets kept apart."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import ConfigurationError

__all__ = ["Address", "read_address", "read_path", "read_ref"]

_SHORTHAND_HOST = "https://github.com/"
_SHORTHAND = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Address:
    """A repository. `url` is safe to show; `env` gives git the password it was written with."""

    url: str
    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The last part, as a folder name."""
        last = re.split(r"[/:]", self.url.rstrip("/"))[-1].removesuffix(".git")
        return re.sub(r"[^\w.-]", "-", last).strip(".-") or "repository"

    @property
    def key(self) -> str:
        """Its folder in the cache."""
        return f"{self.name}-{hashlib.sha256(self.url.encode()).hexdigest()[:12]}"


def read_address(uri: str) -> Address:
    local = Path(uri).expanduser()
    if _SHORTHAND.fullmatch(uri) and not uri.startswith("."):
        return Address(_SHORTHAND_HOST + uri.removesuffix(".git"))
    if "://" not in uri and local.is_dir():
        return Address(str(local.resolve()))
    uri = uri.removeprefix("git+")
    parts = urlsplit(uri) if "://" in uri else None
    if parts is None or not parts.password:
        return Address(uri)
    public = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    # Git reads the password from our environment, so that it shows in no list of processes and in no file of ours.
    secret = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.{uri}.insteadOf", "GIT_CONFIG_VALUE_0": public}
    return Address(public, secret)


def read_path(path: str | None) -> str:
    """Below the repository's root, as git writes it; empty: all of it."""
    parts = [part for part in (path or "").strip("/").split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in (path or ""):
        raise ConfigurationError(f"--source-path '{path}' leads out of the repository.")
    return "/".join(parts)


def read_ref(ref: str | None) -> str | None:
    if ref is not None and (not ref or ref.startswith("-") or re.search(r"[\s\0~^:?*\[\\]|\.\.", ref)):
        raise ConfigurationError(f"'{ref}' is not a branch, tag or commit.")
    return ref
