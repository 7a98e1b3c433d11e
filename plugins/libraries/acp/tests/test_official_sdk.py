"""Against the official SDK: it validates what we send, we drive an agent of its, its client drives our agent."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema
from pydantic import TypeAdapter

from benchflow_core.contracts import AgentSpec, Launch, McpServer

REQUESTS = {
    "initialize": schema.InitializeRequest,
    "authenticate": schema.AuthenticateRequest,
    "session/new": schema.NewSessionRequest,
    "session/load": schema.LoadSessionRequest,
    "session/prompt": schema.PromptRequest,
    "session/cancel": schema.CancelNotification,
    "session/set_mode": schema.SetSessionModeRequest,
    "session/set_config_option": schema.SetSessionConfigOptionSelectRequest,
}


def assert_valid(model: Any, data: Any) -> None:
    """Valid, and nothing of it was dropped or repaired on the way."""
    found = TypeAdapter(model).validate_python(data)
    assert TypeAdapter(model).dump_python(found, by_alias=True, exclude_unset=True, mode="json") == data


async def test_everything_we_send_is_valid(bench: Any) -> None:
    async def answer(request: Any) -> dict[str, str]:
        return {"colour": "blue"}

    spec = AgentSpec(
        summary="x",
        prepare=lambda c: Launch(argv=()),
        model_in_session="config_option",
        effort_option="effort",
        session_mode="auto",
    )
    options: dict[str, Any] = {
        "spec": spec,
        "model": "m",
        "effort": "low",
        "auth_method": "key",
        "elicit": answer,
        "session_meta": {"benchflow": {"a": 1}},
        "mcp_servers": (
            McpServer("a", "stdio", command="/bin/a", args=("x",), env={"K": "v"}),
            McpServer("b", "http", url="http://h", headers={"K": "v"}),
            McpServer("c", "sse", url="http://h"),
        ),
    }
    script = """
        auth: key
        turns:
          - - {run: "true", permission: true}
            - {run: "true", permission: {options: [{optionId: n, name: N, kind: reject_once}]}}
          - - elicit: {message: "Colour?", properties: {colour: {type: string}}}
          - - hang: true
    """
    session = await bench.scripted(script, **options)
    for _ in range(2):
        await session.prompt("go")
    hanging = asyncio.create_task(session.prompt("go"))
    await asyncio.sleep(0.1)
    await session.cancel()
    await hanging
    sent = bench.processes[-1].messages()
    await bench.scripted(script, **{**options, "load_session": "old", "elicit": None})
    sent += bench.processes[-1].messages()

    assert {m["method"] for m in sent if "method" in m} == set(REQUESTS)
    for message in sent:
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            assert_valid(REQUESTS[message["method"]], message["params"])
    replies = [m["result"] for m in sent if "result" in m]
    assert [sorted(r) for r in replies] == [["outcome"], ["outcome"], ["action", "content"]]
    for reply in replies:
        assert_valid(
            schema.RequestPermissionResponse if "outcome" in reply else schema.CreateElicitationResponse, reply
        )


SDK_AGENT = """
import asyncio, sys
from acp import *
from acp.schema import *

class Mine(Agent):
    def on_connect(self, conn):
        self.conn = conn
        self.stopped = asyncio.Event()

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kw):
        assert protocol_version == 1 and client_info.name == "benchflow"
        return InitializeResponse(protocol_version=1, agent_capabilities=AgentCapabilities(load_session=True))

    async def new_session(self, cwd, mcp_servers=None, **kw):
        self.model = "default"
        modes = [SessionMode(id="ask", name="Ask"), SessionMode(id="go", name="Go")]
        state = SessionModeState(current_mode_id="ask", available_modes=modes)
        return NewSessionResponse(session_id="sdk-1", config_options=self.options(), modes=state)

    def options(self):
        choices = [SessionConfigSelectOption(value=v, name=v) for v in ("default", "big")]
        return [SessionConfigOptionSelect(type="select", id="model", name="Model", category="model",
                                          current_value=self.model, options=choices)]

    async def load_session(self, cwd, session_id, mcp_servers=None, **kw):
        await self.conn.session_update(session_id, update_user_message_text("before"))
        return LoadSessionResponse()

    async def set_session_mode(self, session_id, mode_id, **kw):
        self.mode = mode_id
        return SetSessionModeResponse()

    async def set_config_option(self, config_id, session_id, value, **kw):
        self.model = value
        return SetSessionConfigOptionResponse(config_options=self.options())

    async def cancel(self, session_id, **kw):
        self.stopped.set()

    async def prompt(self, session_id, prompt, **kw):
        text = prompt[0].text
        if text == "hang":
            await self.stopped.wait()
            return PromptResponse(stop_reason="cancelled")
        if text == "fail":
            raise RequestError(-32603, "model call failed", {"status": 400})
        async def tell(update):
            await self.conn.session_update(session_id, update)

        await tell(update_agent_thought_text("hmm"))
        await tell(start_tool_call("t1", "Edit", kind="edit", status="pending", raw_input={"a": 1}))
        kinds = (("a", "allow_always"), ("r", "reject_once"))
        options = [PermissionOption(option_id=i, name=i, kind=k) for i, k in kinds]
        answer = await self.conn.request_permission(session_id, ToolCallUpdate(tool_call_id="t1"), options)
        await tell(update_tool_call("t1", status="completed", raw_output={"chosen": answer.outcome.option_id}))
        await tell(update_agent_message_text(f"{text} {self.model} {self.mode}"))
        return PromptResponse(stop_reason="end_turn", usage=Usage(input_tokens=5, output_tokens=6, total_tokens=11))

asyncio.run(run_agent(Mine()))
"""


@pytest.fixture
def sdk_agent(tmp_path: Path) -> tuple[str, ...]:
    path = tmp_path / "sdk_agent.py"
    path.write_text(SDK_AGENT)
    return (sys.executable, str(path))


async def test_we_drive_an_agent_of_the_sdk(bench: Any, sdk_agent: tuple[str, ...]) -> None:
    spec = AgentSpec(
        summary="x", prepare=lambda c: Launch(argv=()), model_in_session="config_option", session_mode="go"
    )
    session = await bench.open(*sdk_agent, spec=spec, model="lab/big")
    outcome = await session.prompt("hello")
    assert outcome.stop_reason == "end_turn" and outcome.usage and outcome.usage.input_tokens == 5
    assert bench.text() == "hello big go" and bench.text("agent_thought_chunk") == "hmm"
    assert bench.of("tool_call")[0]["rawInput"] == {"a": 1}
    assert bench.of("tool_call_update")[0]["rawOutput"] == {"chosen": "a"}
    with pytest.raises(Exception, match="model call failed") as failed:
        await session.prompt("fail")
    assert failed.value.details["data"] == {"status": 400}  # type: ignore[attr-defined]
    hanging = asyncio.create_task(session.prompt("hang"))
    await asyncio.sleep(0.2)
    await session.cancel()
    assert (await hanging).stop_reason == "cancelled"


async def test_we_load_a_session_of_the_sdk(bench: Any, sdk_agent: tuple[str, ...]) -> None:
    session = await bench.open(*sdk_agent, load_session="old-1")
    assert session.id == "old-1" and bench.text("replayed_update") == "before"


class SdkClient:
    """A client as the SDK's users write them."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **kwargs: Any) -> Any:
        self.asked.append(tool_call)
        chosen = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return schema.RequestPermissionResponse(outcome=chosen)

    async def read_text_file(self, session_id: str, path: str, **kwargs: Any) -> Any:
        return schema.ReadTextFileResponse(content=f"content of {path}")

    async def create_elicitation(self, message: str, mode: Any, **kwargs: Any) -> Any:
        return schema.DeclineElicitationResponse(action="decline")

    def on_connect(self, conn: Any) -> None: ...


SCRIPT = """
turns:
  - - think: "hmm"
    - plan: ["one", {content: two, status: completed, priority: high}]
    - {run: "echo hi; echo there >&2", permission: true}
    - write: {path: sub/file.txt, content: "new\\n"}
    - read: sub/file.txt
    - call: {method: fs/read_text_file, params: {path: /etc/x}}
    - say: "{{last}}"
    - elicit: {message: "Colour?", properties: {colour: {type: string}}}
    - usage: {input: 3, output: 4, cost: 0.5, context: 100}
  - - run: "sleep 60"
  - - error: {code: -32603, message: "broken"}
  - - {run: "exit 3"}
"""


async def test_the_scripted_agent_is_driven_by_the_sdk(bench: Any) -> None:
    client = SdkClient()
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*bench.scripted_argv(SCRIPT), stdin=pipe, stdout=pipe)
    try:
        connection = acp.connect_to_agent(client, process.stdin, process.stdout, use_unstable_protocol=True)  # type: ignore[arg-type]
        hello = await connection.initialize(protocol_version=1)
        assert hello.agent_info and hello.agent_info.name == "benchflow-scripted"
        session = await connection.new_session(cwd=str(bench.root), mcp_servers=[])
        assert session.config_options and session.config_options[0].id == "model" and session.modes
        await connection.set_session_mode(mode_id="auto", session_id=session.session_id)
        changed = await connection.set_config_option(config_id="model", session_id=session.session_id, value="m2")
        assert changed and changed.config_options[0].current_value == "m2"

        prompt = [acp.text_block("go")]
        first = await connection.prompt(session_id=session.session_id, prompt=prompt)
        assert first.stop_reason == "end_turn" and first.usage and first.usage.total_tokens == 7
        kinds = [u.session_update for u in client.updates]
        assert kinds.count("tool_call") == 3 and {"plan", "agent_thought_chunk", "usage_update"} <= set(kinds)
        assert (bench.root / "sub/file.txt").read_text() == "new\n"
        texts = [u.content.text for u in client.updates if u.session_update == "agent_message_chunk"]
        assert texts == ['{"content": "content of /etc/x"}'] and len(client.asked) == 1

        turn = asyncio.create_task(connection.prompt(session_id=session.session_id, prompt=prompt))
        await asyncio.sleep(0.3)
        await connection.cancel(session_id=session.session_id)
        assert (await turn).stop_reason == "cancelled"
        with pytest.raises(acp.RequestError, match="broken"):
            await connection.prompt(session_id=session.session_id, prompt=prompt)
        await connection.prompt(session_id=session.session_id, prompt=prompt)
        assert client.updates[-1].status == "failed" and client.updates[-1].raw_output["exit_code"] == 3
        await connection.close()
        process.stdin.close()  # type: ignore[union-attr]
        assert await asyncio.wait_for(process.wait(), 5) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
