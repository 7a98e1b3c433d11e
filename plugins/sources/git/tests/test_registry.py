"""Dataset registries: what is pinned is what runs, or nothing does."""

from __future__ import annotations

import copy
import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from benchflow_source_git.registry import fetch_dataset

from benchflow_core import __version__
from benchflow_core.contracts import Fetched, SourceRequest
from benchflow_core.errors import ConfigurationError
from benchflow_core.task import task_digest

COMMIT = "a" * 40


@pytest.fixture
def repository(make_task, tmp_path):
    """A folder that stands for what a source has fetched: two tasks in one place, one in another."""
    for name in ("one", "two"):
        make_task(f"repo/sets/a/{name}", {"instruction.md": f"Do {name}.\n"})
    make_task("repo/sets/b/three")
    return tmp_path / "repo"


@pytest.fixture
def fetch(repository):
    asked = []

    def run(uri, path, ref):
        asked.append((uri, path, ref))
        root = repository / path if path else repository
        return Fetched(root, {"type": "t", "uri": uri, "requested_ref": ref, "resolved_sha": ref, "path": path})

    run.asked = asked
    return run


@pytest.fixture
def entry(repository):
    def task(path):
        return {"git_url": "url", "git_commit_id": COMMIT, "path": path, "digest": task_digest(repository / path)}

    return {"name": "set", "version": "1.1", "tasks": [task("sets/a/one"), task("sets/a/two")]}


def dataset(spec, registry, fetch, **options):
    options = {"registry": str(registry), **options}
    return fetch_dataset(SourceRequest(f"dataset:{spec}", options=options, fetch=fetch))


@pytest.fixture
def resolve(fetch, tmp_path):
    def run(entries, spec="set@1.1", **options):
        path = tmp_path / "registry.json"
        path.write_text(json.dumps(entries))
        return dataset(spec, path, fetch, **options)

    return run


def test_the_pinned_tasks_and_no_others(resolve, entry, fetch, repository):
    found = resolve([entry])
    assert [p.name for p in found.tasks] == ["one", "two"]
    assert fetch.asked == [("url", "sets/a", COMMIT)]
    assert found.provenance["resolved_sha"] == COMMIT and found.notices == ()
    assert found.stamp == {"name": "set", "version": "1.1"}
    assert found.digests == tuple(task["digest"] for task in entry["tasks"])
    assert resolve({"datasets": [entry]}).tasks == found.tasks


def test_tasks_of_several_places_and_commits(resolve, entry, fetch, repository):
    other = {**entry["tasks"][0], "path": "sets/b/three", "digest": task_digest(repository / "sets/b/three")}
    last = {**other, "git_commit_id": "b" * 40, "name": "again"}
    found = resolve([{**entry, "tasks": [*entry["tasks"], other, last]}])
    assert fetch.asked == [("url", "sets", COMMIT), ("url", "sets/b", "b" * 40)]
    assert [p.relative_to(repository).as_posix() for p in found.tasks] == [
        "sets/a/one",
        "sets/a/two",
        "sets/b/three",
        "sets/b/three",
    ]


@pytest.mark.parametrize("spec", ["set", "set@", "@1.1", "set@latest"])
def test_a_version_is_always_named(resolve, entry, spec):
    with pytest.raises(ConfigurationError, match="names no version"):
        resolve([entry], spec)


def test_unknown_datasets_and_versions(resolve, entry):
    with pytest.raises(ConfigurationError, match="has no set@2") as wrong:
        resolve([entry], "set@2")
    assert wrong.value.remedy == "Versions: 1.1."
    with pytest.raises(ConfigurationError, match=r"has no sett@1\.1") as wrong:
        resolve([entry], "sett@1.1")
    assert wrong.value.remedy == "Did you mean 'set'?"
    with pytest.raises(ConfigurationError, match="twice"):
        resolve([entry, entry])


@pytest.mark.parametrize(("wanted", "fits"), [(">=0.6", True), ("==0.8.*", True), (">=9", False), ("<0.8", False)])
def test_the_version_gate(resolve, entry, wanted, fits):
    assert __version__.startswith("0.8.")
    entry = {**entry, "bench_version": wanted}
    if fits:
        assert resolve([entry]).notices == ()
        return
    with pytest.raises(ConfigurationError, match="was validated with") as refused:
        resolve([entry])
    assert "--ignore-bench-version" in refused.value.remedy
    [warning] = resolve([entry], ignore_bench_version="yes").notices
    assert "may not be comparable" in warning


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"digest": "sha256:12"}, "task 1: 'sha256:12' is not a digest"),
        ({"git_commit_id": "main"}, "'main' is not a whole commit id"),
        ({"path": "../../etc"}, "is not one inside a repository"),
        ({"git_url": None}, "'git_url' is missing"),
    ],
)
def test_entries_that_pin_nothing(resolve, entry, change, message):
    broken = copy.deepcopy(entry)
    broken["tasks"][0].update(change)
    with pytest.raises(ConfigurationError, match=message):
        resolve([broken])


def test_registries_that_are_none(resolve, entry, fetch, tmp_path):
    with pytest.raises(ConfigurationError, match="expected a list"):
        resolve({"x": 1})
    with pytest.raises(ConfigurationError, match="at least one task"):
        resolve([{**entry, "tasks": []}])
    with pytest.raises(ConfigurationError, match="'wrong' is not a range"):
        resolve([{**entry, "bench_version": "wrong"}])
    (tmp_path / "registry.json").write_text("[")
    with pytest.raises(ConfigurationError, match="is not JSON"):
        dataset("set@1.1", tmp_path / "registry.json", fetch)
    with pytest.raises(ConfigurationError, match="does not exist"):
        dataset("set@1.1", tmp_path / "nowhere.json", fetch)


def test_a_registry_over_http_and_in_a_repository(entry, fetch, repository, tmp_path):
    (repository / "registry.json").write_text(json.dumps([entry]))
    found = dataset("set@1.1", "some/repository", fetch_file(fetch, repository))
    assert len(found.tasks) == 2
    handler = partial(SimpleHTTPRequestHandler, directory=str(repository))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert dataset("set@1.1", f"{url}/registry.json", fetch).tasks == found.tasks
        with pytest.raises(ConfigurationError, match="cannot be fetched"):
            dataset("set@1.1", f"{url}/none.json", fetch)
        server.shutdown()


def fetch_file(fetch, repository):
    def run(uri, path, ref):
        return Fetched(repository / path, {}) if path == "registry.json" else fetch(uri, path, ref)

    return run
