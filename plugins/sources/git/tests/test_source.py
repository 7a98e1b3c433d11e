"""Real repositories, real git: what is fetched, from where, and what a repository cannot do to us."""

from __future__ import annotations

import base64
import json
import multiprocessing
import os
import stat
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from benchflow_source_git.fetch import fetch_snapshot
from benchflow_source_git.plugin import matches
from benchflow_source_git.program import GitFailed
from benchflow_source_git.program import git as run_git
from benchflow_testing_kit import SourceConformance

from benchflow_core.contracts import SourceRequest
from benchflow_core.errors import ConfigurationError


def git(*args: str, cwd: Path, data: bytes | None = None) -> str:
    done = subprocess.run(["git", *args], cwd=cwd, input=data, capture_output=True, check=True)
    return done.stdout.decode().strip()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of its own, so that the user's git settings do not matter and a test may have some."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "t")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "t@example.org")
    return folder


@pytest.fixture
def work(tmp_path):
    """A repository with two tasks, a program and a link."""
    folder = tmp_path / "work"
    (folder / "tasks" / "one").mkdir(parents=True)
    (folder / "tasks" / "two").mkdir()
    (folder / "tasks" / "one" / "instruction.md").write_text("Do it.\r\n")
    script = folder / "tasks" / "one" / "solve.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    (folder / "tasks" / "one" / "again.md").symlink_to("instruction.md")
    (folder / "tasks" / "two" / "ünï.md").write_text("Zwei.")
    git("init", "-q", "-b", "main", cwd=folder)
    git("add", "-A", cwd=folder)
    git("commit", "-qm", "first", cwd=folder)
    return folder


@pytest.fixture
def bare(work, tmp_path):
    path = tmp_path / "tasks-repo.git"
    git("clone", "-q", "--bare", str(work), str(path), cwd=tmp_path)
    return path


@pytest.fixture
def fetch(tmp_path):
    def run(uri, path=None, ref=None):
        return fetch_snapshot(SourceRequest(str(uri), path, ref, tmp_path / "cache"))

    return run


class TestConformance(SourceConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "git"

    @pytest.fixture
    def source_uris(self, bare: Path, work: Path) -> list[str]:
        return [str(bare), f"file://{bare}", str(work)]


@pytest.mark.parametrize(
    "uri",
    [
        "benchflow-ai/skillsbench",
        "https://example.org/a/b.git",
        "git+https://example.org/a/b",
        "ssh://git@example.org/a/b",
        "git@example.org:a/b.git",
        "file:///srv/a.git",
    ],
)
def test_addresses_of_repositories(uri):
    assert matches(uri)


@pytest.mark.parametrize(
    "uri", ["ext::sh -c id", "--upload-pack=id", "-x/y", "name", "hf://a/b", "a/b/c", "../a", "/nowhere"]
)
def test_what_is_no_repository(uri):
    assert not matches(uri)


def test_a_folder_of_a_commit(bare, work, fetch):
    found = fetch(bare, "tasks")
    head = git("rev-parse", "HEAD", cwd=work)
    assert found.provenance == {
        "type": "git",
        "uri": str(bare),
        "requested_ref": None,
        "resolved_sha": head,
        "path": "tasks",
        "object": git("rev-parse", "HEAD:tasks", cwd=work),
    }
    assert found.root.name == "tasks" and sorted(p.name for p in found.root.iterdir()) == ["one", "two"]
    one = found.root / "one"
    assert (one / "instruction.md").read_bytes() == b"Do it.\r\n"
    assert stat.S_IMODE((one / "solve.sh").stat().st_mode) == 0o755
    assert os.readlink(one / "again.md") == "instruction.md"
    assert (found.root / "two" / "ünï.md").read_text() == "Zwei."


def test_one_task_and_one_file(bare, fetch):
    assert fetch(bare, "/tasks/one/").root.name == "one"
    assert fetch(bare, "tasks/two/ünï.md").root.read_text() == "Zwei."
    assert fetch(bare).root.name == "tasks-repo"


def test_a_branch_is_followed_and_a_commit_is_not(bare, work, fetch):
    first = fetch(bare, "tasks")
    (work / "tasks" / "one" / "instruction.md").write_text("Do it differently.\n")
    git("commit", "-qam", "second", cwd=work)
    git("tag", "-am", "release", "v2", cwd=work)
    git("push", "-q", "--tags", str(bare), "main", cwd=work)
    second, tagged = fetch(bare, "tasks", "main"), fetch(bare, "tasks", "v2")
    pinned = fetch(bare, "tasks", first.provenance["resolved_sha"])
    assert (pinned.root / "one/instruction.md").read_bytes() == b"Do it.\r\n"
    assert (second.root / "one/instruction.md").read_text() == "Do it differently.\n"
    assert tagged.root == second.root and tagged.provenance["resolved_sha"] == git("rev-parse", "HEAD", cwd=work)
    short = fetch(bare, "tasks", tagged.provenance["resolved_sha"][:9])
    assert short.root == second.root and short.provenance["requested_ref"] == tagged.provenance["resolved_sha"][:9]


def test_a_cached_commit_needs_no_repository(bare, fetch, tmp_path):
    first = fetch(bare, "tasks")
    bare.rename(tmp_path / "gone")
    assert fetch(bare, "tasks", first.provenance["resolved_sha"]).root == first.root
    with pytest.raises(ConfigurationError, match="cannot be read"):
        fetch(bare, "tasks")


def test_a_commit_that_no_branch_holds_any_more(bare, work, fetch):
    lost = git("rev-parse", "HEAD", cwd=work)
    git("commit", "-q", "--amend", "-m", "rewritten", cwd=work)
    git("push", "-qf", str(bare), "main", cwd=work)
    assert fetch(bare, "tasks/one", lost).provenance["resolved_sha"] == lost


def test_mistakes_are_named(bare, fetch, tmp_path):
    with pytest.raises(ConfigurationError, match="no branch or tag 'nope'"):
        fetch(bare, None, "nope")
    with pytest.raises(ConfigurationError, match="has no 'tasks/oen'") as wrong:
        fetch(bare, "tasks/oen")
    assert wrong.value.remedy == "Did you mean 'tasks/one'?"
    with pytest.raises(ConfigurationError, match=r"has no commit|cannot be read"):
        fetch(bare, None, "0" * 40)
    with pytest.raises(ConfigurationError, match="leads out"):
        fetch(bare, "../x")
    with pytest.raises(ConfigurationError, match="not a branch"):
        fetch(bare, None, "--upload-pack=id")
    git("init", "-q", "--bare", "empty.git", cwd=tmp_path)
    with pytest.raises(ConfigurationError, match="is empty"):
        fetch(tmp_path / "empty.git")


def test_a_name_of_two_things_is_asked_about(bare, work, fetch):
    git("branch", "same", cwd=work)
    git("tag", "same", cwd=work)
    git("push", "-q", str(bare), "refs/heads/same", "refs/tags/same", cwd=work)
    with pytest.raises(ConfigurationError, match="both a branch and a tag"):
        fetch(bare, None, "same")
    assert fetch(bare, None, "refs/heads/same").root.is_dir()


def test_mirrors_of_the_users_settings_count(bare, fetch, home):
    (home / ".gitconfig").write_text(f'[url "file://{bare.parent}/"]\n\tinsteadOf = https://github.com/some-owner/\n')
    found = fetch("some-owner/tasks-repo", "tasks/one")
    assert found.provenance["uri"] == "https://github.com/some-owner/tasks-repo"
    assert (found.root / "solve.sh").is_file()


@pytest.fixture
def server(bare):
    """Plain files over HTTP, as the simplest of servers have them, for one user with a password."""
    wanted = "Basic " + base64.b64encode(b"me:hunter2secret").decode()

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self):
            if self.headers.get("authorization") == wanted:
                super().do_GET()
            else:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="x"')
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, *args):
            pass

    git("update-server-info", cwd=bare)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(bare.parent))) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{http.server_port}/{bare.name}"
        http.shutdown()
        thread.join()


def test_a_password_of_an_address_is_used_and_written_nowhere(server, fetch, tmp_path):
    found = fetch(f"http://me:hunter2secret@{server}", "tasks")
    assert found.provenance["uri"] == f"http://{server}" and (found.root / "one/solve.sh").is_file()
    files = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert files and not [p for p in files if b"hunter2secret" in p.read_bytes()]


def test_a_server_that_wants_a_password_is_not_waited_for(server, fetch):
    with pytest.raises(ConfigurationError, match=r"cannot be read: git ls-remote: fatal: .*Username"):
        fetch(f"http://{server}")
    with pytest.raises(ConfigurationError, match="cannot be read") as wrong:
        fetch(f"http://me:wrong-secret@{server}")
    assert "wrong-secret" not in str(wrong.value) + json.dumps(wrong.value.details)


def test_nothing_of_the_repository_runs(work, bare, fetch, home, tmp_path):
    """A filter that the user has configured, and hooks: a checkout would run them."""
    mark = tmp_path / "ran"
    (work / ".gitattributes").write_text("*.md filter=evil\n* text eol=crlf ident export-subst\n")
    (work / "tasks/one/$Id$").write_text("$Id$\n")
    git("add", "-A", cwd=work)
    git("commit", "-qm", "attributes", cwd=work)
    git("push", "-q", str(bare), "main", cwd=work)
    (home / ".gitconfig").write_text(
        f'[filter "evil"]\n\tsmudge = touch {mark}\n\tprocess = touch {mark}\n[core]\n\thooksPath = {tmp_path}/hooks\n'
        f'[protocol "ext"]\n\tallow = always\n[init]\n\ttemplateDir = {tmp_path}/template\n'
    )
    for folder in ("hooks", "template/hooks"):
        (tmp_path / folder).mkdir(parents=True)
        for name in ("post-checkout", "reference-transaction", "post-merge"):
            (tmp_path / folder / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
            (tmp_path / folder / name).chmod(0o755)
    root = fetch(bare).root
    (tmp_path / "cache").rename(tmp_path / "first")
    fetch(bare, None, git("rev-parse", "HEAD", cwd=bare)[:9])  # everything is fetched, so that refs are written
    assert not mark.exists()
    root = tmp_path / "first" / root.relative_to(tmp_path / "cache")
    assert (root / "tasks/one/$Id$").read_text() == "$Id$\n"


def test_submodules_and_pointers_are_left_and_told(work, bare, fetch):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
    (work / "tasks/one/big.bin").write_bytes(pointer)
    git("add", "-A", cwd=work)
    git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},tasks/sub", cwd=work)
    git("commit", "-qm", "more", cwd=work)
    git("push", "-q", str(bare), "main", cwd=work)
    found = fetch(bare, "tasks")
    assert found.provenance["lfs_pointers"] == 1 and found.provenance["submodules"] == ["sub"]
    assert (found.root / "one/big.bin").read_bytes() == pointer and list((found.root / "sub").iterdir()) == []
    assert fetch(bare, "tasks").provenance == found.provenance


@pytest.mark.parametrize("name", ["..", ".git", ".GIT"])
def test_names_that_no_file_may_have(work, bare, fetch, tmp_path, name):
    blob = git("hash-object", "-w", "--stdin", cwd=bare, data=b"x")
    entry = b"100644 evil\0" + bytes.fromhex(blob)
    inner = git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", cwd=bare, data=entry)
    tree = b"40000 " + name.encode() + b"\0" + bytes.fromhex(inner)
    root = git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", cwd=bare, data=tree)
    commit = git("commit-tree", root, "-m", "evil", cwd=bare)
    git("update-ref", "refs/heads/evil", commit, cwd=bare)
    with pytest.raises(ConfigurationError):
        fetch(bare, None, "evil")
    assert not list(tmp_path.glob("cache/**/evil"))


def test_nothing_is_written_through_a_link(bare, fetch, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    link = git("hash-object", "-w", "--stdin", cwd=bare, data=str(outside).encode())
    blob = git("hash-object", "-w", "--stdin", cwd=bare, data=b"x")
    inner = git("hash-object", "-t", "tree", "-w", "--stdin", cwd=bare, data=b"100644 f\0" + bytes.fromhex(blob))
    both = b"120000 a\0" + bytes.fromhex(link) + b"40000 a\0" + bytes.fromhex(inner)
    root = git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", cwd=bare, data=both)
    git("update-ref", "refs/heads/evil", git("commit-tree", root, "-m", "evil", cwd=bare), cwd=bare)
    with pytest.raises(ConfigurationError, match="twice"):
        fetch(bare, None, "evil")
    assert list(outside.iterdir()) == []


def test_a_snapshot_that_was_changed_is_made_anew(bare, fetch):
    root = fetch(bare, "tasks").root
    (root / "one/instruction.md").write_text("Cheat!!\n")
    again = fetch(bare, "tasks").root
    assert again == root and (root / "one/instruction.md").read_bytes() == b"Do it.\r\n"
    (root / "one/added").write_text("")
    fetch(bare, "tasks")
    assert not (root / "one/added").exists()


def test_a_process_that_was_killed_leaves_nothing_in_the_way(bare, fetch, tmp_path):
    store = fetch(bare, "tasks").root.parents[3]
    (store / "staging-left").mkdir()
    assert fetch(bare, "tasks/one").root.is_dir()
    assert not list(store.glob("staging-*"))


def _fetch_in_process(uri, path, cache, barrier, results):
    barrier.wait(60)
    found = fetch_snapshot(SourceRequest(uri, path, None, Path(cache)))
    results.put((str(found.root), sorted(p.name for p in found.root.rglob("*"))))


def test_many_processes_on_one_cache(bare, tmp_path):
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(6), context.Queue()
    args = [(str(bare), ("tasks", "tasks/one")[i % 2], str(tmp_path / "cache"), barrier, results) for i in range(6)]
    workers = [context.Process(target=_fetch_in_process, args=a) for a in args]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert len({json.dumps(f) for f in found}) == 2


def test_no_transport_that_runs_commands_is_used(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with pytest.raises(GitFailed, match="not allowed"):
        run_git("ls-remote", f"ext::touch {mark}", cwd=tmp_path)
    assert not mark.exists()


def test_a_hook_around_us_does_not_turn_our_commands_on_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ours", "theirs"):
        git("init", "-q", name, cwd=tmp_path)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "theirs" / ".git"))
    found = run_git("rev-parse", "--absolute-git-dir", cwd=tmp_path / "ours").strip()
    assert found == str((tmp_path / "ours" / ".git").resolve())
