"""Tokens, scopes, limits, bodies of every kind, seeds, and odd input."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest
from benchflow_claw_kit import cli
from benchflow_claw_kit.testing import running
from benchflow_service_claw_slack.methods import METHODS
from benchflow_service_claw_slack.service import SERVICE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

pytestmark = pytest.mark.xdist_group("claw-slack-service")

WORLD = {
    "team": {"name": "Small", "domain": "small"},
    "users": [{"id": "U1", "name": "ann", "email": "ann@x.org", "primary": True}, {"id": "U2", "name": "ben", "deleted": True}],
    "channels": [{"id": "C1", "name": "ops", "messages": [{"user": "ann", "text": "hello @ann in #ops", "ts": "1772440000.000100"}]}],
    "tokens": [
        {"token": "xoxb-narrow", "user": "clawbot", "scopes": ["chat:write", "channels:read"]},
        {"token": "xoxp-gone", "user": "ben"},
        {"token": "xoxb-old", "user": "clawbot", "revoked": True},
    ],
    "strict_tokens": True,
    "rate_limits": {"team.info": {"calls": 1, "seconds": 600}},
}  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    (folder / "world.json").write_text(
        json.dumps({**WORLD, "tokens": [*WORLD["tokens"], {"token": "xoxp-ann", "user": "ann"}]})
    )
    with running("benchflow_service_claw_slack.cli", folder / "slack.db", seed=(str(folder / "world.json"), 0)) as one:
        yield one


def client(server, token):
    return WebClient(token, base_url=f"{server.url}/api/")


def refused(function, **arguments):
    with pytest.raises(SlackApiError) as caught:
        function(**arguments)
    return caught.value.response


def test_tokens(small):
    assert refused(client(small, None).auth_test)["error"] == "not_authed"
    assert refused(client(small, "xoxb-stranger").auth_test)["error"] == "invalid_auth"
    assert refused(client(small, "xoxp-gone").auth_test)["error"] == "account_inactive"
    assert refused(client(small, "xoxb-old").auth_test)["error"] == "token_revoked"
    assert client(small, "xoxp-ann").auth_test()["user_id"] == "U1"


def test_scopes_are_named(small):
    narrow = client(small, "xoxb-narrow")
    answer = refused(narrow.users_list)
    assert answer.data == {
        "ok": False,
        "error": "missing_scope",
        "needed": "users:read",
        "provided": "channels:read,chat:write",
    }
    assert refused(narrow.conversations_history, channel="C1")["needed"] == "channels:history"
    assert refused(narrow.conversations_list, types="private_channel")["needed"] == "groups:read"
    listed = narrow.conversations_list()
    assert listed["ok"] and "chat:write" in listed.headers["x-oauth-scopes"]
    assert refused(narrow.search_messages, query="x")["error"] == "not_allowed_token_type"


def test_limits_are_told_with_retry_after(small):
    ann = client(small, "xoxp-ann")
    assert ann.team_info()["ok"]
    with pytest.raises(SlackApiError) as caught:
        ann.team_info()
    assert caught.value.response.status_code == 429 and caught.value.response["error"] == "ratelimited"
    assert int(caught.value.response.headers["retry-after"]) > 0


def test_mentions_of_a_scenario_are_links(small):
    (message,) = client(small, "xoxp-ann").conversations_history(channel="C1")["messages"]
    assert message["text"] == "hello <@U1> in <#C1|ops>" and message["ts"] == "1772440000.000100"


@pytest.mark.parametrize("how", ["json", "form", "query", "multipart", "body-token"])
def test_arguments_in_every_form(server, bot, me, channel, how):
    arguments, headers, body = {"channel": channel, "text": f"by {how} é&"}, {"Authorization": "Bearer xoxb-x"}, b""
    path = "/api/chat.postMessage"
    if how == "json":
        headers["Content-Type"], body = "application/json; charset=utf-8", json.dumps(arguments).encode()
    elif how == "form":
        headers["Content-Type"], body = "application/x-www-form-urlencoded", urlencode(arguments).encode()
    elif how == "query":
        path += "?" + urlencode(arguments)
    elif how == "multipart":
        headers["Content-Type"] = "multipart/form-data; boundary=XX"
        body = (
            "".join(
                f'--XX\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in arguments.items()
            ).encode()
            + b"--XX--\r\n"
        )
    else:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode({**arguments, "token": "xoxb-x"}).encode()
    status, answer, _ = server.ask("POST", path, body, headers=headers)
    assert status == 200 and answer["ok"], answer
    assert me.conversations_history(channel=channel, limit=1)["messages"][0]["text"] == f"by {how} é&"


def test_bodies_that_cannot_be_read(server):
    def ask(body, kind):
        headers = {"Authorization": "Bearer xoxb-x", "Content-Type": kind}
        return server.ask("POST", "/api/chat.postMessage", body, headers=headers)[1]["error"]

    assert ask(b"{", "application/json") == "invalid_json"
    assert ask(b"[1]", "application/json") == "json_not_object"
    assert ask(b"[" * 100_000, "application/json") == "invalid_json"
    assert ask(b"x", "image/png") == "invalid_post_type"
    assert ask(b"x", "multipart/form-data") == "invalid_form_data"
    assert server.ask("POST", "/api/no.such.method", {})[1] == {
        "ok": False,
        "error": "unknown_method",
        "req_method": "no.such.method",
    }
    big = b'{"text": "' + b"x" * 50_000_000 + b'"}'
    status, answer, _ = server.ask("POST", "/api/chat.postMessage", big, token="xoxb-x")
    assert status in (200, 413) and answer["ok"] is False


def test_blocks_are_checked(bot, channel):
    cases = {
        "unsupported type: nope": [{"type": "nope"}],
        "missing required field: type": [{}],
        "must be an object": ["x"],
        "no more than 50 items allowed": [{"type": "divider"}] * 51,
        "must be less than 3001 characters": [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}],
        "block_id already exists": [{"type": "divider", "block_id": "a"}, {"type": "divider", "block_id": "a"}],
    }
    for words, blocks in cases.items():
        answer = refused(bot.chat_postMessage, channel=channel, text="x", blocks=blocks)
        assert answer["error"] == "invalid_blocks" and words in answer["errors"][0], answer
    assert refused(bot.chat_postMessage, channel=channel, blocks="{", text="x")["error"] == "invalid_blocks_format"
    assert refused(bot.chat_postMessage, channel=channel, text="")["error"] == "no_text"
    assert refused(bot.chat_postMessage, channel=channel, text="x" * 40_001)["error"] == "msg_too_long"


def test_the_verifier_sees_what_changed(server, bot, channel):
    bot.chat_postMessage(channel=channel, text="for the verifier")
    added = [one for one in server.admin("GET", "diff")["added"] if one["kind"] == "message"]
    assert "for the verifier" in [one["after"]["text"] for one in added]


def test_mcp_tools_reach_the_same_workspace(server, bot, channel):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call["params"] = {"name": "post_message", "arguments": {"channel": channel, "text": "by tool"}}
    status, answer, _ = server.ask("POST", "/mcp", call, token="xoxb-x")
    assert status == 200 and '"ok":true' in answer["result"]["content"][0]["text"], answer
    assert bot.conversations_history(channel=channel, limit=1)["messages"][0]["text"] == "by tool"


@pytest.mark.parametrize("scenario", ["office", "incident"])
def test_a_seed_repeats_and_another_differs(tmp_path, capsys, scenario):
    dumps = []
    for number, name in ((1, "a"), (1, "b"), (2, "c")):
        assert (
            cli.run(SERVICE, ["--db", str(tmp_path / name), "seed", "--scenario", scenario, "--seed", str(number)]) == 0
        )
        assert cli.run(SERVICE, ["--db", str(tmp_path / name), "dump"]) == 0
        dumps.append(capsys.readouterr().out)
    assert dumps[0] == dumps[1] != dumps[2]


def test_a_scenario_with_a_mistake_is_one_line(tmp_path, capsys):
    (tmp_path / "w.json").write_text(json.dumps({"channels": [{"name": "x", "mesages": []}]}))
    assert cli.run(SERVICE, ["--db", str(tmp_path / "s.db"), "seed", "--scenario", str(tmp_path / "w.json")]) == 2
    errors = capsys.readouterr().err
    assert "mesages" in errors and errors.count("\n") == 1


names = st.sampled_from(["channel", "ts", "text", "user", "users", "name", "limit", "cursor", "blocks", "attachments", "file", "files", "types",
                         "timestamp", "thread_ts", "oldest", "latest", "query", "count", "page", "post_at", "view", "profile", "usergroup", "time",
                         "metadata", "unfurls", "num_minutes", "length", "filename", "bookmark_id", "channel_id", "link", "type", "title"])  # fmt: skip
scalars = st.sampled_from(
    ["", "0", "-1", "general", "1e9", "99999999999999999999", "1772440000.000100", "[", "{}", "[]", "U1", "null", "é😀"]
)
values = st.one_of(scalars, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.lists(st.one_of(scalars, st.integers()), max_size=2),
                   st.dictionaries(scalars, scalars, max_size=2))  # fmt: skip


@settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
@given(
    method=st.sampled_from(sorted(set(METHODS) - {"auth.revoke"})),
    arguments=st.dictionaries(names, values, max_size=5),
    person=st.booleans(),
)
def test_no_arguments_make_it_fail(server, general, method, arguments, person):
    arguments = {k: general if v == "general" else v for k, v in arguments.items()}
    status, answer, _ = server.ask("POST", f"/api/{method}", arguments, token="xoxp-x" if person else "xoxb-x")
    assert status == 200 and isinstance(answer, dict) and answer["ok"] in (True, False), (
        method,
        arguments,
        status,
        answer,
    )


@pytest.fixture(scope="module")
def general(bot):
    return next(c["id"] for c in bot.conversations_list()["channels"] if c["is_general"])
