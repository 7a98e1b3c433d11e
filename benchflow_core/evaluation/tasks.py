"""Which tasks a job runs: a folder, a source, or a version of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchflow_core.contracts.sources import Fetched
from benchflow_core.errors import ConfigurationError, UsageError
from benchflow_core.evaluation.config import EvaluationConfig
from benchflow_core.evaluation.items import filter_names, select_tasks
from benchflow_core.quick import dataclass
from benchflow_core.rollout.host import cache_dir
from benchflow_core.task import task_digest
from benchflow_core.task.registry import resolve_dataset
from benchflow_core.task.sources import fetch_source

__all__ = ["ChosenTasks", "Source", "TaskChoice", "choose_tasks", "fetch_again", "find_again"]


@dataclass(frozen=True)
class Source:
    """Tasks of a repository, at a branch, tag or commit."""

    repo: str
    """Any git URL, `owner/name` on GitHub, or a repository on this disk."""
    path: str | None = None
    """The task, or the folder of tasks, in the repository."""
    ref: str | None = None
    """Branch, tag or commit; none: the default branch as it is now."""


@dataclass(frozen=True)
class TaskChoice:
    """What the user named. Exactly one of the three."""

    tasks_dir: Path | None = None
    source: Source | None = None
    dataset: str | None = None
    registry: str | None = None
    ignore_bench_version: bool = False


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

    def stamp(self, config: EvaluationConfig) -> EvaluationConfig:
        """The config with where its tasks came from: every result says so."""
        return replace(config, source_provenance=self.provenance, dataset=self.dataset)


def choose_tasks(
    choice: TaskChoice, include: Sequence[str], exclude: Sequence[str], env: Mapping[str, str]
) -> ChosenTasks:
    """Find or fetch the tasks. Blocking: a source may clone."""
    _refuse_unclear(choice)
    cache = cache_dir(env)
    if choice.dataset:
        return _of_dataset(choice, include, exclude, cache)
    if choice.source:
        source = choice.source
        fetched = fetch_source(source.repo, path=source.path, ref=source.ref, cache=cache)
        where = f"{source.repo}{f'/{source.path}' if source.path else ''}"
        if fetched.root.is_file():
            raise ConfigurationError(f"{where} is a file, not a task or a folder of tasks.")
        paths = select_tasks(fetched.root, include, exclude, where)
        return ChosenTasks(tuple(paths), where, fetched.provenance, None, _warnings(fetched), fetched.root)
    folder = choice.tasks_dir
    assert folder is not None
    return ChosenTasks(tuple(select_tasks(folder, include, exclude)), str(folder), folder=folder)


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


def _of_dataset(choice: TaskChoice, include: Sequence[str], exclude: Sequence[str], cache: Path) -> ChosenTasks:
    assert choice.dataset is not None

    def fetch(uri: str, path: str | None, ref: str | None) -> Fetched:
        return fetch_source(uri, path=path, ref=ref, cache=cache)

    found = resolve_dataset(choice.dataset, choice.registry, fetch, ignore_bench_version=choice.ignore_bench_version)
    stamp = {"name": found.dataset.name, "version": found.dataset.version}
    if found.warnings:
        stamp["warning"] = found.warnings[0]
    paths = filter_names(found.paths, include, exclude, choice.dataset)
    return ChosenTasks(tuple(paths), choice.dataset, found.provenance, stamp, found.warnings)


def _refuse_unclear(choice: TaskChoice) -> None:
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


def _warnings(fetched: Fetched) -> tuple[str, ...]:
    """What a source left out, so that a task that lacks it is not a riddle."""
    said = []
    if count := fetched.provenance.get("lfs_pointers"):
        said.append(f"{count} files of {fetched.provenance['uri']} are Git LFS pointers, and were left as such.")
    if left := fetched.provenance.get("submodules"):
        said.append(f"submodules of {fetched.provenance['uri']} were not fetched: {', '.join(left)}.")
    return tuple(said)
