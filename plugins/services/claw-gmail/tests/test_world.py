"""The world around the API: command line, seeds, state, admin channel, page, MCP."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
import urllib.request

import pytest
from benchflow_claw_kit.cli import run as command_line
from benchflow_claw_kit.testing import ADMIN_TOKEN, google_client, running
from benchflow_service_claw_gmail.service import SERVICE

from .conftest import MODULE, raw

PROGRAM = [sys.executable, "-c", f"from {MODULE} import main; main()"]


class Done:
    def __init__(self, stdout, stderr):
        self.stdout, self.stderr = stdout, stderr


def run(*arguments, code=0):
    """The command line, in this process: a start costs more than what is looked at."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            got = command_line(SERVICE, [str(one) for one in arguments])
        except SystemExit as end:
            got = end.code
    assert got == code, err.getvalue()
    return Done(out.getvalue(), err.getvalue())


SCENARIO = {
    "now": "2026-05-04T08:00:00Z",
    "users": [{"email": "Kim@Example.com", "name": "Kim", "labels": ["Bills"]}, {"email": "lee@example.com"}],
    "messages": [
        {
            "from": "Lee <lee@example.com>",
            "to": "kim@example.com",
            "subject": "Plan",
            "body": "First",
            "date": "-2d",
            "thread": "t",
            "labels": ["INBOX", "Bills"],
        },
        {
            "from": "kim@example.com",
            "to": "lee@example.com",
            "subject": "Re: Plan",
            "body": "Second",
            "date": "-1d",
            "thread": "t",
            "labels": ["SENT"],
        },
        {
            "user": "lee@example.com",
            "from": "a@b.example",
            "subject": "File",
            "attachments": [{"filename": "a.txt", "type": "text/plain", "content": "hi"}],
        },
        {"from": "kim@example.com", "to": "x@y.example", "subject": "Later", "draft": True},
    ],
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    (folder / "task.json").write_text(json.dumps(SCENARIO))
    with running(MODULE, folder / "gmail.db", seed=(str(folder / "task.json"), 5)) as server:
        yield server


def test_a_tasks_own_scenario(world):
    users = google_client("gmail", "v1", world.url).users()
    assert users.getProfile(userId="me").execute()["emailAddress"] == "kim@example.com"
    [thread] = users.threads().list(userId="me", q="plan").execute()["threads"]
    messages = users.threads().get(userId="me", id=thread["id"]).execute()["messages"]
    assert [one["snippet"] for one in messages] == ["First", "Second"]
    assert users.messages().list(userId="me", q="label:bills older_than:1d").execute()["resultSizeEstimate"] == 1
    assert len(users.drafts().list(userId="me").execute()["drafts"]) == 1
    assert users.messages().list(userId="lee@example.com", q="filename:a.txt").execute()["resultSizeEstimate"] == 1


def test_what_the_agent_changed(world, tmp_path):
    world.admin("POST", "reset")
    assert world.admin("GET", "diff") == {"added": [], "removed": [], "changed": []}
    users = google_client("gmail", "v1", world.url).users()
    id = users.messages().list(userId="me", q="plan in:inbox").execute()["messages"][0]["id"]
    users.messages().modify(userId="me", id=id, body={"addLabelIds": ["STARRED"]}).execute()
    users.messages().send(userId="me", body={"raw": raw(to="lee@example.com", subject="New")}).execute()
    found = world.admin("GET", "diff")
    kinds = [(entry["kind"], entry.get("fields")) for entry in found["changed"]]
    assert ("message", ["history_id", "labels"]) in kinds
    assert sorted(e["after"]["user"] for e in found["added"] if e["kind"] == "message") == [
        "kim@example.com",
        "lee@example.com",
    ]
    calls = world.admin("GET", "calls")["calls"]
    assert calls[-1]["method"] == "gmail.users.messages.send" and calls[-1]["status"] == 200

    run("--db", world.db, "snapshot", "--out", tmp_path / "after.db")
    base = world.db.with_name("gmail.db.snapshots") / "initial.db"
    (tmp_path / "after.db").chmod(0o400)
    same = json.loads(run("--db", tmp_path / "after.db", "diff", "--base", base, "--json").stdout)
    assert same == found
    assert "~ message kim@example.com/" in run("--db", tmp_path / "after.db", "diff", "--base", base).stdout
    world.admin("POST", "snapshot", {"name": "later"})
    world.admin("POST", "reset")
    assert world.admin("GET", "diff") == {"added": [], "removed": [], "changed": []}
    world.admin("POST", "restore", {"name": "later"})
    assert world.admin("GET", "diff") == found
    assert world.ask("GET", "/_admin/diff?base=../../etc/passwd", token=ADMIN_TOKEN)[0] == 400
    assert world.ask("POST", "/_admin/restore", {"name": "nope"}, token=ADMIN_TOKEN)[0] == 400
    world.admin("POST", "reset")


def test_the_admin_channel_needs_its_token(world):
    for path in ("/_admin", "/_admin/", "/_admin/state", "/_admin/diff", "/_admin/nope"):
        for token in (None, "wrong", "kim@example.com", ADMIN_TOKEN + "x"):
            assert world.ask("GET", path, token=token)[0] == 404
    assert world.ask("POST", "/_admin/seed", {"scenario": "empty"})[0] == 404
    assert world.ask("GET", "/_admin/nope", token=ADMIN_TOKEN)[0] == 404
    assert world.ask("POST", "/_admin/seed", {"scenario": "nope"}, ADMIN_TOKEN)[0] == 400
    assert world.ask("POST", "/_admin/seed", b"{", ADMIN_TOKEN)[0] == 400


def test_the_page_escapes(world):
    users = google_client("gmail", "v1", world.url).users()
    evil = "<script>alert(1)</script>\"'&"
    users.messages().insert(userId="me", body={"raw": raw(subject=evil, text=evil)}).execute()
    request = urllib.request.Request(world.url + "/_admin/", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
    with urllib.request.urlopen(request) as answer:
        page = answer.read().decode()
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "<script" not in page and "&lt;script&gt;" in page and "Messages" in page
    assert "<script" not in run("--db", world.db, "page").stdout


async def test_mcp_with_the_official_client(world):
    from mcp import ClientSession

    try:
        from mcp.client.streamable_http import streamable_http_client as connect
    except ImportError:
        from mcp.client.streamable_http import streamablehttp_client as connect
    async with connect(world.url + "/mcp") as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert {"search_messages", "send_message", "get_thread", "create_label"} <= tools
        sent = await session.call_tool("send_message", {"to": "lee@example.com", "subject": "By MCP", "body": "Hello"})
        id = json.loads(sent.content[0].text)["id"]
        found = await session.call_tool("search_messages", {"q": "subject:mcp"})
        assert [one["id"] for one in json.loads(found.content[0].text)["messages"]] == [id]
        missing = await session.call_tool("get_message", {"id": "19ffffffffffffff"})
        assert "was not found" in missing.content[0].text
        strange = await session.call_tool("get_message", {"nope": 1})
        assert "Bad arguments" in strange.content[0].text


def test_mcp_on_the_wire(world):
    ask = lambda body: world.ask("POST", "/mcp", body)  # noqa: E731
    assert ask(b"{")[0] == 400
    assert ask({"jsonrpc": "2.0", "id": 1, "method": "nope"})[1]["error"]["code"] == -32601
    assert ask({"jsonrpc": "2.0", "method": "notifications/initialized"})[0] == 202
    assert ask([])[0] == 202 and ask(5)[1]["error"]["code"] == -32600
    assert (
        ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nope"}})[1]["error"]["code"]
        == -32602
    )
    assert world.ask("GET", "/mcp")[0] == 405


def test_the_same_seed_is_the_same_world(tmp_path):
    for name, number in (("a", 3), ("b", 3), ("c", 4)):
        run("--db", tmp_path / f"{name}.db", "seed", "--scenario", "support", "--seed", number)
    a, b, c = (run("--db", tmp_path / f"{name}.db", "dump").stdout for name in "abc")
    assert a == b != c and len(json.loads(a)["messages"]) > 40
    run("--db", tmp_path / "c.db", "seed", "--scenario", "support", "--seed", 3)
    assert run("--db", tmp_path / "c.db", "dump").stdout == a
    assert stat.S_IMODE((tmp_path / "a.db").stat().st_mode) == 0o600
    assert run("scenarios").stdout.startswith("archive")


def test_bad_input_through_the_process(tmp_path):
    done = subprocess.run([*PROGRAM, "--db", str(tmp_path), "serve"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr


def test_bad_input_is_one_line_and_2(tmp_path):
    (tmp_path / "text.db").write_text("this is no database at all, but long enough to be looked at as one")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "typo.json").write_text('{"mesages": []}')
    (tmp_path / "date.json").write_text('{"messages": [{"date": "someday"}]}')
    (tmp_path / "user.json").write_text('{"messages": [{"user": "no@one.example"}]}')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    db = tmp_path / "g.db"
    for arguments, text in (
        (("--db", tmp_path / "text.db", "serve"), "cannot be used as a database"),
        (("--db", tmp_path / "text.db", "dump"), "cannot be read as a database"),
        (("--db", tmp_path / "none.db", "dump"), "no such file"),
        (("--db", tmp_path, "serve"), "cannot be used"),
        (("--db", db, "seed", "--scenario", "nope"), "unknown scenario 'nope'"),
        (("--db", db, "seed", "--scenario", tmp_path / "list.json"), "a JSON object is wanted"),
        (("--db", db, "seed", "--scenario", tmp_path / "deep.json"), "not JSON"),
        (("--db", db, "seed", "--scenario", tmp_path / "typo.json"), "did you mean 'messages'?"),
        (("--db", db, "seed", "--scenario", tmp_path / "date.json"), "messages[0]: 'someday' is not a date"),
        (("--db", db, "seed", "--scenario", tmp_path / "user.json"), "no user 'no@one.example'"),
        (("--db", db, "seed", "--scenario", "office", "--now", "late"), "is not a date or time"),
        (("--db", db, "serve", "--port", "99999"), "not a port"),
        (("--db", db, "serve", "--host", "203.0.113.1"), "cannot listen on 203.0.113.1"),
    ):
        done = run(*arguments, code=2)
        assert text in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert json.loads(run("--db", db, "dump").stdout)["messages"] == {}


def test_a_stop_loses_nothing_and_a_copy_starts_again(tmp_path):
    with running(MODULE, tmp_path / "g.db") as server:
        api = google_client("gmail", "v1", server.url).users()
        sent = api.messages().send(userId="me", body={"raw": raw(to="a@b.example", subject="Kept")}).execute()
        assert server.ask("GET", "/health")[1] == {"status": "ok", "service": "gmail", "scenario": None}
        run("--db", server.db, "snapshot", "--out", tmp_path / "copy.db")
        begin = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(10) == 0 and time.monotonic() - begin < 5
    with sqlite3.connect(tmp_path / "g.db") as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    for name in ("g.db", "copy.db"):
        with running(MODULE, tmp_path / name, "--no-mcp", "--require-auth") as server:
            api = google_client("gmail", "v1", server.url, token="t").users()
            assert api.messages().get(userId="me", id=sent["id"]).execute()["labelIds"] == ["SENT"]
            status, error, _ = server.ask("GET", "/gmail/v1/users/me/profile")
            assert status == 401 and error["error"]["status"] == "UNAUTHENTICATED"
            assert server.ask("POST", "/mcp", {})[0] == 404


def test_tokens_made_here(tmp_path):
    db = tmp_path / "g.db"
    run("--db", db, "seed", "--scenario", "empty")
    base = tmp_path / "g.db.snapshots" / "initial.db"
    run("--db", db, "snapshot", "--out", base)
    run("--db", db, "seed", "--scenario", "office")
    assert not base.exists(), "a new seed is a new beginning"
    token = run("--db", db, "token", "--user", "alice@example.com", "--scopes", "gmail.readonly").stdout.strip()
    with running(MODULE, db) as server:
        assert server.ask("GET", "/gmail/v1/users/me/profile", token=token)[1]["emailAddress"] == "alice@example.com"
        assert server.ask("POST", "/gmail/v1/users/me/labels", {"name": "x"}, token)[0] == 403


def test_without_a_token_there_is_no_admin_channel(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith("CLAW_")}
    log = tmp_path / "log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*PROGRAM, "--db", str(tmp_path / "g.db"), "serve", "--port", "0"], env=env, stderr=sink
        )
    try:
        for _ in range(1500):
            if "http://" in log.read_text():
                break
            time.sleep(0.02)
        url = "http://" + log.read_text().split("http://")[1].split(",")[0]
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.request.Request(url + "/_admin/state", headers={"Authorization": "Bearer "}))
        assert caught.value.code == 404
    finally:
        process.terminate()
        process.wait(10)
