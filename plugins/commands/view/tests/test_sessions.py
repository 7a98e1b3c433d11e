"""Session files of agents: lines as the programs write them, and what becomes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchflow_command_view.steps.source import StepSource

CLAUDE = [
    {"type": "summary", "summary": "Fix the bug", "leafUuid": "u9"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    {
        "type": "user",
        "uuid": "u1",
        "sessionId": "s",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "cwd": "/app",
        "version": "2.0.1",
        "message": {"role": "user", "content": "Fix it"},
    },
    {
        "type": "assistant",
        "uuid": "u2",
        "sessionId": "s",
        "timestamp": "2026-01-01T00:00:01.000Z",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "model": "claude-x",
            "content": [{"type": "thinking", "thinking": "Where is it?", "signature": "x"}],
            "usage": {"input_tokens": 10, "output_tokens": 5},
        },
    },
    {
        "type": "assistant",
        "uuid": "u3",
        "sessionId": "s",
        "timestamp": "2026-01-01T00:00:02.000Z",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "content": [
                {
                    "type": "tool_use",
                    "id": "toolu_1",
                    "name": "Edit",
                    "input": {"file_path": "/app/a.py", "old_string": "a = 1", "new_string": "a = 2"},
                }
            ],
        },
    },
    {
        "type": "user",
        "uuid": "u4",
        "sessionId": "s",
        "timestamp": "2026-01-01T00:00:05.000Z",
        "message": {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "edited"}]}
            ],
        },
        "toolUseResult": {},
    },
    {
        "type": "assistant",
        "uuid": "u5",
        "sessionId": "s",
        "timestamp": "2026-01-01T00:00:06.000Z",
        "isSidechain": True,
        "message": {"role": "assistant", "content": [{"type": "text", "text": "Fixed."}]},
    },
    {"type": "brand-new-thing", "uuid": "u6", "sessionId": "s"},
]
CODEX = [
    {
        "timestamp": "2026-01-01T00:00:00Z",
        "type": "session_meta",
        "payload": {"id": "x", "cwd": "/app", "cli_version": "0.50", "instructions": "long"},
    },
    {
        "timestamp": "2026-01-01T00:00:00Z",
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "<environment_context>\n  <cwd>/app</cwd>"}],
        },
    },
    {
        "timestamp": "2026-01-01T00:00:01Z",
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]},
    },
    {
        "timestamp": "2026-01-01T00:00:01Z",
        "type": "event_msg",
        "payload": {"type": "user_message", "message": "Fix it"},
    },
    {
        "timestamp": "2026-01-01T00:00:02Z",
        "type": "response_item",
        "payload": {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "Where is it?"}],
            "encrypted_content": "gAAA",
        },
    },
    {
        "timestamp": "2026-01-01T00:00:03Z",
        "type": "response_item",
        "payload": {
            "type": "function_call",
            "name": "shell",
            "arguments": '{"command": ["bash", "-lc", "ls"]}',
            "call_id": "c1",
        },
    },
    {
        "timestamp": "2026-01-01T00:00:05Z",
        "type": "response_item",
        "payload": {
            "type": "function_call_output",
            "call_id": "c1",
            "output": '{"output": "a.py\\n", "metadata": {"exit_code": 1}}',
        },
    },
    {
        "timestamp": "2026-01-01T00:00:06Z",
        "type": "response_item",
        "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Fixed."}]},
    },
    {
        "timestamp": "2026-01-01T00:00:06Z",
        "type": "event_msg",
        "payload": {"type": "token_count", "info": {"last_token_usage": {"input_tokens": 9}}},
    },
    {"timestamp": "2026-01-01T00:00:07Z", "type": "event_msg", "payload": {"type": "brand_new"}},
]
CODEX_OLD = [
    {"id": "x", "timestamp": "2025-05-01T00:00:00Z", "instructions": None},
    {"record_type": "state"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]},
    {"type": "local_shell_call", "call_id": "c1", "status": "completed", "action": {"type": "exec", "command": ["ls"]}},
    {"type": "function_call_output", "call_id": "c1", "output": {"content": "a.py", "success": True}},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Fixed."}]},
]
CODEX_EXEC = [
    {"type": "thread.started", "thread_id": "t"},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "i0", "type": "reasoning", "text": "Where is it?"}},
    {
        "type": "item.started",
        "item": {
            "id": "i1",
            "type": "command_execution",
            "command": "bash -lc ls",
            "aggregated_output": "",
            "status": "in_progress",
        },
    },
    {
        "type": "item.completed",
        "item": {
            "id": "i1",
            "type": "command_execution",
            "command": "bash -lc ls",
            "aggregated_output": "a.py\n",
            "exit_code": 0,
            "status": "completed",
        },
    },
    {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "Fixed."}},
    {"type": "turn.completed", "usage": {"input_tokens": 5, "output_tokens": 6}},
]
ACP = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
    {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1, "agentCapabilities": {}}},
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "session/prompt",
        "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "Fix it"}]},
    },
    {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "s", "update": {"sessionUpdate": "available_commands_update", "availableCommands": []}},
    },
    {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {
            "sessionId": "s",
            "update": {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "Where "}},
        },
    },
    {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {
            "sessionId": "s",
            "update": {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "is it?"}},
        },
    },
    {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {
            "sessionId": "s",
            "update": {
                "sessionUpdate": "tool_call",
                "toolCallId": "c1",
                "title": "ls",
                "kind": "execute",
                "status": "pending",
            },
        },
    },
    {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "session/request_permission",
        "params": {"sessionId": "s", "toolCall": {"toolCallId": "c1"}, "options": []},
    },
    {"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}},
    {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {
            "sessionId": "s",
            "update": {
                "sessionUpdate": "tool_call_update",
                "toolCallId": "c1",
                "status": "completed",
                "rawOutput": "a.py",
            },
        },
    },
    {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {
            "sessionId": "s",
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Fixed."}},
        },
    },
    {"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}},
]
OURS = [
    {"type": "user_message", "text": "Fix it", "time": "2026-01-01T00:00:00Z", "turn": 1},
    {"type": "agent_thought", "text": "Where is it?", "time": "2026-01-01T00:00:01Z", "turn": 1},
    {
        "type": "tool_call",
        "tool_call_id": "c1",
        "kind": "execute",
        "title": "ls",
        "status": "completed",
        "content": [],
        "raw_output": "a.py",
        "time": "2026-01-01T00:00:01Z",
        "finished": "2026-01-01T00:00:04Z",
        "turn": 1,
    },
    {"type": "agent_message", "text": "Fixed.", "time": "2026-01-01T00:00:05Z", "turn": 1},
]
FILES = {
    "claude": (CLAUDE, "Claude Code session"),
    "codex": (CODEX, "Codex session"),
    "codex-old": (CODEX_OLD, "Codex session (older)"),
    "codex-exec": (CODEX_EXEC, "Codex exec --json"),
    "acp": (ACP, "ACP messages"),
    "acp-wrapped": (
        [{"ts": 1767225600 + n, "dir": "in", "message": line} for n, line in enumerate(ACP)],
        "ACP messages",
    ),
    "acp-updates": ([line["params"] for line in ACP if line.get("method") == "session/update"], "ACP session updates"),
    "trajectory": (OURS, "ACP trajectory"),
}


def read(tmp_path, lines) -> StepSource:
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))  # the last line has no end
    source = StepSource(path)
    source.refresh()
    return source


@pytest.mark.parametrize("name", FILES)
def test_a_session_reads_as_a_conversation(tmp_path, name):
    lines, form = FILES[name]
    source = read(tmp_path, lines)
    assert source.format == form
    steps = source.page(0)
    said = {kind: [s.get("text") for s in steps if s["type"] == kind] for kind in ("prompt", "thought", "message")}
    if name not in ("codex-exec", "acp-updates"):
        assert said["prompt"] == ["Fix it"]
    if name != "codex-old":
        assert said["thought"] == ["Where is it?"]
    assert said["message"] == ["Fixed."]
    [tool] = [step for step in steps if step["type"] == "tool"]
    assert tool["status"] in ("completed", "failed")
    assert "a.py" in json.dumps(tool)
    assert bool(source.not_understood) == (name in ("claude", "codex"))


RECORDED = Path(__file__).parent / "data"
"""Written by Claude Code 2.1 and Codex themselves, in a box, with a model on loopback; long texts are cut."""


@pytest.mark.parametrize(("name", "tool"), [("claude", "Write: /app/made.txt"), ("codex", "exec_command: printf")])
def test_what_the_programs_wrote_is_understood_whole(name, tool):
    source = StepSource(RECORDED / f"{name}-session.jsonl")
    source.refresh()
    assert source.format == f"{'Claude Code' if name == 'claude' else 'Codex'} session" and not source.not_understood
    steps = source.page(0)
    texts = [step["text"] for step in steps if step["type"] in ("prompt", "message")]
    assert texts == [
        "[[fake:write-hello path=/app/made.txt]]",
        "I will write the file.",
        "Done: the file is written.",
        '[[fake:say text="a second answer"]]',
        "a second answer",
    ]
    [call] = [step for step in steps if step["type"] == "tool"]
    assert call["title"].startswith(tool) and call["status"] == "completed" and call["end"] > call["at"]
    assert "Chunk ID" not in (call.get("output") or "")


def test_a_command_that_failed_in_codex(tmp_path):
    text = "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 2\nOriginal token count: 3\nOutput:\nno such file\n"
    lines = [{**line, "payload": {**line["payload"]}} for line in CODEX]
    for line in lines:
        if line["payload"].get("type") == "function_call_output":
            line["payload"]["output"] = text
    [call] = [step for step in read(tmp_path, lines).page(0) if step["type"] == "tool"]
    assert (call["status"], call["output"]) == ("failed", "no such file\n")


def test_claude_code_in_detail(tmp_path):
    source = read(tmp_path, CLAUDE)
    steps = source.page(0)
    [edit] = [step for step in steps if step["type"] == "tool"]
    assert (edit["kind"], edit["title"], edit["output"]) == ("edit", "Edit: /app/a.py", "edited")
    assert edit["end"] - edit["at"] == pytest.approx(3.0)
    assert edit["blocks"][0]["lines"] == [["-", "a = 1"], ["+", "a = 2"]]
    assert [s["role"] for s in steps if s["type"] == "message"] == ["subagent"]
    assert dict(source.not_understood) == {"a line of type 'brand-new-thing'": 1}, "what is not understood is said"


def test_codex_in_detail(tmp_path):
    source = read(tmp_path, CODEX)
    [call] = [step for step in source.page(0) if step["type"] == "tool"]
    assert (call["title"], call["status"], call["output"]) == ("shell: bash -lc ls", "failed", "a.py\n")
    assert dict(source.not_understood) == {"an event of type 'brand_new'": 1}


def test_a_permission_belongs_to_its_call(tmp_path):
    [call] = [step for step in read(tmp_path, ACP).page(0) if step["type"] == "tool"]
    assert call["permission"] == {"outcome": "selected", "optionId": "yes"}


def test_our_own_trajectory_may_begin_with_a_note(tmp_path):
    call = {"type": "tool_call", "tool_call_id": "t", "title": "ls", "status": "completed", "content": []}
    lines = [{"type": "notice", "text": "an image was substituted"}, {"type": "user_message", "text": "go"}]
    source = read(tmp_path, [*lines, {**call, "raw_output": {"stdout": "a.txt\n"}}])
    assert source.format == "ACP trajectory" and not source.not_understood
    assert [step["type"] for step in source.page(0)] == ["notice", "prompt", "tool"]
    assert source.page(0)[2]["printed"] == "a.txt" and source.outline()["turns"][0]["says"] == "go"


def test_a_file_of_another_kind_is_shown_and_said_to_be_unknown(tmp_path):
    source = read(tmp_path, [{"type": "whatever", "x": 1}, {"hello": "world"}])
    assert source.format == "unknown" and sum(source.not_understood.values()) == 2
    assert "world" in json.dumps(source.page(0))


@pytest.mark.parametrize("name", FILES)
def test_broken_lines_cost_nothing_but_themselves(tmp_path, name):
    """Every field of every line once replaced by something of the wrong kind."""
    lines, _ = FILES[name]
    for wrong in (None, 5, [None], {"type": []}):
        for number, line in enumerate(lines):
            for key in line:
                broken = [*lines[:number], {**line, key: wrong}, *lines[number + 1 :]]
                source = read(tmp_path, broken)
                assert source.page(0) is not None and source.outline()
