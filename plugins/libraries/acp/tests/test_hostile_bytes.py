"""What an agent may print, by mistake or on purpose: nothing of it hangs, grows or gets through."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import tracemalloc
from typing import Any

import pytest
from benchflow_acp.lines import LineBuffer, LineTooLong, MalformedLine, decode, encode, salvage
from hypothesis import given
from hypothesis import strategies as st

from benchflow_core.errors import AgentError, AgentProtocolError

_leaf = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_json = st.recursive(_leaf, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)

END = 'answer({"stopReason": "end_turn"})'

NOISE = {
    "text": b"Welcome!\nLoading plugins...\n",
    "binary": bytes(range(256)) * 40 + b"\n",
    "unfinished line": b"root@box:/app# ",
    "escape codes": b"\x1b[?2004h\x1b[1;32m>\x1b[0m ",
    "byte order mark": b"\xef\xbb\xbf",
    "braces": b"{not json} {\n{{{ ",
    "json that is no message": b'{"level": "info", "msg": "hi"}\n{"jsonrpc": "2.0"}\n[]\n{}\n',
    "blank lines": b"\n\r\n \n\0\n",
    "a megabyte without end": b"x" * 1_000_000,
}


@pytest.mark.parametrize("noise", NOISE)
async def test_noise_before_the_first_message(bench: Any, noise: str) -> None:
    session = await bench.raw(f"update()\n{END}", before=f"raw({NOISE[noise]!r})")
    assert (await session.prompt("go")).stop_reason == "end_turn"
    assert bench.text() == "hi"


async def test_a_terminal_that_echoes(bench: Any) -> None:
    """Our own lines come back, from a real pseudo-terminal with echo on."""
    agent = bench.raw_argv(
        f"""
        send({{"jsonrpc": "2.0", "id": 7, "method": "session/request_permission",
              "params": {{"sessionId": "s1", "toolCall": {{"toolCallId": "t"}},
                         "options": [{{"optionId": "y", "name": "Y", "kind": "allow_once"}}]}}}})
        while "result" not in (reply := receive()): pass
        assert reply["id"] == 7
        {END}
        """
    )
    under_terminal = f"import pty, sys; sys.exit(pty.spawn({list(agent)!r}))"
    session = await bench.open(sys.executable, "-c", under_terminal)
    assert (await session.prompt("go")).stop_reason == "end_turn"
    assert bench.kinds() == ["session_started", "permission_request"]


BAD_LINES = [
    "123",
    "null",
    '"text"',
    "true",
    "[]",
    "[1, null, [2]]",
    "{}",
    "[" * 100_000,
    '{"a":' * 5000 + "1" + "}" * 5000,
    '{"jsonrpc": "2.0", "id": [1], "method": "session/request_permission", "params": {}}',
    '{"jsonrpc": "2.0", "id": {"a": 1}, "result": {}}',
    '{"jsonrpc": "2.0", "id": true, "result": {}}',
    '{"jsonrpc": "2.0", "id": 4711, "result": {"stopReason": "end_turn"}}',
    '{"jsonrpc": "2.0", "id": 4711, "error": "text"}',
    '{"jsonrpc": "2.0", "id": null, "result": {}}',
    '{"jsonrpc": "2.0", "method": 5}',
    '{"jsonrpc": "2.0", "method": "session/update", "params": [1, 2]}',
    '{"jsonrpc": "2.0", "method": "session/update", "params": {"update": "text"}}',
    '{"jsonrpc": "2.0", "method": "session/update"}',
    '{"jsonrpc": "2.0", "method": "session/prompt", "id": 1, "params": {}}',
    "9" * 10_000,
]


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: line[:40])
async def test_lines_that_are_no_messages(bench: Any, line: str) -> None:
    session = await bench.raw(f"raw({line!r} + chr(10)); update(); {END}")
    assert (await session.prompt("go")).stop_reason == "end_turn"
    assert bench.text() == "hi"


async def test_a_batch_is_taken_apart(bench: Any) -> None:
    session = await bench.raw(
        """
        note = {"jsonrpc": "2.0", "method": "session/update", "params": {"update": {"sessionUpdate": "x"}}}
        send([note, 5, note, {"jsonrpc": "2.0", "id": request["id"], "result": {"stopReason": "refusal"}}])
        """
    )
    assert (await session.prompt("go")).stop_reason == "refusal"
    assert bench.kinds().count("x") == 2


async def test_invalid_utf8_does_not_lose_the_message(bench: Any) -> None:
    line = b'{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"x","t":"a\xff\xfeb"}}}\n'
    session = await bench.raw(f"raw({line!r}); {END}")
    await session.prompt("go")
    assert bench.of("x")[0]["t"] == "a\ufffd\ufffdb"


async def test_what_is_recorded_can_be_written_again(bench: Any) -> None:
    values = r'"lone": "\ud800 and \udc00x", "pair": "\ud83d\ude00", "n": NaN, "i": -Infinity, "big": 1e999, "f": 1.5'
    line = f'{{"jsonrpc":"2.0","method":"session/update","params":{{"update":{{"sessionUpdate":"x",{values}}}}}}}'
    session = await bench.raw(f"raw({line!r} + chr(10)); {END}")
    await session.prompt("go")
    data = bench.of("x")[0]
    assert json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8")
    assert (data["pair"], data["n"], data["i"], data["big"], data["f"]) == ("😀", None, None, None, 1.5)


async def test_meta_never_becomes_an_argument(bench: Any) -> None:
    meta = '{"session_id": "evil", "update": {}, "options": [], "outcome": {"outcome": "selected"}, "self": 1}'
    session = await bench.raw(
        f"""
        send({{"jsonrpc": "2.0", "method": "session/update",
              "params": {{"sessionId": "s1", "_meta": {meta}, "update": {{"sessionUpdate": "x", "_meta": {meta}}}}}}})
        send({{"jsonrpc": "2.0", "id": "p", "method": "session/request_permission",
              "params": {{"sessionId": "s1", "_meta": {meta}, "outcome": "mine", "toolCall": {{}},
                         "options": [{{"optionId": "n", "name": "N", "kind": "reject_once"}}]}}}})
        assert receive()["result"] == {{"outcome": {{"outcome": "cancelled"}}}}
        {END}
        """
    )
    assert (await session.prompt("go")).stop_reason == "end_turn"
    assert bench.of("x")[0]["_meta"]["session_id"] == "evil"
    assert bench.of("x")[0]["_notification"] == {"_meta": json.loads(meta)}
    assert bench.of("permission_request")[0]["outcome"] == {"outcome": "cancelled"}


async def test_every_kind_of_update_is_kept_and_none_passes_for_ours(bench: Any) -> None:
    session = await bench.raw(
        f"""
        update("brand_new", anything=[1, {{"a": None}}])
        update("permission_request", outcome="selected")
        update("k" * 1000, long=True)
        update(5, odd=True)
        send({{"jsonrpc": "2.0", "method": "_auth/status_update", "params": {{"a": 1}}}})
        send({{"jsonrpc": "2.0", "method": "session/update",
              "params": {{"sessionId": "child", "update": {{"sessionUpdate": "y"}}}}}})
        send({{"jsonrpc": "2.0", "method": "session/update", "id": 9,
              "params": {{"update": {{"sessionUpdate": "asked"}}}}}})
        assert receive()["result"] == {{}}
        {END}
        """
    )
    await session.prompt("go")
    assert bench.of("brand_new") == [{"sessionUpdate": "brand_new", "anything": [1, {"a": None}]}]
    assert bench.kinds()[1:] == ["brand_new", *["unknown_update"] * 3, "notification", "y", "asked"]
    assert bench.of("notification") == [{"method": "_auth/status_update", "params": {"a": 1}}]
    assert bench.of("y")[0]["_notification"] == {"sessionId": "child"}


async def test_an_update_passes_for_no_line_of_the_rollout(bench: Any) -> None:
    """Verifiers read what a driver paid from the event log, and an agent writes its updates into the same file."""
    kinds = ["reward", "turn_started", "phase_finished", "rollout_finished", "verifier_isolation", "error"]
    sent = "\n        ".join(f"update({kind!r}, value=1.0, source='driver')" for kind in kinds)
    session = await bench.raw(f"\n        {sent}\n        {END}\n        ")
    await session.prompt("go")
    assert bench.kinds()[1:] == ["unknown_update"] * len(kinds)


async def test_unknown_requests_are_answered_and_recorded(bench: Any) -> None:
    session = await bench.raw(
        f"""
        send({{"jsonrpc": "2.0", "id": "a", "method": "mcp/connect", "params": {{"x": 1}}}})
        assert receive()["error"]["code"] == -32601
        {END}
        """
    )
    assert (await session.prompt("go")).stop_reason == "end_turn"
    assert bench.of("client_request")[0]["method"] == "mcp/connect"


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ('{"stopReason": "out_of_coffee"}', "out_of_coffee"),
        ("{}", "unknown"),
        ("None", "unknown"),
        ('"done"', "unknown"),
        ('{"stopReason": ["end_turn"]}', "unknown"),
        ('{"stopReason": "x" * 1000}', "unknown"),
    ],
)
async def test_stop_reasons_that_do_not_exist(bench: Any, result: str, reason: str) -> None:
    session = await bench.raw(f"answer({result})")
    assert (await session.prompt("go")).stop_reason == reason


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ('"text"', None, "text"),
        ("[1]", None, "[1]"),
        ('{"code": -32603, "message": "boom", "data": {"d": 1}}', -32603, "boom"),
        ('{"code": "x"}', None, "{'code': 'x'}"),
        ("5", None, "5"),
    ],
)
async def test_an_error_of_any_shape_ends_the_turn(bench: Any, error: str, code: Any, message: str) -> None:
    session = await bench.raw(f'send({{"jsonrpc": "2.0", "id": request["id"], "error": {error}}})')
    with pytest.raises(AgentProtocolError) as refused:
        await session.prompt("go")
    assert (refused.value.details["code"], refused.value.details["message"]) == (code, message)
    assert refused.value.details["method"] == "session/prompt"


async def test_an_error_of_null_is_none(bench: Any) -> None:
    body = 'send({"jsonrpc": "2.0", "id": request["id"], "error": None, "result": {"stopReason": "end_turn"}})'
    assert (await (await bench.raw(body)).prompt("go")).stop_reason == "end_turn"


async def test_a_second_answer_does_not_count(bench: Any) -> None:
    session = await bench.raw('answer({"stopReason": "refusal"}); answer({"stopReason": "end_turn"})')
    assert (await session.prompt("one")).stop_reason == "refusal"
    assert (await session.prompt("two")).stop_reason == "refusal"


async def test_a_line_of_15_mb(bench: Any) -> None:
    session = await bench.raw(f'update("x", t="a" * 15_000_000); {END}')
    assert (await session.prompt("go")).stop_reason == "end_turn"
    assert len(bench.of("x")[0]["t"]) == 15_000_000


async def test_a_line_over_the_limit_is_refused_without_being_held(bench: Any) -> None:
    session = await bench.raw('raw(b"x" * 50_000_000); time.sleep(60)', max_line_bytes=1_000_000)
    tracemalloc.start()
    with pytest.raises(AgentProtocolError, match="more than 1000000 bytes"):
        await session.prompt("go")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000
    with pytest.raises(AgentProtocolError):
        await session.prompt("again")


async def test_endless_noise_costs_no_memory(bench: Any) -> None:
    log = bench.root / "log" / "stderr.txt"
    session = await bench.raw(
        f"""
        for _ in range(300):
            raw(b"noise " * 10_000 + b"\\n")
            sys.stderr.write("e" * 100_000)
        {END}
        """,
        stderr_log=log,
    )
    tracemalloc.start()
    assert (await session.prompt("go")).stop_reason == "end_turn"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000
    await session.close()
    assert 1_000_000 < log.stat().st_size < 2_000_000
    assert b"bytes left out" in log.read_bytes()


async def test_a_flood_costs_no_memory(bench: Any) -> None:
    count = 0

    def record(event: Any) -> None:
        nonlocal count
        count += event.kind == "tool_call"

    session = await bench.raw(
        """
        for n in range(30_000): update("tool_call", toolCallId=f"call-{n}", title="x", rawInput={"n": n})
        answer({"stopReason": "end_turn"})
        """,
        emit=record,
    )
    tracemalloc.start()
    assert (await session.prompt("go")).stop_reason == "end_turn"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 30_000 and peak < 2_000_000


async def test_an_agent_that_asks_and_never_reads(bench: Any, within: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchflow_acp.connection._MAX_UNSENT", 500_000)
    session = await bench.raw(
        """
        note = {"jsonrpc": "2.0", "id": "x" * 1000, "method": "nothing/known", "params": {}}
        while True: send(note)
        """,
        emit=lambda event: None,
    )
    with pytest.raises(AgentProtocolError, match="does not read"):
        await within(30, session.prompt("go"))
    await within(10, session.close())


async def test_too_many_questions_at_once(bench: Any) -> None:
    async def never(request: Any) -> str:
        await asyncio.sleep(60)
        return ""

    session = await bench.raw(
        f"""
        for n in range(400):
            send({{"jsonrpc": "2.0", "id": n, "method": "session/request_permission", "params": {{"options": []}}}})
        assert receive()["error"]["code"] == -32603
        {END}
        """,
        on_permission=never,
    )
    assert (await session.prompt("go")).stop_reason == "end_turn"
    await session.close()


async def test_a_slow_consumer_slows_the_agent_down(bench: Any) -> None:
    """While one event is being handled, the agent gets no further than the pipe."""
    progress = bench.root / "progress"
    seen: list[int] = []

    def slow(event: Any) -> None:
        if event.kind == "tick" and not seen:
            time.sleep(1.0)
            seen.append(int(progress.read_text()))

    session = await bench.raw(
        f"""
        for n in range(5000):
            with open({str(progress)!r}, "w") as file: file.write(str(n))
            update("tick", t="x" * 1000)
        {END}
        """,
        emit=slow,
    )
    assert (await session.prompt("go")).stop_reason == "end_turn"
    assert 0 < seen[0] < 1000


async def test_a_recorder_that_fails_is_the_error(bench: Any) -> None:
    def full(event: Any) -> None:
        if event.kind == "agent_message_chunk":
            raise OSError(28, "No space left on device")

    session = await bench.raw(f"update(); {END}", emit=full)
    with pytest.raises(OSError, match="No space left"):
        await session.prompt("go")


async def test_a_closed_session_says_so(bench: Any) -> None:
    session = await bench.raw(END)
    await session.close()
    await session.close()
    with pytest.raises(AgentError, match="closed"):
        await session.prompt("go")


def test_lines_are_split_wherever_chunks_end() -> None:
    data = b"one\ntwo\r\n\nthree"
    for size in range(1, len(data) + 1):
        buffer = LineBuffer(100)
        chunks = [data[i : i + size] for i in range(0, len(data), size)]
        found = [bytes(line) for chunk in chunks for line in buffer.feed(chunk)]
        assert [*found, *(bytes(line) for line in buffer.flush())] == [b"one", b"two\r", b"", b"three"]


@given(
    st.one_of(
        st.binary(max_size=300), st.text(max_size=100).map(str.encode), _json.map(lambda v: json.dumps(v).encode())
    )
)
def test_any_line_is_a_value_that_can_be_written_or_malformed(line: bytes) -> None:
    try:
        value = decode(line)
    except MalformedLine:
        return
    written = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    assert decode(written) == value


@given(st.lists(st.binary(max_size=40), max_size=10))
def test_lines_do_not_depend_on_chunks(chunks: list[bytes]) -> None:
    buffer = LineBuffer(1000)
    found = [bytes(line) for chunk in chunks for line in buffer.feed(chunk)] + [bytes(line) for line in buffer.flush()]
    whole = b"".join(chunks)
    assert b"\n".join(found) == (whole.removesuffix(b"\n"))


def test_the_limit_is_exact() -> None:
    assert [bytes(line) for line in LineBuffer(3).feed(b"abc\nabc\n")] == [b"abc", b"abc"]
    for chunks in ([b"abcd"], [b"ab", b"cd"], [b"a\nabcd\n"]):
        with pytest.raises(LineTooLong):
            buffer = LineBuffer(3)
            for chunk in chunks:
                list(buffer.feed(chunk))


def test_depth_is_limited_but_breadth_is_not() -> None:
    assert len(decode(b"[" + b"[1]," * 9999 + b"[1]]")) == 10_000
    assert decode(b"[" * 150 + b"]" * 150) is not None
    with pytest.raises(MalformedLine):
        decode(b"[" * 300 + b"]" * 300)


def test_salvage_takes_the_first_whole_object() -> None:
    assert salvage(b'$ {"a": 1}') == {"a": 1}
    assert salvage(b"{{{{{{{{{{{{") is None
    assert salvage(b"nothing") is None


def test_what_we_send_is_one_ascii_line() -> None:
    line = encode({"text": "a\nb\u2028ü\ud800"})
    assert line.count(b"\n") == 1 and line.isascii()
