"""Event logs to steps: joined, bounded, and read while they grow."""

from __future__ import annotations

import json
import time

from benchflow_command_view.steps.builder import StepBuilder
from benchflow_command_view.steps.diffs import line_diff
from benchflow_command_view.steps.lines import Lines
from benchflow_command_view.steps.source import StepSource
from benchflow_command_view.steps.spans import Spans
from benchflow_command_view.steps.store import StepStore
from benchflow_command_view.waiting import Waiting

from .conftest import TALK, WHERE, write_events


def steps_of(tmp_path, events) -> StepSource:
    write_events(tmp_path / "events.jsonl", events)
    source = StepSource(tmp_path / "events.jsonl")
    source.refresh()
    return source


def test_a_turn_as_steps(tmp_path):
    source = steps_of(tmp_path, TALK)
    steps = source.page(0)
    assert [step["type"] for step in steps] == ["phase", "prompt", "thought", "tool", "message"]
    assert steps[0]["status"] == "done" and steps[0]["end"] == 3.2
    assert steps[3]["blocks"][1]["lines"] == [[" ", "one"], ["-", "two"], ["+", "three"]]
    assert (steps[3]["at"], steps[3]["end"], steps[3]["scene"], steps[3]["role"]) == (1.0, 2.5, "main", "coder")
    spans = source.outline()["timeline"]["spans"]
    assert [(span[0], span[1], span[2]) for span in spans] == [(0, 0.0, 3.2), (1, 0.1, 3.1), (3, 1.0, 2.5)]


def test_what_is_under_way_is_drawn_up_to_now(tmp_path):
    source = steps_of(tmp_path, TALK[:5])
    assert source.outline()["timeline"]["spans"] == []
    drawn = source.outline(now=(source.builder.started or 0) + 60)["timeline"]
    assert [(span[0], span[1], span[2], span[4]) for span in drawn["spans"]] == [
        (0, 0.0, 60.0, "execute"),
        (1, 0.1, 60.0, "coder"),
        (3, 1.0, 60.0, "ls /app"),
    ]


def test_a_log_that_grows_is_read_on(tmp_path):
    source = steps_of(tmp_path, TALK[:3])
    version = source.store.mark()
    assert source.page(0)[2]["text"] == "I should "
    write_events(tmp_path / "events.jsonl", TALK)
    source.refresh()
    assert source.page(0)[2]["text"] == "I should look first." and len(source.store) == 5
    assert source.store.changed_since(version) == 0, "the phase, too, was open and ended"
    version = source.store.mark()
    source.refresh()
    assert source.store.changed_since(version) is None


def test_half_a_line_waits_for_its_end(tmp_path):
    path = tmp_path / "log"
    lines = Lines(path)
    path.write_bytes(b'{"a": 1}\n{"b"')
    assert list(lines.new()) == [{"a": 1}]
    with path.open("ab") as file:
        file.write(b": 2}\n")
    assert list(lines.new()) == [{"b": 2}]
    path.write_bytes(b'{"anew": 1}\n')
    assert list(lines.new()) == [{"anew": 1}], "a file that was written anew is read from its beginning"


def test_a_reader_in_a_hurry_comes_back(tmp_path):
    events = [{"kind": "notice", "data": {"text": str(n)}} for n in range(1000)]
    write_events(tmp_path / "events.jsonl", events)
    source = StepSource(tmp_path / "events.jsonl")
    source.refresh(seconds=0)
    assert 0 < len(source.store) < 1000 and not source.complete
    while not source.complete:
        source.refresh(seconds=0)
    assert [source.store.get(n)["text"] for n in range(1000)] == [str(n) for n in range(1000)]


def test_long_texts_are_cut_and_the_whole_is_to_be_had(tmp_path):
    event = {"kind": "agent_message_chunk", **WHERE, "data": {"text": "x" * 50_000}}
    source = steps_of(tmp_path, [event])
    [step] = source.page(0)
    assert len(step["text"]) == 4000 and step["cut"] == 46_000
    assert len(source.step(0)["text"]) == 50_000 and "cut" not in source.step(0)


def test_calls_that_never_end_do_not_pile_up(tmp_path):
    store = StepStore()
    builder = StepBuilder(store)
    for n in range(2000):
        builder.feed({"kind": "tool_call", "at": n, "turn": 1, "data": {"toolCallId": str(n), "title": f"t{n}"}})
    assert len(store._open) < 300
    builder.feed(
        {"kind": "tool_call_update", "at": 5000, "turn": 1, "data": {"toolCallId": "3", "status": "completed"}}
    )
    assert (
        store.get(3)["status"] == "completed" and store.get(3)["title"] == "t3" and store.get(4)["status"] == "pending"
    )


def test_a_message_in_many_parts_costs_its_length_once():
    def seconds(n: int) -> float:
        builder = StepBuilder(StepStore())
        began = time.process_time()
        for _ in range(n):
            builder.feed({"kind": "agent_message_chunk", "at": 0, "turn": 1, "data": {"text": "word "}})
        builder.join_text()
        return time.process_time() - began

    few, many = min(seconds(4000) for _ in range(3)), min(seconds(40_000) for _ in range(3))
    assert many < few * 30


def test_the_timeline_is_thinned_to_what_can_be_seen():
    spans = Spans()
    for n in range(50_000):
        spans.add("tool", n, n + 0.5, n, f"command {n}")
    drawn = spans.thinned()
    assert len(drawn["spans"]) < 3000 and sum(span[5] for span in drawn["spans"]) == 50_000 and drawn["end"] == 49_999.5


def test_changes_of_files():
    assert line_diff("a\nb\nc", "a\nB\nc", 100)[0] == [(" ", "a"), ("-", "b"), ("+", "B"), (" ", "c")]
    assert line_diff("", "new\n", 100)[0] == [("+", "new")]
    old = "\n".join(map(str, range(100)))
    lines, lost = line_diff(old, old.replace("\n50\n", "\nfifty\n"), 100)
    assert lines[0] == ("…", "47 lines") and lines[-1] == ("…", "46 lines") and len(lines) == 10 and lost == 0
    began = time.process_time()
    lines, lost = line_diff("\n".join(f"a{n}" for n in range(50_000)), "\n".join(f"b{n}" for n in range(50_000)), 50)
    assert len(lines) == 50 and lost > 0 and time.process_time() - began < 5


def test_who_waits_on_what(tmp_path):
    log = tmp_path / "events.jsonl"
    asked = {**TALK[4], "kind": "question_open", "data": {"about": "permission", "what": "rm -r /app"}}
    soft = [*TALK[:2], {"kind": "soft_verify_started", "data": {}}]
    for events, on, what in [
        ([], "agent", "its turn"),
        ([{"kind": "phase_started", "data": {"phase": "start"}}], "sandbox", "the sandbox is starting"),
        (TALK[:2], "model", "an answer"),
        (TALK[:3], "model", "it is writing"),
        (TALK[:5], "tool", "ls /app"),
        ([*TALK[:5], asked], "user", "permission: rm -r /app"),
        ([*TALK[:5], asked, {**asked, "kind": "permission_request"}], "tool", "ls /app"),
        (TALK[:6], "model", "an answer"),
        ([*TALK, {"kind": "phase_started", "data": {"phase": "verify"}}], "verifier", "the verifier"),
        (soft, "verifier", "verification for the agent"),
    ]:
        write_events(log, events)
        state = Waiting(log).look()
        assert (state["on"], state["what"]) == (on, what), events
    other = {"role": "reviewer", "turn": 2, "session": "r"}
    both = [*TALK[:5], {"kind": "turn_started", "at": 1.2, **other, "data": {"prompt": "review"}}]
    write_events(log, both)
    state = Waiting(log).look()
    assert (state["who"], state["on"]) == ("reviewer", "model")
    assert [(one["who"], one["on"], one["what"]) for one in state["also"]] == [("coder", "tool", "ls /app")]
    late = {"kind": "agent_message_chunk", "at": 1.6, **other, "data": {"content": {"type": "text", "text": "late"}}}
    write_events(log, [*both, {"kind": "turn_finished", "at": 1.5, **other, "data": {}}, late])
    state = Waiting(log).look()
    assert (state["who"], state["what"]) == ("coder", "ls /app") and "also" not in state, "only the one that works on"
    write_events(log, [{"kind": "agent_message_chunk", "turn": ["no", "number"], "data": {}}])
    assert Waiting(log).look()["on"] == "model"
    log.write_text(json.dumps([1]) + "\n" + json.dumps({"kind": "tool_call", "data": 3}) + "\nnot json\n")
    assert Waiting(log).look()["on"] == "agent"


def test_what_a_terminal_printed_is_the_output_of_its_call(tmp_path):
    """As the ACP adapter of pi sends it: beside the call, piece by piece."""
    call = {"toolCallId": "t", "title": "ls", "kind": "execute", "status": "pending"}
    updates = [
        {**call, "content": [{"type": "terminal", "terminalId": "t"}]},
        {"toolCallId": "t", "_meta": {"terminal_output": {"terminal_id": "t", "data": "one\n"}}},
        {"toolCallId": "t", "_meta": {"terminal_output": {"terminal_id": "t", "data": "two\n"}}},
        {"toolCallId": "t", "status": "completed", "_meta": {"terminal_exit": {"exit_code": 3, "signal": None}}},
    ]
    [step] = steps_of(tmp_path, [{"kind": "tool_call_update", **WHERE, "data": data} for data in updates]).page(0)
    assert step["blocks"] == [{"is": "text", "text": "one\ntwo\n"}] and step["exit"] == 3 and "terminal" not in step


def test_a_raw_output_is_shown_as_what_was_printed_and_only_once(tmp_path):
    output = {"exit_code": 1, "stdout": "found\n", "stderr": "careful\n"}
    call = {"toolCallId": "t", "title": "grep", "kind": "execute", "status": "failed", "rawOutput": output}
    said = {**call, "toolCallId": "u", "content": [{"type": "content", "content": {"type": "text", "text": "found\n"}}]}
    other = {**call, "toolCallId": "v", "rawOutput": {"exit_code": 0, "anything": [1]}}
    events = [{"kind": "tool_call", **WHERE, "data": data} for data in (call, said, other)]
    first, second, third = steps_of(tmp_path, events).page(0)
    assert (first["printed"], first["exit"]) == ("found\ncareful", 1) and json.loads(first["output"]) == output
    assert second["printed"] == "careful" and "printed" not in third


def test_a_permission_and_a_question_keep_their_words(tmp_path):
    options = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}, {"optionId": "no", "name": "Reject"}]
    ask = {"toolCall": {"toolCallId": "t", "title": "rm"}, "options": options}
    ask |= {"outcome": {"outcome": "selected", "optionId": "yes"}}
    question = {"message": "Which colour?", "response": {"action": "decline"}}
    events = [{"kind": "permission_request", **WHERE, "data": ask}, {"kind": "elicitation_request", "data": question}]
    call, asked = steps_of(tmp_path, events).page(0)
    assert (call["permission"]["name"], call["permission"]["kind"]) == ("Allow", "allow_once")
    assert (asked["type"], asked["text"], asked["answer"]) == ("question", "Which colour?", "decline")
