"""Writers: append-only, atomic, redacted; and the views derived from the event log."""

from __future__ import annotations

import base64
import errno
import json
import tracemalloc
from urllib.parse import quote_plus

import pytest
from benchflow_testing_kit.host import peak_memory

from benchflow_core.errors import ConfigurationError, InfrastructureError
from benchflow_core.results.eventlog import EventLog
from benchflow_core.results.files import out_of_files, read_jsonl, write_json
from benchflow_core.results.redact import MARK, Redactor
from benchflow_core.results.trajectory import Counts, trajectory


def test_values_are_redacted_in_every_form_they_take():
    redactor = Redactor.from_env({"API_KEY": 'pa"ss/word', "HARMLESS": "pa", "SHORT_TOKEN": "abc"})
    text = json.dumps({"a": 'x pa"ss/word', "b": "pa%22ss%2Fword", "c": "abc pa"})
    assert redactor.text(text) == json.dumps({"a": f"x {MARK}", "b": MARK, "c": "abc pa"})
    assert redactor.data(b'\xff pa"ss/word \xfe') == b"\xff " + MARK.encode() + b" \xfe"


def test_a_secret_that_holds_another_is_hidden_whole():
    assert Redactor(["secret", "secret-longer"]).text("secret-longer") == MARK


def test_trees_are_cleaned_without_following_links(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("my-secret-value")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a").write_bytes(b"\x00my-secret-value\x01")
    (tree / "link").symlink_to(outside)
    assert Redactor(["my-secret-value"]).tree(tree) == [tree / "a"]
    assert (tree / "a").read_bytes() == b"\x00" + MARK.encode() + b"\x01"
    assert outside.read_text() == "my-secret-value"


def test_the_event_log_appends_and_does_not_grow_in_memory(tmp_path):
    log = EventLog(tmp_path / "deep/events.jsonl", Redactor(["hidden-value"]))
    tracemalloc.start()
    for n in range(1000):
        log.write("update", {"text": "hidden-value", "n": n}, turn=1)
    before = tracemalloc.get_traced_memory()[0]
    for n in range(20_000):
        log.write("update", {"text": "x" * 100, "n": n}, turn=1)
    assert tracemalloc.get_traced_memory()[0] - before < 200_000
    tracemalloc.stop()
    log.close()
    log.close()
    rows = list(read_jsonl(log.path))
    assert len(rows) == 21_000 == rows[-1]["seq"]
    assert rows[0]["data"] == {"text": MARK, "n": 0}


def test_a_disk_that_is_full_is_told_once_and_by_name(tmp_path):
    path = tmp_path / "events.jsonl"
    path.symlink_to("/dev/full")
    log = EventLog(path, Redactor([]))
    log.write("first")
    with pytest.raises(InfrastructureError, match="No space left on device"):
        log.flush()
    with pytest.raises(InfrastructureError, match="No space left on device"):
        log.close()
    log.write("what went wrong", {"more": 1})
    log.flush()
    log.close()


def test_a_line_cut_short_by_a_kill_is_left_out_and_a_broken_one_is_not(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b'{"a":1}\n{"a":2')
    assert list(read_jsonl(path)) == [{"a": 1}]
    path.write_bytes(b'{"a":1}\nnonsense\n{"a":3}\n')
    with pytest.raises(ValueError):
        list(read_jsonl(path))


def test_writing_where_one_may_not_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"cannot write .*its folder is a file"):
        write_json(tmp_path / "file" / "x.json", {})
    with pytest.raises(ValueError):
        write_json(tmp_path / "nan.json", {"x": float("nan")})
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def events(*rows):
    return [
        {"kind": kind, "data": data, "time": str(i), "session": "s", "turn": 1} for i, (kind, data) in enumerate(rows)
    ]


def test_chunks_are_joined_and_calls_merged_with_their_updates():
    rows = events(
        ("turn_started", {"prompt": "do it"}),
        ("agent_thought_chunk", {"content": {"type": "text", "text": "hm"}}),
        ("agent_message_chunk", {"content": {"type": "text", "text": "I "}}),
        ("agent_message_chunk", {"content": {"type": "text", "text": "will"}}),
        ("tool_call", {"toolCallId": "1", "title": "ls", "kind": "execute", "rawInput": {"command": "ls"}}),
        ("tool_call_update", {"toolCallId": "1", "status": "completed", "rawOutput": "files"}),
        ("permission_request", {"toolCall": {"toolCallId": "2", "title": "rm"}, "options": []}),
        ("agent_message_chunk", {"content": {"type": "text", "text": "done"}}),
        ("turn_finished", {"stop_reason": "end_turn"}),
    )
    entries = list(trajectory(rows))
    assert [(e["type"], e.get("text") or e.get("title")) for e in entries] == [
        ("user_message", "do it"),
        ("agent_thought", "hm"),
        ("agent_message", "I will"),
        ("tool_call", "ls"),
        ("tool_call", "rm"),
        ("agent_message", "done"),
    ]
    call = next(e for e in entries if e.get("title") == "ls")
    assert call["raw_input"] == {"command": "ls"} and call["raw_output"] == "files" and call["status"] == "completed"


def test_tool_calls_are_counted_once_and_per_turn():
    counts = Counts()
    for row in events(
        ("turn_started", {}),
        ("tool_call", {"toolCallId": "1", "kind": "other"}),
        ("skill_invoked", {"toolCallId": "1", "skill": "greeting"}),
        ("tool_call_update", {"toolCallId": "1", "kind": "other"}),
        ("tool_call_update", {"toolCallId": "2"}),
    ):
        counts.see(row)
    assert (counts.prompts, counts.tool_calls) == (1, 2)


def test_a_call_that_loads_a_skill_is_of_that_kind_whatever_the_agent_says():
    rows = events(
        ("tool_call", {"toolCallId": "1", "kind": "other"}),
        ("skill_invoked", {"toolCallId": "1", "skill": "greeting"}),
        ("tool_call_update", {"toolCallId": "1", "kind": "other", "status": "completed"}),
        ("turn_finished", {}),
    )
    [call] = trajectory(rows)
    assert (call["kind"], call["skill"], call["status"]) == ("skill", "greeting", "completed")


def test_what_a_terminal_printed_is_the_output_of_its_call():
    """Adapters of agents send it beside the call, piece by piece; the call itself holds only the terminal's name."""
    parts = [{"_meta": {"terminal_output": {"data": text}}} for text in ("one\n", "two\n")]
    odd = [{"_meta": "text"}, {"_meta": {"terminal_output": 5}}]
    first = {"title": "ls", "content": [{"type": "terminal", "terminalId": "t"}]}
    updates = [first, *parts, *odd, {"status": "completed"}]
    rows = [{"kind": "tool_call_update", "data": {"toolCallId": "t", **update}} for update in updates]
    [call] = trajectory(rows)
    assert call["raw_output"] == {"stdout": "one\ntwo\n"} and call["status"] == "completed"
    own = {"kind": "tool_call_update", "data": {"toolCallId": "t", "rawOutput": {"text": "own"}}}
    [call] = trajectory([*rows, own])
    assert call["raw_output"] == {"text": "own"}, "what the agent says itself wins"


def _said(path):
    return [json.loads(line)["data"]["content"]["text"] for line in path.read_text().splitlines()]


@pytest.mark.parametrize("size", [1, 2, 5, 11, 40])
def test_a_secret_that_comes_in_pieces(tmp_path, size):
    secret = "hunter2-plain-secret"
    text = f"it is {secret}, not hunter2 or hunter2-plain-s; {secret}{secret} hunt"
    log = EventLog(tmp_path / "events.jsonl", Redactor([secret]))
    for at in range(0, len(text), size):
        log.write("agent_message_chunk", {"content": {"type": "text", "text": text[at : at + size]}}, role="a")
    log.close()
    whole = "".join(_said(log.path))
    for begun in ("hun", "hu", "h", ""):  # up to three characters cannot be told from ordinary text
        whole = whole.replace(f"{begun}{MARK}", "*")
    assert whole == "it is *, not hunter2 or hunter2-plain-s; ** hunt"
    assert secret not in log.path.read_text()


def test_secrets_in_codes_keys_and_names(tmp_path):
    secret = 'Tr0ub4dor&3/"x'
    redactor = Redactor([secret])
    raw = secret.encode()
    for coded in (raw.hex(), raw.hex().upper(), json.dumps(json.dumps(secret)), "a%20" + quote_plus(secret)):
        assert MARK in redactor.text(coded)
    for before in (b"", b":", b"ab", b"abc"):
        coded = base64.b64encode(before + raw + b";").decode()
        assert len(redactor.text(coded).replace(MARK, "")) <= 9 and MARK in redactor.text(coded)
    assert redactor.value({secret: [{"k": secret}]}) == {MARK: [{"k": MARK}]}
    name = "key-Tr0ub4dor-3xx"
    (tmp_path / name).mkdir()
    (tmp_path / name / f"{name}.txt").write_text(name)
    (tmp_path / MARK).write_text("")
    assert Redactor([name]).tree(tmp_path) == [tmp_path / name / f"{MARK}.txt"]
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")) == [
        MARK, f"{MARK}-1", f"{MARK}-1/{MARK}.txt",
    ]  # fmt: skip


def test_what_looks_like_a_secret_does_not_break_the_lines(tmp_path):
    redactor = Redactor.from_env({"PIN_TOKEN": "123456", "GIT_AUTHOR_NAME": "oracle", "AUTHORIZATION": "Bearer x"})
    log = EventLog(tmp_path / "events.jsonl", redactor)
    log.write("usage", {"tokens": 123456, "said": "it is 123456 by oracle, Bearer x"})
    log.close()
    data = json.loads(log.path.read_text())["data"]
    assert data == {"tokens": 123456, "said": f"it is {MARK} by oracle, {MARK}"}


def test_what_agents_send_is_kept_in_bounded_space_and_what_was_cut_is_said(tmp_path):
    """300 MB of updates, one of them with a text of 20 MB, and many that are large in small pieces."""
    log = EventLog(tmp_path / "events.jsonl", Redactor(["hidden-value"]))
    half = (256 << 10) // 2
    long = "begin " + "x" * (half - 10) + "hidden-value" + "x" * 20_000_000 + " end"
    log.write("tool_call_update", {"sessionUpdate": "tool_call_update", "toolCallId": "a", "rawOutput": {"out": long}})
    with peak_memory() as peak:
        for number in range(280):
            text = f"{number} " + "y" * 1_000_000
            update = {"sessionUpdate": "tool_call_update", "toolCallId": str(number), "content": [{"text": text}]}
            log.write("tool_call_update", update)
        log.write("tool_call_update", {"sessionUpdate": "tool_call_update", "content": ["z" * 1000] * 5000})
    assert peak.bytes < 20_000_000
    log.write("turn_finished", {"stop_reason": "end_turn"})
    log.close()
    assert (tmp_path / "events.jsonl").stat().st_size < 70_000_000
    rows = read_jsonl(tmp_path / "events.jsonl")
    first, *_, last = rows
    out = first["data"]["rawOutput"]["out"]
    assert (
        "hidden" not in out
        and out.startswith("begin x")
        and out.endswith("x end")
        and "characters left out" in out
        and len(out) < 300_000
    )
    assert last["kind"] == "turn_finished", "what is not the agent's always has room"
    assert "MB of what agents sent are not in events.jsonl" in log.cut


def test_updates_of_ordinary_size_are_kept_whole(tmp_path):
    log = EventLog(tmp_path / "events.jsonl", Redactor([]))
    for _ in range(200):
        log.write("tool_call_update", {"sessionUpdate": "tool_call_update", "content": [{"text": "y" * 100_000}]})
    assert log.cut is None
    log.close()
    assert len(list(read_jsonl(tmp_path / "events.jsonl"))) == 200


def test_an_error_that_is_its_own_cause_is_looked_through_once():
    """As where one error is raised again while another one of it is handled: a loop, not a chain."""
    first, second = OSError(errno.EIO, "broken"), ValueError("of it")
    first.__cause__, second.__cause__ = second, first
    assert out_of_files(first) is None
    second.__context__ = second.__cause__ = OSError(errno.EMFILE, "Too many open files")
    assert "no file descriptor left" in str(out_of_files(first))
