"""Tasks of a repository, as a folder on this disk."""

from __future__ import annotations

from pathlib import Path

from benchflow_core.dotenv import user_env
from benchflow_core.rollout.host import cache_dir
from benchflow_core.task.sources import fetch_source

__all__ = ["resolve_source"]


def resolve_source(repo: str, path: str | None = None, ref: str | None = None) -> Path:
    """An immutable copy of a task, or of a folder of tasks. `repo` is any git URL, or `owner/name` on GitHub."""
    return fetch_source(repo, path=path, ref=ref, cache=cache_dir(user_env())).root
