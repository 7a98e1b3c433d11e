"""Who may read, and what they can ask for: the server, spoken to directly."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
from urllib.parse import urlsplit

import pytest

from .conftest import BENCH, TALK, make_rollout


@pytest.fixture(scope="module")
def served(view_env, jobs):
    from .conftest import Viewer

    one = Viewer([], [jobs], view_env)
    yield one
    one.close()


def ask(served, path="", *, method="GET", host=None, token=None, headers=None):
    url = urlsplit(served.url)
    connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=20)
    prefix = url.path if token is None else f"/{token}/"
    connection.putrequest(method, prefix + path, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", host or url.netloc)
    for name, value in (headers or {}).items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read() if "event-stream" not in (answer.getheader("Content-Type") or "") else b""
    connection.close()
    return answer, body


def test_the_page_and_its_headers(served):
    answer, body = ask(served)
    assert answer.status == 200 and b'<script src="app.js"' in body
    policy = answer.getheader("Content-Security-Policy")
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    assert answer.getheader("Referrer-Policy") == "no-referrer"
    assert answer.getheader("Access-Control-Allow-Origin") is None and answer.getheader("Set-Cookie") is None


@pytest.mark.parametrize("token", ["", "wrong", "A" * 32, "%00", "..", "%C3%BC"])
def test_without_the_token_there_is_nothing(served, token):
    for path in ("", "app.js", "data/jobs.json", "live"):
        answer, body = ask(served, path, token=token)
        assert answer.status == 403 and b"before" not in body


@pytest.mark.parametrize("host", ["attacker.invalid", "attacker.invalid:80", "127.0.0.1", "127.0.0.1:1", "0.0.0.0"])
def test_another_host_name_is_refused(served, host):
    answer, _ = ask(served, "data/jobs.json", host=host)
    assert answer.status == 421


def test_it_listens_on_loopback_only(served):
    port = urlsplit(served.url).port
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.254.254.254", 1))
            own = probe.getsockname()[0]
        except OSError:
            pytest.skip("this host has no other address")
    with pytest.raises(OSError):
        socket.create_connection((own, port), timeout=2).close()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_it_can_only_be_read(served, method):
    answer, _ = ask(served, "data/jobs.json", method=method)
    assert answer.status == 405


@pytest.mark.parametrize(
    "path",
    [
        "data/job/...json",
        "data/job/%2e%2e.json",
        "data/job/before%2f..%2fafter.json",
        "data/rollout/before/...json",
        "data/rollout/before/%2e%2e%2fafter%2falpha__10000001.json",
        "data/rollout/before/alpha__00000001%00.json",
        "data/file/before/beta__00000001/..%2f..%2fresult.json.json",
        "data/file/before/beta__00000001/%2e%2e.json",
        "data/steps/before/alpha__00000001/-1.json",
        "data/steps/before/alpha__00000001/99999999999999999999.json",
        "data/steps/before/alpha__00000001/x.json",
        "data/step/before/alpha__00000001/77.json",
        "data/traffic/before/alpha__00000001/0.json",
        "data/compare/before+nothing.json",
        "data/nothing.json",
        "data/get.json",
        "data/__class__.json",
        "data/job.json",
        "data/job/before/extra/more.json",
        "../../../../etc/passwd",
        "web/style.css",
        "live/nothing",
        "live/before/nothing",
        "live/a/b/c",
        "data/.json",
    ],
)
def test_paths_lead_nowhere_else(served, path):
    answer, body = ask(served, path)
    assert answer.status == 404, (path, body[:300])


def test_a_link_in_a_rollout_is_not_followed(view_env, tmp_path):
    from .conftest import Viewer

    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    folder = make_rollout(tmp_path / "jobs" / "j", "t__1", TALK)
    (folder / "verifier").symlink_to(tmp_path)
    (folder / "link.txt").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    (tmp_path / "jobs" / "j" / "outside").symlink_to(tmp_path)
    one = Viewer([], [tmp_path / "jobs" / "j"], view_env)
    try:
        answer, body = ask(one, "data/rollout/j/t__1.json")
        listed = [file["path"] for file in json.loads(body)["files"]]
        assert (
            answer.status == 200 and listed == ["config.json", "events.jsonl", "result.json"] and b"SECRET" not in body
        )
        assert ask(one, "data/rollout/j/outside.json")[0].status == 404
    finally:
        one.close()


def test_jobs_of_several_arms_are_compared_arm_by_arm(view_env, tmp_path):
    from .conftest import Viewer

    for job, arm, reward in (("one", "a", 0.0), ("one", "b", 1.0), ("two", "a", 1.0), ("two", "b", 1.0)):
        for task in ("alpha", "beta"):
            make_rollout(tmp_path / job, f"{task}__{arm}0000001", TALK, arm=arm, rewards={"reward": reward})
    make_rollout(tmp_path / "plain", "alpha__00000001", TALK)
    viewer = Viewer([], [tmp_path], view_env)
    try:
        several = json.loads(ask(viewer, "data/compare/one+two+plain.json")[1])
        alone = json.loads(ask(viewer, "data/compare/one.json")[1])
    finally:
        viewer.close()
    sides = [(side["name"], side["score"]) for side in several["sides"]]
    assert sides == [("one:a", 0.0), ("one:b", 1.0), ("two:a", 1.0), ("two:b", 1.0), ("plain", 1.0)]
    assert several["problem"] is None
    named = [(c["base"], c["other"], c["difference"]) for c in several["comparisons"]]
    assert named == [("one:a", other, 1.0) for other in ("one:b", "two:a", "two:b", "plain")]
    assert several["tasks"][0]["change"] == "flipped"
    assert [(c["base"], c["other"]) for c in alone["comparisons"]] == [("a", "b")]


def test_a_contested_rollout_is_marked_in_the_table_and_has_its_evidence(view_env, tmp_path):
    from .conftest import CONTESTED, Viewer

    make_rollout(tmp_path / "job", "a__00000001", TALK, rewards={"reward": 0.0}, verification=CONTESTED)
    make_rollout(tmp_path / "job", "b__00000001", TALK)
    viewer = Viewer([], [tmp_path / "job"], view_env)
    try:
        flags = json.loads(ask(viewer, "data/job/job.json")[1])["columns"]["flags"]
        found = json.loads(ask(viewer, "data/rollout/job/a__00000001.json")[1])["result"]["verification"]
    finally:
        viewer.close()
    assert [flags["texts"][n] for n in flags["rows"]] == ["contested", ""]
    assert found["culprits"] == CONTESTED["culprits"]


def test_every_answer_is_json_and_compressed_where_asked(served):
    answer, _ = ask(served, "data/job/before.json", headers={"Accept-Encoding": "gzip"})
    assert (
        answer.getheader("Content-Type").startswith("application/json")
        and answer.getheader("Content-Encoding") == "gzip"
    )
    plain = json.loads(ask(served, "data/job/before.json")[1])
    assert plain["rows"] == 6 and plain["summary"]["score_ratio"] == pytest.approx(2 / 3)


def test_changes_come_as_server_sent_events(served):
    url = urlsplit(served.url)
    with socket.create_connection(("127.0.0.1", url.port), timeout=20) as stream:
        stream.sendall(f"GET {url.path}live/before HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode())
        text = b""
        while b"data: " not in text:
            text += stream.recv(4096)
    assert b"text/event-stream" in text and b'"running":false' in text


def test_sigterm_ends_it_and_leaves_nothing(view_env, jobs, tmp_path):
    env = {**view_env, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [BENCH, "view", jobs, "--no-open"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline().startswith(b"http://127.0.0.1:")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0 and b"Traceback" not in err and list(tmp_path.iterdir()) == []


def test_the_token_is_on_no_command_line(view_env, jobs, tmp_path):
    """The browser is started with a file that only its user can read."""
    told = tmp_path / "told"
    program = tmp_path / "browser.sh"
    program.write_text(
        f'#!/bin/sh\nf="${{1#file://}}"; stat -c "%a" "$f" > {told}.mode; cat "$f" > {told}.page; echo "$1" > {told}\n'
    )
    program.chmod(0o755)
    env = {**view_env, "BROWSER": str(program), "DISPLAY": ":99"}
    process = subprocess.Popen(
        [BENCH, "view", jobs], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        url = process.stdout.readline().strip()
        from .conftest import wait_until

        given = wait_until(lambda: told.exists() and told.read_text())
        assert urlsplit(url).path.strip("/") not in given and url in (tmp_path / "told.page").read_text()
        assert (tmp_path / "told.mode").read_text() == "600\n"
    finally:
        process.terminate()
        process.communicate(timeout=20)
