"""The plugin: which addresses it serves, and how it fetches them."""

from __future__ import annotations

from benchflow_core.contracts import Fetched, SourceRequest, SourceSpec
from benchflow_core.hookspecs import hookimpl

SCHEME = "{{name}}:"


def matches(uri: str) -> bool:
    return uri.startswith(SCHEME) and "\0" not in uri


def fetch(request: SourceRequest) -> Fetched:
    from {{module}}.copy import fetch_folder

    return fetch_folder(request, request.uri.removeprefix(SCHEME))


@hookimpl
def benchflow_source() -> SourceSpec:
    return SourceSpec(summary="folders, copied by content", matches=matches, fetch=fetch)
