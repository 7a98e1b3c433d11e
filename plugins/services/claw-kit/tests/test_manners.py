"""The small parts, each by itself: field masks, tokens, multipart bodies, contracts, the store."""

from __future__ import annotations

import http.client
import json
import socket
import sqlite3
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from benchflow_claw_kit import (
    ApiError,
    BadToken,
    Contract,
    Store,
    StoreError,
    decode_base64url,
    read_token,
    write_token,
)
from benchflow_claw_kit.masks import BadMask, apply_mask, parse_mask
from benchflow_claw_kit.parts import head_and_body, split_parts
from benchflow_claw_kit.testing import running

VALUE = {"a": 1, "b": {"c": [{"d": 1, "e": 2}, {"d": 3}], "f": 4}, "g": [{"h": {"i": 5, "j": 6}}]}


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ("a", {"a": 1}),
        ("a,b/f", {"a": 1, "b": {"f": 4}}),
        ("b(c/d)", {"b": {"c": [{"d": 1}, {"d": 3}]}}),
        ("b/c(d,e)", {"b": {"c": [{"d": 1, "e": 2}, {"d": 3}]}}),
        ("g/*/i", {"g": [{"h": {"i": 5}}]}),
        ("*", VALUE),
        ("b/*", {"b": VALUE["b"]}),
        ("b/f,b/c/e", {"b": {"c": [{"e": 2}, {}], "f": 4}}),
        ("g(h(j)),a", {"a": 1, "g": [{"h": {"j": 6}}]}),
        ("nothing", {}),
    ],
)
def test_masks(mask, expected):
    assert apply_mask(VALUE, parse_mask(mask)) == expected


@pytest.mark.parametrize("mask", [",", "a,", "a(", "a)", "a(b", "()", "a//b", "(" * 200, "a(" * 100])
def test_bad_masks(mask):
    with pytest.raises(BadMask):
        parse_mask(mask)


def test_tokens():
    token = write_token("s", {"after": [1, "x"]}, ["q", 1])
    assert read_token("s", token, ["q", 1]) == {"after": [1, "x"]}
    for secret, text, question in (
        ("t", token, ["q", 1]),
        ("s", token, ["q", 2]),
        ("s", token[:-1], ["q", 1]),
        ("s", "", None),
        ("s", "ä", None),
    ):
        with pytest.raises(BadToken):
            read_token(secret, text, question)


def test_parts_keep_their_bytes():
    inner = b"line\r\n\r\n--not the mark\r\n\x00\xff"
    body = b"preamble\r\n--b\r\nA: 1\r\n\r\n" + inner + b"\r\n--b\r\n\r\nbare\r\n--b--\r\nepilogue"
    first, second = split_parts(body, b"b")
    assert head_and_body(first) == ({"a": "1"}, inner) and head_and_body(second) == ({}, b"bare")
    for broken in (b"", b"--b", b"no mark at all", b"--b\r\nA: 1\r\n\r\nnever closed"):
        with pytest.raises(ApiError):
            split_parts(broken, b"b")


CONTRACT = {
    "name": "x",
    "version": "v1",
    "methods": {},
    "schemas": {
        "Thing": {
            "name": "string",
            "size": "integer",
            "big": "int64",
            "on": "boolean",
            "kind": {"enum": ["a", "b"]},
            "inner": "#Thing",
            "many": ["#Thing"],
            "map": {"*": "string"},
            "data": "bytes",
        }
    },
}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"nope": 1}, 'Unknown name "nope": Cannot find field.'),
        ({"inner": {"nope": 1}}, "Unknown name \"nope\" at 'inner'"),
        ({"name": 5}, "Invalid value at 'name' (TYPE_STRING), 5"),
        ({"size": "x"}, "(TYPE_INT32)"),
        ({"size": 1.5}, "(TYPE_INT32)"),
        ({"size": 2**40}, "(TYPE_INT32)"),
        ({"size": True}, "(TYPE_INT32)"),
        ({"on": "maybe"}, "(TYPE_BOOL)"),
        ({"kind": "c"}, "(TYPE_ENUM)"),
        ({"many": [{"size": []}]}, "'many[0].size'"),
        ({"map": {"a": {}}}, "'map.a'"),
        ({"data": "!!"}, "Base64 decoding failed"),
    ],
)
def test_bodies_refused(body, text):
    with pytest.raises(ApiError) as caught:
        Contract(CONTRACT, "modern").body("Thing", body)
    assert text in caught.value.message and caught.value.status == 400


def test_bodies_taken():
    modern, legacy = Contract(CONTRACT, "modern"), Contract(CONTRACT, "legacy")
    assert modern.body("Thing", {"size": "5", "big": 7, "name": None, "on": "true", "many": {"size": 1.0}}) == {
        "size": 5,
        "big": "7",
        "on": True,
        "many": [{"size": 1}],
    }
    assert legacy.body("Thing", {"nope": 1, "name": 5, "inner": None}) == {"name": "5", "inner": None}
    deep: dict = {}
    for _ in range(200):
        deep = {"inner": deep}
    with pytest.raises(ApiError):
        modern.body("Thing", deep)


def test_base64_of_either_alphabet():
    assert decode_base64url("-_-_") == decode_base64url("+/+/") == b"\xfb\xff\xbf"
    assert decode_base64url("YQ") == decode_base64url("YQ==") == b"a" and decode_base64url("a b\nc=") is not None
    assert decode_base64url("@") is None


def test_a_transaction_is_whole(tmp_path):
    store = Store(tmp_path / "s.db", "CREATE TABLE IF NOT EXISTS things (id TEXT PRIMARY KEY, v TEXT);")
    with pytest.raises(sqlite3.IntegrityError), store.transaction():
        store.insert("things", id="a", v={"x": 1})
        store.insert("things", id="a")
    assert store.all("SELECT * FROM things") == []
    ids = [store.new_id("thing") for _ in range(3)]
    assert len(set(ids)) == 3
    store.backup(tmp_path / "copy.db")
    assert Store(tmp_path / "copy.db", store.schema).new_id("thing") == store.new_id("thing")
    store.set_meta("epoch_ms", "1000")
    store.tick()
    assert store.now_ms() == 2000
    with pytest.raises(StoreError):
        store.restore(tmp_path / "nothing.db")
    (tmp_path / "junk").write_bytes(b"x" * 5000)
    with pytest.raises(StoreError):
        store.restore(tmp_path / "junk")
    assert store.now_ms() == 2000


def test_many_large_bodies_at_once_do_not_fill_the_memory(tmp_path):
    """A client that could end the service by this would end the rollout as infrastructure, and so lose no point."""
    body = b"x" * 40_000_000
    with running("benchflow_service_claw_gmail.cli", tmp_path / "g.db") as server:

        def send(_: int) -> int:
            return server.ask("POST", "/gmail/v1/users/me/labels", body)[0]

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(send, range(8))) == {400}, "no JSON"
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        peak = int(status.split("VmHWM:")[1].split()[0]) // 1024
        assert peak < 400 and server.ask("GET", "/health")[0] == 200, f"{peak} MB"


def test_answers_on_a_kept_connection_come_at_once_and_a_wrong_chunk_is_answered(tmp_path):
    """Head and body in two packets would wait 40 ms for a client that is slow to confirm, if they waited at all."""
    with running("benchflow_service_claw_gmail.cli", tmp_path / "g.db") as server:
        kept, times = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10), []
        for _ in range(30):
            begin = time.monotonic()
            kept.request("GET", "/health")
            assert json.loads(kept.getresponse().read())["status"] == "ok"
            times.append(time.monotonic() - begin)
        kept.close()
        assert statistics.median(times) < 0.03, times
        with socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1])), 10) as line:
            head = b"POST /gmail/v1/users/me/labels HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n"
            line.sendall(head)
            assert line.recv(100).startswith(b"HTTP/1.1 400 ")
