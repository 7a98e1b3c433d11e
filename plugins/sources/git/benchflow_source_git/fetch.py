"""Fetching: one bare repository per address, one immutable folder per commit and path, one lock for both."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchflow_core.contracts import Fetched, SourceRequest
from benchflow_core.errors import ConfigurationError
from benchflow_source_git.address import Address, read_address, read_path, read_ref
from benchflow_source_git.program import GitFailed, git
from benchflow_source_git.resolve import FULL_COMMIT, Wanted, resolve_ref, unreachable
from benchflow_source_git.tree import listing, read_entries, write_entries

__all__ = ["fetch_snapshot"]

_STAGING = "staging-"
_MANIFEST = "files.json"


def fetch_snapshot(request: SourceRequest) -> Fetched:
    """The folder (or file) at a commit. Safe for any number of processes on one cache."""
    address, path, ref = read_address(request.uri), read_path(request.path), read_ref(request.ref)
    wanted = resolve_ref(address, ref)
    store = request.cache_dir / address.key
    store.mkdir(parents=True, exist_ok=True)
    with _locked(store):
        commit = wanted.commit
        made = _existing(store, commit, path) if commit and FULL_COMMIT.fullmatch(commit) else None
        if made is None:
            commit = _ensure_commit(store / "repo.git", address, wanted)
            made = _existing(store, commit, path) or _make(store, address, commit, path)
    root, about = made
    provenance = {
        "type": "git",
        "uri": address.url,
        "requested_ref": request.ref,
        "resolved_sha": commit,
        "path": path or None,
        **about,
    }
    return Fetched(root, provenance, notices=tuple(_notices(address.url, about)))


def _notices(url: str, about: Mapping[str, Any]) -> Iterator[str]:
    """Say what was left out, so that a task that lacks it is not a riddle."""
    if count := about.get("lfs_pointers"):
        yield f"{count} files of {url} are Git LFS pointers, and were left as such."
    if left := about.get("submodules"):
        yield f"submodules of {url} were not fetched: {', '.join(left)}."


@contextmanager
def _locked(store: Path) -> Iterator[None]:
    """Released by the kernel when the process ends, however it ends."""
    with (store / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in store.glob(f"{_STAGING}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


# --- the repository -----------------------------------------------------------------------------------------


def _ensure_commit(repo: Path, address: Address, wanted: Wanted) -> str:
    """The commit is in the cached repository; as little as possible is fetched for it."""
    if not (repo / "HEAD").is_file():
        git("init", "--quiet", "--bare", "--template=", str(repo))
    if wanted.commit and (found := _commit_of(repo, wanted.commit)):
        return found
    last: GitFailed | None = None
    for attempt in _attempts(wanted):
        try:
            git(
                "fetch",
                "--quiet",
                "--no-tags",
                "--force",
                *attempt[0],
                "--",
                address.url,
                *attempt[1],
                cwd=repo,
                env=address.env,
            )
        except GitFailed as error:
            last = error
        if found := _commit_of(repo, wanted.commit or wanted.name):
            return found
    if last is not None:
        raise unreachable(address, last)
    raise ConfigurationError(f"{address.url} has no commit '{wanted.name}'.", remedy="Name one with --source-ref.")


def _attempts(wanted: Wanted) -> list[tuple[list[str], list[str]]]:
    """The commit alone; the ref it was found by; everything."""
    everything = (["--refmap="], ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"])
    shallow = [(["--depth=1"], [name]) for name in dict.fromkeys((wanted.commit, wanted.name)) if name]
    return [*(shallow if wanted.commit else []), everything]


def _commit_of(repo: Path, name: str) -> str | None:
    try:
        return git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", cwd=repo).strip()
    except GitFailed:
        return None


# --- the snapshot -------------------------------------------------------------------------------------------


def _place(store: Path, commit: str, path: str) -> Path:
    return store / "snapshots" / commit / (hashlib.sha256(path.encode()).hexdigest()[:12] if path else "all")


def _existing(store: Path, commit: str, path: str) -> tuple[Path, dict[str, Any]] | None:
    """A snapshot that is as it was made. One that somebody changed is put aside and made anew."""
    place = _place(store, commit, path)
    try:
        manifest = json.loads((place / _MANIFEST).read_text("utf-8"))
        root = place / manifest["root"]
        if listing(root) == manifest["files"]:
            return root, manifest["about"]
    except (OSError, ValueError, KeyError):
        if not place.exists():
            return None
    aside = Path(tempfile.mkdtemp(prefix=_STAGING, dir=store))
    place.rename(aside / "changed")
    return None


def _make(store: Path, address: Address, commit: str, path: str) -> tuple[Path, dict[str, Any]]:
    repo, name = store / "repo.git", (path or address.name).split("/")[-1]
    try:
        sha, entries = read_entries(repo, commit, path)
    except GitFailed as error:
        raise _no_such_path(repo, address, commit, path) from error
    staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=store))
    try:
        time = int(git("log", "-1", "--format=%ct", commit, cwd=repo))
        if not any(entry.path == "" for entry in entries):
            (staging / name).mkdir()
        left = write_entries(repo, entries, staging / name, time)
        about = {"object": sha, **{key: value for key, value in left.items() if value}}
        manifest = {"root": name, "about": about, "files": listing(staging / name)}
        (staging / _MANIFEST).write_text(json.dumps(manifest, ensure_ascii=True), "utf-8")
        staging.chmod(0o755)
        place = _place(store, commit, path)
        place.parent.mkdir(parents=True, exist_ok=True)
        staging.rename(place)
    except (FileExistsError, NotADirectoryError) as error:
        raise ConfigurationError(f"{address.url} holds '{error.filename}' twice at {commit[:12]}.") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return place / name, about


def _no_such_path(repo: Path, address: Address, commit: str, path: str) -> ConfigurationError:
    parent = path.rpartition("/")[0]
    try:
        names = git("ls-tree", "--name-only", f"{commit}:{parent}", cwd=repo).split("\n")
    except GitFailed:
        names = []
    from difflib import get_close_matches

    close = get_close_matches(path.rpartition("/")[2], names, 1)
    hint = f"Did you mean '{'/'.join(filter(None, (parent, close[0])))}'?" if close else None
    return ConfigurationError(f"{address.url} has no '{path}' at {commit[:12]}.", remedy=hint)
