"""Which tasks a job runs: a folder, a source, or a version of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchflow_core.contracts.sources import Fetched
from benchflow_core.errors import ConfigurationError, UsageError
from benchflow_core.evaluation.items import filter_names, select_tasks
from benchflow_core.quick import dataclass
from benchflow_core.rollout.host import cache_dir
from benchflow_core.settings.models import JobKeys, JobSettings
from benchflow_core.task import task_digest
from benchflow_core.task.sources import fetch_source, refuse_unserved

__all__ = ["ChosenTasks", "choose_tasks", "fetch_again", "find_again"]


@dataclass(frozen=True)
class ChosenTasks:
    """Task folders on this disk, and where they came from."""

    paths: tuple[Path, ...]
    where: str
    provenance: Mapping[str, Any] | None = None
    dataset: Mapping[str, str] | None = None
    warnings: tuple[str, ...] = ()
    folder: Path | None = None
    """The folder that was named, a task or one of tasks; none for a dataset."""

    @property
    def is_one_task(self) -> bool:
        """Whether a task itself was named, not a folder that holds tasks."""
        return self.paths == (self.folder,)

    def stamp(self, config: JobSettings) -> JobSettings:
        """The config with where its tasks came from: every result says so."""
        return config.model_copy(update={"source_provenance": self.provenance, "dataset": self.dataset})


def choose_tasks(
    choice: JobKeys, include: Sequence[str], exclude: Sequence[str], env: Mapping[str, str]
) -> ChosenTasks:
    """Find or fetch the tasks. Blocking: a source may clone."""
    _refuse_unclear(choice)
    cache = cache_dir(env)
    if choice.tasks_dir is not None:
        found = select_tasks(choice.tasks_dir, include, exclude)
        return ChosenTasks(tuple(found), str(choice.tasks_dir), folder=choice.tasks_dir)
    where, fetched = _fetch(choice, cache)
    if fetched.root.is_file():
        raise ConfigurationError(f"{where} is a file, not a task or a folder of tasks.")
    if fetched.tasks:
        paths = filter_names(fetched.tasks, include, exclude, where)
    else:
        paths = select_tasks(fetched.root, include, exclude, where)
    folder = None if fetched.tasks else fetched.root
    return ChosenTasks(tuple(paths), where, fetched.provenance, fetched.stamp, fetched.notices, folder)


def _fetch(choice: JobKeys, cache: Path) -> tuple[str, Fetched]:
    """What the user calls it, and what a source has of it."""
    if choice.source:
        source = choice.source
        fetched = fetch_source(source.repo, path=source.path, ref=source.ref, cache=cache)
        return f"{source.repo}{f'/{source.path}' if source.path else ''}", fetched
    assert choice.dataset is not None
    uri = f"dataset:{choice.dataset}"
    refuse_unserved(uri, f"the dataset {choice.dataset}", "benchflow-source-git")
    options = {"registry": choice.registry or "", "ignore_bench_version": "yes" if choice.ignore_bench_version else ""}
    return choice.dataset, fetch_source(uri, cache=cache, options={k: v for k, v in options.items() if v})


def fetch_again(source: Mapping[str, Any] | None, env: Mapping[str, str]) -> Path | None:
    """What results say their tasks came from, at the same commit; none for tasks of a local folder. Blocking."""
    if not source:
        return None
    return fetch_source(source["uri"], path=source.get("path"), ref=source["resolved_sha"], cache=cache_dir(env)).root


def find_again(name: str, digest: str, source: Mapping[str, Any] | None, env: Mapping[str, str]) -> Path | None:
    """A task of this content below where it came from, whichever disk that is on now."""
    root = fetch_again(source, env)
    places = [root, *root.rglob(name)] if root else []
    return next((place for place in places if place.is_dir() and task_digest(place) == digest), None)


def _refuse_unclear(choice: JobKeys) -> None:
    given = [
        name
        for name, value in (
            ("--tasks-dir", choice.tasks_dir),
            ("--source-repo", choice.source),
            ("--dataset", choice.dataset),
        )
        if value
    ]
    if not given:
        raise UsageError(
            "no task was named.",
            remedy="Add -t PATH, --source-repo REPO or -d NAME@VERSION, or name a --config that has them.",
        )
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} both say which tasks to run.", remedy="Give one of them.")
    if choice.registry and not choice.dataset:
        raise UsageError("--registry says nothing without --dataset.")
