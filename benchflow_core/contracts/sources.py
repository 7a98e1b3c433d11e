"""Sources: list and fetch tasks from somewhere that is not a local folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from benchflow_core.contracts.common import CheckFn, no_checks
from benchflow_core.quick import dataclass

__all__ = ["Fetched", "SourceRequest", "SourceSpec"]


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """What to fetch."""

    uri: str
    """As the user wrote it: `--source-repo REPO` as it is, `--source-env ADDRESS` as `env:ADDRESS`, and
    `-d NAME@VERSION` as `dataset:NAME@VERSION`."""
    path: str | None = None
    ref: str | None = None
    cache_dir: Path = Path(".cache")
    options: Mapping[str, str] = field(default_factory=dict)
    """What the user said besides: `registry` and `ignore_bench_version` for a dataset."""
    fetch: Callable[[str, str | None, str | None], Fetched] | None = None
    """URI, path, ref: fetch from whichever source serves that, for one that refers to others."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An immutable local copy and where it came from."""

    root: Path
    """A task folder, or a folder of several: each is read by the adapter that knows its format."""
    provenance: Mapping[str, Any]
    """At least `type`, `uri`, `requested_ref`, `resolved_sha`, `path`."""
    tasks: tuple[Path, ...] = ()
    """The tasks, where the source itself says which they are; else the core looks for them below `root`."""
    digests: tuple[str, ...] = ()
    """For each of `tasks` the digest that it must have: the core compares, and runs nothing where one differs."""
    stamp: Mapping[str, str] | None = None
    """For a named version of a collection: its `name` and `version`, which every result repeats."""
    notices: tuple[str, ...] = ()
    """What the user should know: what was left out, what may not be comparable."""


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source, chosen by the first that says it can serve the URI.

    Example::

        @hookimpl
        def benchflow_source() -> SourceSpec:
            return SourceSpec(summary="git repositories", matches=looks_like_git, fetch=clone_snapshot)
    """

    summary: str
    matches: Callable[[str], bool]
    fetch: Callable[[SourceRequest], Fetched]
    """Blocking; called off the event loop. Safe under concurrent use of one cache."""
    check: CheckFn = no_checks
    rank: int = 50
