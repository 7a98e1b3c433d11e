"""The plugin: `dataset:NAME@VERSION`, a version of a dataset registry."""

from __future__ import annotations

from benchflow_core.contracts import Fetched, SourceRequest, SourceSpec
from benchflow_core.hookspecs import hookimpl


def fetch(request: SourceRequest) -> Fetched:
    from benchflow_source_git.registry import fetch_dataset

    return fetch_dataset(request)


def matches(uri: str) -> bool:
    return uri.startswith("dataset:")


@hookimpl
def benchflow_source() -> SourceSpec:
    return SourceSpec(summary="versions of datasets, pinned by commit and content", matches=matches, fetch=fetch)
