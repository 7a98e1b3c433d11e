"""What a good agent does: turns, tools, permissions, usage, settings. The agent is the scripted one, a real program."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from benchflow_core.contracts import AgentSpec, Launch, McpServer
from benchflow_core.errors import (
    AgentProtocolError,
    AgentTimeout,
    CapabilityMissing,
    ConfigurationError,
)


def spec(**fields: Any) -> AgentSpec:
    return AgentSpec(summary="test", prepare=lambda c: Launch(argv=()), **fields)


async def test_a_turn_with_everything_in_it(bench: Any) -> None:
    session = await bench.scripted("""
        - think: "Let me see."
        - plan: ["look", {content: "write", status: in_progress}]
        - run: "echo out; echo err >&2; echo 42 > answer.txt"
        - say: "The answer is {{last}}"
          chunk: 5
        - usage: {input: 100, output: 20, cache_read: 7, cost: 0.25}
    """)
    outcome = await session.prompt("What is the answer?")
    assert outcome.stop_reason == "end_turn"
    assert (bench.root / "answer.txt").read_text() == "42\n"
    assert bench.text() == "The answer is out\nerr\n"
    assert len(bench.of("agent_message_chunk")) > 3
    assert bench.text("agent_thought_chunk") == "Let me see."
    assert [e["content"] for e in bench.of("plan")[0]["entries"]] == ["look", "write"]
    (call,) = bench.of("tool_call")
    assert call["rawInput"] == {"command": "echo out; echo err >&2; echo 42 > answer.txt", "cwd": str(bench.root)}
    assert [u["status"] for u in bench.of("tool_call_update")] == ["in_progress", "completed"]
    assert bench.of("tool_call_update")[-1]["rawOutput"] == {"exit_code": 0, "stdout": "out\n", "stderr": "err\n"}
    usage = outcome.usage
    assert usage and (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (100, 20, 7)
    assert usage.cost_usd == 0.25 and usage.source == "agent_native_acp"


async def test_costs_are_per_turn_although_agents_report_the_sum(bench: Any) -> None:
    session = await bench.scripted("""
        turns:
          - [{usage: {cost: 1.0}}]
          - [{usage: {cost: 1.5}}]
          - [{say: nothing}]
    """)
    costs = [(await session.prompt("go")).usage for _ in range(3)]
    assert [u and u.cost_usd for u in costs] == [1.0, 0.5, 0.0]


async def test_usage_from_quota_where_the_response_has_none(bench: Any) -> None:
    quota = '{"quota": {"token_count": {"input_tokens": 9, "output_tokens": 2}}}'
    session = await bench.raw(f'answer({{"stopReason": "end_turn", "_meta": {quota}}})')
    usage = (await session.prompt("go")).usage
    assert usage and (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (9, 2, None)


@pytest.mark.parametrize(
    "usage",
    [
        '"x"',
        "[]",
        '{"inputTokens": "many"}',
        '{"inputTokens": -1, "outputTokens": True}',
        "None",
        '{"outputTokens": 1e999}',
    ],
)
async def test_nonsense_usage_is_unknown_usage(bench: Any, usage: str) -> None:
    session = await bench.raw(f'answer({{"stopReason": "end_turn", "usage": {usage}}})')
    assert (await session.prompt("go")).usage is None


async def test_turns_in_order_and_by_pattern(bench: Any) -> None:
    session = await bench.scripted("""
        turns:
          - [{say: one}]
          - {match: "(?i)status", steps: [{say: "fine "}]}
          - [{say: two}]
        otherwise: [{say: "{{prompt}}!"}]
    """)
    for prompt in ("a", "What status?", "b", "STATUS", "c"):
        await session.prompt(prompt)
    assert bench.text() == "onefine twofine c!"


@pytest.mark.parametrize(("policy", "ran"), [("allow", True), ("reject", False)])
async def test_permission_by_policy(bench: Any, policy: Any, ran: bool) -> None:
    session = await bench.scripted('- {run: "touch ran", permission: true}', permissions=policy)
    assert (await session.prompt("go")).stop_reason == "end_turn"
    assert (bench.root / "ran").exists() is ran
    (asked,) = bench.of("permission_request")
    assert asked["outcome"] == {"outcome": "selected", "optionId": "yes" if ran else "no"}
    assert asked["toolCall"]["rawInput"]["command"] == "touch ran"
    assert bench.of("tool_call_update")[-1]["status"] == ("completed" if ran else "failed")


async def test_allow_always_is_preferred_over_once_over_anything_allowing(bench: Any) -> None:
    session = await bench.scripted("""
        turns:
          - - run: "true"
              permission:
                options:
                  - {optionId: r, name: R, kind: reject_always}
                  - {optionId: o, name: Once, kind: allow_once}
                  - {optionId: a, name: Always, kind: allow_always}
          - - run: "true"
              permission:
                options:
                  - {optionId: r, name: R, kind: reject_once}
                  - {optionId: s, name: S, kind: allow_session}
          - - run: "touch ran"
              permission: {options: [{optionId: r, name: R, kind: reject_once}]}
    """)
    reasons = [(await session.prompt("go")).stop_reason for _ in range(3)]
    chosen = [data["outcome"].get("optionId") for data in bench.of("permission_request")]
    assert chosen == ["a", "s", None]
    assert reasons == ["end_turn", "end_turn", "cancelled"]
    assert not (bench.root / "ran").exists()


async def test_permission_by_callback(bench: Any) -> None:
    seen: list[Any] = []

    async def ask(request: Any) -> str:
        seen.append(request)
        await asyncio.sleep(0.05)
        return "no" if "rm" in request["toolCall"]["title"] else "yes"

    session = await bench.scripted(
        """
        - {run: "touch made", permission: true}
        - {run: "rm made", permission: true}
        """,
        on_permission=ask,
        idle_timeout=0.5,
    )
    await session.prompt("go")
    assert (bench.root / "made").exists() and len(seen) == 2


async def test_an_option_that_was_not_offered_is_no_consent(bench: Any) -> None:
    async def ask(request: Any) -> str:
        return "made-up"

    session = await bench.scripted('- {run: "touch ran", permission: true}', on_permission=ask)
    assert (await session.prompt("go")).stop_reason == "cancelled"
    assert not (bench.root / "ran").exists()


async def test_a_callback_that_fails_ends_the_turn_with_its_error(bench: Any) -> None:
    async def ask(request: Any) -> str:
        raise ConfigurationError("no user here")

    session = await bench.scripted('- {run: "touch ran", permission: true}', on_permission=ask)
    with pytest.raises(ConfigurationError, match="no user here"):
        await session.prompt("go")
    assert not (bench.root / "ran").exists()


async def test_ask_without_a_callback_is_a_yes_for_this_once(bench: Any) -> None:
    session = await bench.scripted(
        """
        - run: "touch ran"
          permission:
            options:
              - {optionId: always, name: Always, kind: allow_always}
              - {optionId: once, name: Once, kind: allow_once}
              - {optionId: never, name: Never, kind: reject_once}
        """,
        permissions="ask",
    )
    assert (await session.prompt("go")).stop_reason == "end_turn"
    assert [data["outcome"]["optionId"] for data in bench.of("permission_request")] == ["once"]
    assert (bench.root / "ran").exists()


async def test_elicitation_is_declined_or_answered(bench: Any) -> None:
    script = """
        - elicit: {message: "Which colour?", properties: {colour: {type: string}}}
        - say: "{{last}}"
    """
    await (await bench.scripted(script)).prompt("go")
    assert bench.text() == '{"action": "decline"}'
    assert "elicitation" not in bench.processes[-1].messages()[0]["params"]["clientCapabilities"]
    bench.events.clear()

    async def answer(request: Any) -> dict[str, str]:
        assert request["message"] == "Which colour?"
        return {"colour": "blue"}

    await (await bench.scripted(script, elicit=answer)).prompt("go")
    assert json.loads(bench.text()) == {"action": "accept", "content": {"colour": "blue"}}
    assert bench.of("elicitation_request")[0]["response"]["action"] == "accept"
    assert bench.processes[-1].messages()[0]["params"]["clientCapabilities"]["elicitation"] == {"form": {}}


async def test_model_effort_and_mode_are_set_and_shown(bench: Any) -> None:
    session = await bench.scripted(
        '- say: "{{model}} {{effort}} {{mode}} {{role}}"',
        spec=spec(model_in_session="config_option", effort_option="effort", session_mode="auto"),
        model="lab/big-model",
        effort="high",
        settings={"role": "reviewer"},
    )
    await session.prompt("who are you?")
    assert bench.text() == "lab/big-model high auto reviewer"
    assert session.info["settings"]["model"] == {"value": "lab/big-model", "way": "config_option"}
    assert bench.of("session_started")[0]["settings"]["mode"] == "auto"


async def test_no_model_is_set_where_the_launch_settles_it(bench: Any) -> None:
    await bench.scripted("- say: hi", spec=spec(), model="lab/x")
    assert not [m for m in bench.processes[-1].messages() if "set_" in m["method"]]


_GROUPED = '[{"value": "x"}, {"options": [{"value": "big"}]}]'
OFFERS = {
    "options only": f'{{"configOptions": [{{"id": "model", "category": "model", "options": {_GROUPED}}}]}}',
    "models only": '{"models": {"availableModels": [{"modelId": "big"}]}}',
    "both": '{"configOptions": [{"id": "m", "category": "model"}], '
    '"models": {"availableModels": [{"modelId": "lab/big"}]}}',
    "neither": '{"configOptions": "?", "models": [1]}',
}


@pytest.mark.parametrize(
    ("offer", "declared", "refused", "expected"),
    [
        ("options only", "config_option", "", {"configId": "model", "value": "big"}),
        ("options only", "set_model", "", {"configId": "model", "value": "big"}),
        ("models only", "config_option", "", {"modelId": "big"}),
        ("both", "set_model", "", {"modelId": "lab/big"}),
        ("both", "set_model", "session/set_model", {"configId": "m", "value": "lab/big"}),
        ("both", "config_option", "", {"configId": "m", "value": "lab/big"}),
        ("neither", "set_model", "", {"modelId": "lab/big"}),
        ("neither", "set_model", "session/set_model", CapabilityMissing),
        ("neither", "config_option", "", CapabilityMissing),
    ],
)
async def test_the_way_to_set_a_model_is_found(
    bench: Any, offer: str, declared: Any, refused: str, expected: Any
) -> None:
    before = f"""
        while True:
            request = receive()
            if request["method"] == "session/new":
                answer(dict({OFFERS[offer]}, sessionId="s1"))
            elif request["method"] == "{refused}":
                send({{"jsonrpc": "2.0", "id": request["id"], "error": {{"code": -32601, "message": "no"}}}})
            else:
                answer({{"protocolVersion": 1}})
    """
    opening = bench.raw("pass", before=before, spec=spec(model_in_session=declared), model="lab/big")
    if isinstance(expected, type):
        with pytest.raises(expected):
            await opening
        assert not bench.processes[-1].alive()
        return
    await opening
    assert bench.processes[-1].messages()[-1]["params"] == {"sessionId": "s1", **expected}


async def test_a_model_the_agent_refuses_is_its_own_failure(bench: Any) -> None:
    before = """
        while True:
            request = receive()
            if request["method"] == "session/set_model":
                send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32602, "message": "never heard of it"}})
            else:
                answer({"sessionId": "s1", "models": {"availableModels": [{"modelId": "other"}]}})
    """
    with pytest.raises(AgentProtocolError, match=r"never heard of it.*offers: other"):
        await bench.raw("pass", before=before, spec=spec(model_in_session="set_model"), model="big")


async def test_authentication(bench: Any) -> None:
    script = "{auth: api-key, turns: [[{say: in}]]}"
    with pytest.raises(AgentProtocolError, match="api-key") as refused:
        await bench.scripted(script)
    assert refused.value.details["code"] == -32000
    assert not bench.processes[-1].alive()
    session = await bench.scripted(script, auth_method="api-key")
    await session.prompt("go")
    assert bench.text() == "in"


async def test_auth_required_in_a_turn_is_recognised_by_its_code(bench: Any) -> None:
    session = await bench.scripted('- error: {code: -32000, message: "whatever"}')
    with pytest.raises(AgentProtocolError) as refused:
        await session.prompt("go")
    assert refused.value.details["auth_required"] is True


async def test_a_loaded_session_replays_without_entering_the_turn(bench: Any) -> None:
    session = await bench.scripted("- say: now", load_session="earlier-7")
    assert session.id == "earlier-7"
    await session.prompt("go")
    assert bench.text("replayed_update") == "(earlier)" and bench.text() == "now"


async def test_a_session_cannot_be_loaded_where_the_agent_cannot(bench: Any) -> None:
    with pytest.raises(CapabilityMissing):
        await bench.raw("pass", load_session="x")


async def test_mcp_servers_are_handed_over_or_refused(bench: Any) -> None:
    servers = (
        McpServer("files", "stdio", command="/bin/files", args=("-v",), env={"A": "1"}),
        McpServer("web", "http", url="http://localhost:1", headers={"X": "y"}),
    )
    await bench.scripted("- say: hi", mcp_servers=servers, session_meta={"benchflow": {"a": 1}})
    params = next(m["params"] for m in bench.processes[-1].messages() if m["method"] == "session/new")
    assert params["_meta"] == {"benchflow": {"a": 1}}
    assert params["mcpServers"] == [
        {"name": "files", "command": "/bin/files", "args": ["-v"], "env": [{"name": "A", "value": "1"}]},
        {"type": "http", "name": "web", "url": "http://localhost:1", "headers": [{"name": "X", "value": "y"}]},
    ]
    with pytest.raises(CapabilityMissing, match="'web'"):
        await bench.raw("pass", mcp_servers=servers)


async def test_initialize_says_who_we_are_and_offers_nothing(bench: Any) -> None:
    await bench.scripted("- say: hi")
    first = bench.processes[-1].messages()[0]
    assert first["method"] == "initialize" and first["params"]["protocolVersion"] == 1
    assert first["params"]["clientInfo"]["name"] == "benchflow"
    assert first["params"]["clientCapabilities"] == {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
    }


async def test_fs_and_terminal_are_refused_where_not_enabled(bench: Any) -> None:
    session = await bench.scripted("""
        - call: {method: fs/write_text_file, params: {path: "{{cwd}}/x", content: "x"}}
        - say: "{{last}}"
        - call: {method: terminal/create, params: {command: "touch x"}}
        - say: "{{last}}"
    """)
    await session.prompt("go")
    assert bench.text().count("-32601") == 2
    assert not (bench.root / "x").exists()
    assert [r["method"] for r in bench.of("client_request")] == ["fs/write_text_file", "terminal/create"]


async def test_two_prompts_at_once_are_a_defect(bench: Any) -> None:
    session = await bench.scripted("- wait: 5")
    running = asyncio.create_task(session.prompt("one"))
    await asyncio.sleep(0.1)
    with pytest.raises(RuntimeError):
        await session.prompt("two")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_handshake_that_hangs(bench: Any) -> None:
    with pytest.raises(AgentTimeout, match=r"initialize within 0\.3 s") as late:
        await bench.raw(
            "pass", before="print('loading', file=sys.stderr, flush=True); time.sleep(60)", handshake_timeout=0.3
        )
    assert late.value.details["reason"] == "handshake" and late.value.details["stderr_tail"] == "loading"
    assert not bench.processes[-1].alive()


async def test_another_protocol_version_is_refused(bench: Any) -> None:
    with pytest.raises(AgentProtocolError, match="version 2"):
        await bench.raw("pass", before='request = receive(); answer({"protocolVersion": 2}); time.sleep(60)')


async def test_opening_can_be_cancelled_and_leaves_nothing(bench: Any) -> None:
    opening = asyncio.create_task(bench.raw("pass", before="time.sleep(60)"))
    await asyncio.sleep(0.2)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not bench.processes[-1].alive()


async def test_what_an_internal_error_was_is_said(bench: Any) -> None:
    session = await bench.scripted(
        '- error: {code: -32603, message: "Internal error", data: {details: "the server\\nledger did not start"}}'
    )
    with pytest.raises(AgentProtocolError, match=r"-32603: Internal error \(the server ledger did not start\)$"):
        await session.prompt("go")


async def test_a_model_is_chosen_where_the_agent_offers_one(bench: Any) -> None:
    argv = bench.scripted_argv('- say: "{{model}}"')
    spec = AgentSpec(summary="scripted", model_in_session="config_option")
    session = await bench.open(*argv, spec=spec, model="lab/m")
    await session.prompt("go")
    assert bench.text() == "lab/m"


async def test_a_callback_without_an_opinion_leaves_it_to_the_policy(bench: Any) -> None:
    async def ask(request: Any) -> None:
        return None

    session = await bench.scripted('- {run: "touch ran", permission: true}', on_permission=ask, permissions="allow")
    assert (await session.prompt("go")).stop_reason == "end_turn"
    assert (bench.root / "ran").exists()
