"""What is handed on: complete without a server, and without what nobody else should see."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess

import pytest

from .conftest import BENCH, TALK, WHERE, make_rollout

KEY = "sk-ant-" + "abcdefghij" * 4


@pytest.fixture(scope="module")
def secretive(tmp_path_factory):
    """A rollout whose agent printed a secret of this host, a key nobody knows, and where the user lives."""
    root = tmp_path_factory.mktemp("secretive")
    said = f'token="hunter2secret"\nkey {KEY}\nhome {root}/home/work\nquote "hunter2\\"x"'
    folder = make_rollout(
        root / "jobs" / "j",
        "t__1",
        [*TALK, {"kind": "agent_message_chunk", **WHERE, "data": {"text": said}}],
        notices=[said],
        tests=[{"name": "t", "status": "failed", "message": said, "score": None}],
    )
    (folder / "artifacts").mkdir()
    (folder / "artifacts" / "out.txt").write_text(said)
    return root


def export(secretive, target, env):
    env = {**env, "HOME": f"{secretive}/home", "MY_TOKEN": "hunter2secret"}
    return subprocess.run(
        [BENCH, "--json", "view", secretive / "jobs" / "j", "--export", target], env=env, capture_output=True, text=True
    )


def embedded(page: str) -> dict[str, str]:
    found = re.findall(r'<script type="application/x-benchflow" data-key="([^"]+)">([^<]*)</script>', page)
    return {key: gzip.decompress(base64.b64decode(data)).decode() for key, data in found}


def test_one_file_is_redacted_and_small(secretive, tmp_path, view_env):
    target = tmp_path / "out.html"
    done = export(secretive, target, view_env)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["page_bytes"] + told["data_bytes"] == target.stat().st_size < 2_000_000
    documents = embedded(target.read_text())
    assert {"index", "jobs", "job/j", "rollout/j/t__1", "steps/j/t__1/0", "panels/j"} <= documents.keys()
    whole = "".join(documents.values())
    assert "All done." in whole and "[redacted]" in whole
    for secret in ("hunter2secret", KEY, f"{secretive}/home"):
        assert secret not in whole and secret not in target.read_text()
    assert "~/work" in whole


def test_one_file_names_nothing_elsewhere(secretive, tmp_path, view_env):
    target = tmp_path / "out.html"
    export(secretive, target, view_env)
    page = re.sub(r'<script type="application/x-benchflow".*?</script>', "", target.read_text(), flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?!data:,)', page) and "@import" not in page and "url(" not in page
    assert re.findall(r"https?://[^\s\"']+", page) == ["http://www.w3.org/2000/svg"]
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1]
    assert "connect-src 'none'" in policy and "unsafe" not in policy


def test_a_folder_for_a_web_server(secretive, tmp_path, view_env):
    target = tmp_path / "site"
    done = export(secretive, target, view_env)
    assert done.returncode == 0, done.stderr
    told, files = json.loads(done.stdout), [path for path in target.rglob("*") if path.is_file()]
    assert told["page_bytes"] + told["data_bytes"] == sum(path.stat().st_size for path in files)
    names = {path.relative_to(target).as_posix() for path in files}
    assert {
        "index.html",
        "app.js",
        "style.css",
        "data/index.json",
        "data/job/j.json",
        "data/steps/j/t__1/0.json",
    } <= names
    assert not [path for path in target.rglob("*.json") if "hunter2secret" in path.read_text()]
    assert export(secretive, target, view_env).returncode == 0, "an earlier export is replaced"


def test_a_failed_export_leaves_what_was_there(secretive, tmp_path, view_env):
    target = tmp_path / "site"
    target.mkdir()
    (target / "mine.txt").write_text("keep")
    assert export(secretive, target, view_env).returncode != 0
    assert [path.name for path in target.iterdir()] == ["mine.txt"]


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_a_file_opens_from_disk_without_a_server(watched, jobs, tmp_path, view_env):
    target = tmp_path / "out.html"
    subprocess.run([BENCH, "view", jobs, "--export", target], env=view_env, check=True, capture_output=True)
    seen = watched(offline=True)
    page = seen.open(target.as_uri(), "tbody tr")
    page.click("text=before")
    page.wait_for_selector(".rows .tr")
    page.get_by_role("link", name="beta").first.click()
    page.wait_for_selector(".feed .diff")
    page.goto(f"{target.as_uri()}#/compare/before+after")
    page.wait_for_selector(".verdict")
    page.goto(f"{target.as_uri()}#/rollout/before/beta__00000001")
    page.click("text=model call 0")
    page.wait_for_selector("#drawer >> text=the whole answer")
    page.keyboard.press("Escape")
    page.click(".tabs >> text=Files")
    page.click("text=artifacts/notes.txt")
    page.wait_for_selector(".file pre")
    assert seen.complaints == [] and seen.outside(target.as_uri()) == []


@pytest.mark.browser
@pytest.mark.xdist_group("browser")
def test_a_folder_works_on_any_web_server(watched, quiet_net, jobs, tmp_path, view_env):
    import sys

    subprocess.run([BENCH, "view", jobs, "--export", tmp_path / "site"], env=view_env, check=True, capture_output=True)
    command = [
        *quiet_net,
        sys.executable,
        "-u",
        "-m",
        "http.server",
        "0",
        "--bind",
        "127.0.0.1",
        "-d",
        tmp_path / "site",
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = re.search(r"port (\d+)", server.stdout.readline())[1]
        seen = watched()
        page = seen.open(f"http://127.0.0.1:{port}/#/job/before", ".rows .tr")
        page.get_by_role("link", name="alpha").first.click()
        page.wait_for_selector(".feed .type-message")
        assert seen.complaints == []
    finally:
        server.terminate()
        server.communicate(timeout=10)
