"""The plugin: which addresses are git repositories, and how they are fetched."""

from __future__ import annotations

import re
from pathlib import Path

from benchflow_core.contracts import Check, Fetched, SourceRequest, SourceSpec
from benchflow_core.hookspecs import hookimpl

_URL = re.compile(r"(?:git\+)?(?:https?|ssh|git|file)://[^\s\0]+")
_SCP = re.compile(r"[\w.-]+@[\w.-]+:[^\s\0-][^\s\0]*")
_SHORT = re.compile(r"[A-Za-z0-9][\w-]*/[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*")


def matches(uri: str) -> bool:
    return bool(_URL.fullmatch(uri) or _SCP.fullmatch(uri) or _SHORT.fullmatch(uri)) or _is_repository(uri)


def _is_repository(uri: str) -> bool:
    """A repository on this disk: bare, or a clone with its working tree."""
    if not uri or "\0" in uri or uri.startswith("-"):
        return False
    folder = Path(uri).expanduser()
    return any((place / "HEAD").is_file() and (place / "objects").is_dir() for place in (folder, folder / ".git"))


def fetch(request: SourceRequest) -> Fetched:
    from benchflow_source_git.fetch import fetch_snapshot

    return fetch_snapshot(request)


def check() -> list[Check]:
    from benchflow_source_git.program import check_git

    return check_git()


@hookimpl
def benchflow_source() -> SourceSpec:
    return SourceSpec(summary="git repositories, by commit", matches=matches, fetch=fetch, check=check)
