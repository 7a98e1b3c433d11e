"""Dataset registries: `name@version` is a fixed list of tasks, each pinned to a commit and to its content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import version as version_of
from pathlib import Path, PurePosixPath
from typing import Any

from benchflow_core.contracts import Fetched, SourceRequest
from benchflow_core.errors import ConfigurationError

__all__ = ["DEFAULT_REGISTRY", "Dataset", "DatasetTask", "fetch_dataset"]

DEFAULT_REGISTRY = "benchflow-ai/skillsbench"
"""A repository with `registry.json` at its root."""

Fetch = Callable[[str, str | None, str | None], Fetched]
"""URI, path, ref: what a source has there."""

_FILE = "registry.json"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_BYTES = 64 << 20
_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class DatasetTask:
    """One pinned task."""

    name: str
    git_url: str
    commit: str
    path: str
    digest: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """One immutable entry of a registry."""

    name: str
    version: str
    bench_version: str | None
    tasks: tuple[DatasetTask, ...]


def fetch_dataset(request: SourceRequest) -> Fetched:
    """Fetch the tasks of `dataset:name@version`, each at its commit, with the digests that the registry pins."""
    assert request.fetch is not None, "the core gives it"
    name, version = _split(request.uri.removeprefix("dataset:"))
    where = request.options.get("registry") or DEFAULT_REGISTRY
    dataset = _find(_read(where, request.fetch), name, version, where)
    notices = tuple(_check_bench_version(dataset, ignore=bool(request.options.get("ignore_bench_version"))))
    folders = _common_folders(dataset)
    fetch = request.fetch
    found = {key: fetch(key[0], path, key[1]) for key, path in folders.items()}
    first = next(iter(found.values()))
    return Fetched(
        first.root,
        first.provenance,
        tasks=tuple(_place(task, found, folders) for task in dataset.tasks),
        digests=tuple(task.digest for task in dataset.tasks),
        stamp={"name": name, "version": version, **({"warning": notices[0]} if notices else {})},
        notices=notices,
    )


def _split(spec: str) -> tuple[str, str]:
    name, at, version = spec.rpartition("@")
    if not at or not name or not version or version == "latest":
        raise ConfigurationError(
            f"'{spec}' names no version.", remedy="Write name@version: versions never change, and there is no latest."
        )
    return name, version


# --- reading ------------------------------------------------------------------------------------------------


def _read(where: str, fetch: Fetch) -> list[Any]:
    """A file, a URL of a JSON file, or a repository with one at its root."""
    text = _text(where, fetch)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"registry {where} is not JSON: {error}.") from error
    entries = value.get("datasets") if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise ConfigurationError(f"registry {where}: expected a list of datasets.")
    return entries


def _text(where: str, fetch: Fetch) -> bytes:
    local = Path(where).expanduser()
    try:
        if local.is_file():
            return local.read_bytes()
        if (local / _FILE).is_file():
            return (local / _FILE).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"registry {where} cannot be read: {error.strerror}.") from error
    if where.startswith(("http://", "https://")) and where.partition("?")[0].endswith(".json"):
        return _download(where)
    if where.endswith(".json"):
        raise ConfigurationError(f"registry {where} does not exist.")
    return fetch(where, _FILE, None).root.read_bytes()


def _download(url: str) -> bytes:
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as response:
            text: bytes = response.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"registry {url} cannot be fetched: {error}.") from error
    if len(text) > _MAX_BYTES:
        raise ConfigurationError(f"registry {url} is larger than {_MAX_BYTES >> 20} MiB.")
    return text


def _find(entries: Sequence[Any], name: str, version: str, where: str) -> Dataset:
    known = [(str(e.get("name")), str(e.get("version"))) for e in entries if isinstance(e, dict)]
    found = [e for e in entries if isinstance(e, dict) and (e.get("name"), str(e.get("version"))) == (name, version)]
    if len(found) > 1:
        raise ConfigurationError(f"registry {where} has {name}@{version} twice: a version is one list of tasks.")
    if found:
        return _dataset(found[0], f"registry {where}, {name}@{version}")
    versions = [v for n, v in known if n == name]
    close = get_close_matches(name, sorted({n for n, _ in known}), 1)
    advice = f"Versions: {', '.join(versions)}." if versions else f"Did you mean '{close[0]}'?" if close else None
    raise ConfigurationError(f"registry {where} has no {name}@{version}.", remedy=advice)


def _dataset(entry: Mapping[str, Any], where: str) -> Dataset:
    tasks = entry.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        raise ConfigurationError(f"{where}: 'tasks' must be a list of at least one task.")
    read = tuple(_task(task, f"{where}, task {number}") for number, task in enumerate(tasks, 1))
    names = [task.name for task in read]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"{where}: task '{name}' is listed twice.")
    required = entry.get("bench_version")
    return Dataset(str(entry["name"]), str(entry["version"]), str(required) if required else None, read)


def _task(value: Any, where: str) -> DatasetTask:
    texts: dict[str, str] = {}
    for key in ("git_url", "git_commit_id", "path", "digest"):
        text = value.get(key) if isinstance(value, dict) else None
        if not isinstance(text, str) or not text:
            raise ConfigurationError(f"{where}: '{key}' is missing.")
        texts[key] = text
    path = PurePosixPath(texts["path"].strip("/"))
    if ".." in path.parts or not path.parts:
        raise ConfigurationError(f"{where}: path '{texts['path']}' is not one inside a repository.")
    if not re.fullmatch(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", texts["git_commit_id"]):
        raise ConfigurationError(f"{where}: '{texts['git_commit_id']}' is not a whole commit id.")
    if not _DIGEST.fullmatch(texts["digest"]):
        raise ConfigurationError(f"{where}: '{texts['digest']}' is not a digest (sha256: and 64 hex digits).")
    return DatasetTask(
        str(value.get("name") or path.name), texts["git_url"], texts["git_commit_id"], str(path), texts["digest"]
    )


# --- checking -----------------------------------------------------------------------------------------------


def _check_bench_version(dataset: Dataset, *, ignore: bool) -> Iterator[str]:
    """Refuse a core outside of the versions that the dataset was validated with; ignoring that leaves a warning."""
    if dataset.bench_version is None:
        return
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import Version

    spec, ours = f"{dataset.name}@{dataset.version}", Version(version_of("benchflow-core")).base_version
    try:
        fits = SpecifierSet(dataset.bench_version).contains(ours, prereleases=True)
    except InvalidSpecifier:
        raise ConfigurationError(f"{spec}: '{dataset.bench_version}' is not a range of versions.") from None
    if fits:
        return
    said = f"{spec} was validated with benchflow {dataset.bench_version}, and this is {ours}"
    if not ignore:
        raise ConfigurationError(
            f"{said}: results may not be comparable with published ones.",
            remedy=f'pip install "benchflow{dataset.bench_version}", or add --ignore-bench-version to try it anyway.',
        )
    yield f"{said}; --ignore-bench-version was given, so results may not be comparable with published ones."


def _common_folders(dataset: Dataset) -> dict[tuple[str, str], str | None]:
    """Per repository and commit, the folder that holds all of its tasks: fetched as one."""
    folders: dict[tuple[str, str], PurePosixPath] = {}
    for task in dataset.tasks:
        key, parent = (task.git_url, task.commit), PurePosixPath(task.path).parent
        before = folders.get(key, parent)
        folders[key] = next(p for p in (before, *before.parents) if parent.is_relative_to(p))
    return {key: None if str(folder) == "." else str(folder) for key, folder in folders.items()}


def _place(
    task: DatasetTask, roots: Mapping[tuple[str, str], Fetched], folders: Mapping[tuple[str, str], str | None]
) -> Path:
    key = (task.git_url, task.commit)
    return roots[key].root / PurePosixPath(task.path).relative_to(folders[key] or ".")
