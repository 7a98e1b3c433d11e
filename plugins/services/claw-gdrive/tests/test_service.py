"""Seeds, scopes, the verifier's view, the table in the docs, odd input."""

from __future__ import annotations

import json

import pytest
from benchflow_claw_kit import cli
from benchflow_service_claw_gdrive import query
from benchflow_service_claw_gdrive.service import SERVICE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("claw-gdrive-service")


@pytest.mark.parametrize("scenario", ["office", "lab"])
def test_a_seed_repeats_and_another_differs(tmp_path, capsys, scenario):
    dumps = []
    for number, name in ((1, "a"), (1, "b"), (2, "c")):
        assert (
            cli.run(SERVICE, ["--db", str(tmp_path / name), "seed", "--scenario", scenario, "--seed", str(number)]) == 0
        )
        assert cli.run(SERVICE, ["--db", str(tmp_path / name), "dump"]) == 0
        dumps.append(capsys.readouterr().out)
    assert dumps[0] == dumps[1] != dumps[2]


def test_a_tasks_own_scenario(tmp_path, capsys):
    world = {
        "users": [{"email": "me@x.org"}],
        "files": [{"name": "F", "files": [{"id": "abc", "name": "a.txt", "content": "hi"}]}],
    }
    (tmp_path / "w.json").write_text(json.dumps(world))
    seed = ["--db", str(tmp_path / "d.db"), "seed", "--scenario", str(tmp_path / "w.json")]
    assert cli.run(SERVICE, seed) == 0
    assert cli.run(SERVICE, ["--db", str(tmp_path / "d.db"), "dump"]) == 0
    state = json.loads(capsys.readouterr().out)
    assert state["drive_files"]["abc"]["owner"] == "me@x.org" and state["drive_files"]["abc"]["size"] == 2
    (tmp_path / "w.json").write_text(json.dumps({"files": [{"name": "x", "colour": 1}]}))
    assert cli.run(SERVICE, seed) == 2
    errors = capsys.readouterr().err
    assert "colour" in errors and errors.count("\n") == 1


def test_scopes(server, alex, refused):
    from benchflow_claw_kit.testing import google_client

    reader = google_client("drive", "v3", server.url, token="alex@larkspur.example;drive.readonly").files()
    assert reader.list().execute()["files"]
    assert refused(reader.create(body={"name": "x"})) == (403, "insufficientPermissions")


def test_the_verifier_sees_what_changed(server, alex):
    made = alex.make("for the verifier.txt", b"x")["id"]
    added = server.admin("GET", "diff")["added"]
    assert made in [one["id"] for one in added if one["kind"] == "file"]


def test_mcp_tools_reach_the_same_files(server, alex):
    def tool(which, **arguments):
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": which, "arguments": arguments}}
        answer = server.ask("POST", "/mcp", call, token="alex@larkspur.example")[1]["result"]
        assert not answer["isError"], answer
        return answer["content"][0]["text"]

    (found,) = json.loads(tool("search_files", q="name = 'notes.txt'"))["files"]
    assert tool("read_file", fileId=found["id"]) == "Call the insurance about the move.\n"
    tool("rename_file", fileId=found["id"], name="move.txt")
    assert alex.get(found["id"])["name"] == "move.txt"


words = st.sampled_from(["name", "trashed", "modifiedTime", "parents", "in", "and", "or", "not", "contains", "has", "=", "!=", "<", "(", ")",
                         "{", "}", "'x'", "'2026-01-01'", "true", "key", "value", "'", "\\", "9", "fullText", "properties"])  # fmt: skip


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.lists(words, max_size=9))
def test_no_query_makes_the_parser_fail(parts):
    try:
        query.parse(" ".join(parts), query.FILE_TERMS)
    except query.BadQuery:
        pass


names = st.sampled_from(["id", "name", "mimeType", "parents", "description", "properties", "starred", "trashed", "modifiedTime", "contentHints",
                         "shortcutDetails", "role", "type", "emailAddress", "content", "action", "expirationTime", "folderColorRgb", "x"])  # fmt: skip
scalars = st.sampled_from(["", "x", "root", "2026", "true", "é😀", "application/vnd.google-apps.folder", "\ud800"])
values = st.one_of(
    scalars,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.lists(scalars, max_size=2),
    st.dictionaries(scalars, scalars, max_size=2),
)
paths = st.sampled_from([("POST", "files"), ("PATCH", "files/1LarkspurBudgetSheet00"), ("POST", "files/1LarkspurBudgetSheet00/permissions"),
                         ("POST", "files/1LarkspurBudgetSheet00/comments?fields=*"), ("POST", "files/1LarkspurBudgetSheet00/copy"),
                         ("POST", "drives?requestId=x"), ("POST", "channels/stop"), ("PATCH", "files/root"), ("POST", "files/root/watch")])  # fmt: skip


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
@given(target=paths, body=st.dictionaries(names, values, max_size=4))
def test_no_body_makes_it_fail(server, target, body):
    verb, path = target
    status, answer, _ = server.ask(verb, f"/drive/v3/{path}", body)
    assert status < 500, (verb, path, body, answer)
    assert status == 204 or isinstance(answer, dict)


@pytest.mark.parametrize("how", ["multipart", "media", "resumable", "nonsense"])
@pytest.mark.parametrize("kind", ["multipart/related", "multipart/related; boundary=x", "text/plain", "a/b/c;;;=", ""])
def test_broken_uploads(server, how, kind):
    for body in (
        b"",
        b"--x\r\n",
        b"--x\r\n\r\n{}\r\n--x--",
        b"--x\r\n\r\n{\r\n--x\r\n\r\nabc\r\n--x--",
        b"\xff" * 1000,
    ):
        status, _, _ = server.ask(
            "POST", f"/upload/drive/v3/files?uploadType={how}", body, headers={"Content-Type": kind}
        )
        assert status < 500
