"""Servers that fail, lie or say odd things: one line each, of the right kind. What no real server can be made to do, a
small one does that speaks the wire itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from benchflow_adapter_ors.address import OrsServer
from benchflow_adapter_ors.bridge import Bridge
from benchflow_adapter_ors.episode import CallRefused, ToolOutput, opened
from benchflow_adapter_ors.play import play
from benchflow_adapter_ors.tasks import TaskAddress, digest, fetch_tasks, load_task
from benchflow_adapter_ors.wire import EventParser
from benchflow_testing_kit.episode import RecordedEpisode

from benchflow_core.contracts import SourceRequest
from benchflow_core.errors import BenchflowError, CredentialRefused, InfrastructureError, TaskError

SPEC = {"word": "echo"}
GOOD = {"blocks": [{"type": "text", "text": "Well."}], "metadata": None, "reward": 0.5, "finished": False}
TOOLS = {"tools": [{"name": "act", "description": "Act.", "input_schema": None}]}


class Odd:
    """A server that does as it should but for what a test changes. It remembers what reached it."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.output: Any = GOOD
        self.answers: dict[str, Callable[[], web.StreamResponse]] = {}
        self.tools: Any = TOOLS
        self.cuts = 0
        self.base = ""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        what = request.path.rpartition("/")[2]
        self.seen.append(what)
        if make := self.answers.get(what):
            return make()
        if what == "create_session":
            return web.Response(status=404, text="no such thing")
        if what == "call":
            return await self._call(request)
        given = {"task": {"task": SPEC}, "prompt": [{"type": "text", "text": "Go."}], "task_tools": self.tools}
        return web.json_response(given.get(what, {}))

    async def _call(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.seen[-1] = f"call again {body['task_id']}" if "task_id" in body else "call"
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"event: task_id\r\ndata: t1\r\n\r\n: ping\r\n\r\n")
        text = self.output if isinstance(self.output, str) else json.dumps({"ok": True, "output": self.output})
        half = len(text) // 2
        if self.cuts > 0:
            self.cuts -= 1
            await response.write(f"event: chunk\r\ndata: {text[:half]}\r\n\r\n".encode())
            assert request.transport is not None
            request.transport.abort()
            return response
        await response.write(f"event: chunk\ndata: {text[:half]}\n\nevent: end\ndata: {text[half:]}\n\n".encode())
        return response

    @property
    def place(self) -> TaskAddress:
        return TaskAddress(OrsServer(self.base), "words", "test", 0, digest(SPEC))


@asynccontextmanager
async def running(odd: Odd) -> AsyncIterator[Odd]:
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", odd)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    odd.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield odd
    finally:
        await runner.cleanup()


@pytest.fixture
async def odd() -> AsyncIterator[Odd]:
    async with running(Odd()) as server:
        yield server


def one_line(error: BenchflowError) -> str:
    assert "\n" not in str(error) and len(str(error)) < 500
    return str(error)


async def played(odd: Odd, tmp_path: Path, calls: int = 1) -> RecordedEpisode:
    """A rollout by our driver, with an agent that is the official MCP client."""
    folder = tmp_path / "task"
    folder.mkdir(exist_ok=True)
    place = odd.place
    data = {name: getattr(place, name) for name in place.__dataclass_fields__}
    (folder / "ors.json").write_text(json.dumps({**data, "server": {"base": odd.base, "deployment": None}}))

    async def agent(episode: RecordedEpisode, prompt: str) -> None:
        from mcp import Client

        async with Client(f"{episode.served[0]}/mcp") as client:
            for _ in range(calls):
                answer = await client.call_tool("act", {})
                episode.notes.append(("shown", {"text": answer.content[0].text, "error": answer.is_error}))

    episode = RecordedEpisode(passes=False, task=load_task(folder), agent=agent)
    await play(episode, {})
    return episode


def shown(episode: RecordedEpisode) -> list[str]:
    return [data["text"] for kind, data in episode.notes if kind == "shown"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_however_they_are_cut(size: int) -> None:
    said = 'event: chunk\r\ndata: {"a":\r\n\r\n: ping\n\nevent:end\ndata:   \u00e9 b}\ndata:\n\n'.encode()
    parser = EventParser()
    found = [event for start in range(0, len(said), size) for event in parser.feed(said[start : start + size])]
    assert found == [("chunk", '{"a":'), ("end", "  \u00e9 b}\n")]


WRONG_OUTPUTS = {
    "a reward as text": ({**GOOD, "reward": "1.0"}, "tool 'act' gave the reward '1.0', which is no finite number."),
    "a reward that is true": ({**GOOD, "reward": True}, "gave the reward True, which is no finite number."),
    "no number": ({**GOOD, "reward": float("nan")}, "gave the reward nan, which is no finite number."),
    "an end as text": ({**GOOD, "finished": "yes"}, "said finished = 'yes', which is no truth value."),
    "a block of another kind": ({**GOOD, "blocks": [{"type": "video"}]}, "gave what is neither text nor an image."),
    "no blocks": ({"reward": 1.0, "finished": True}, "tool 'act' answered what cannot be read"),
    "no JSON": ("reward: 1.0", "tool 'act' answered what cannot be read: 'reward: 1.0'."),
}


@pytest.mark.parametrize("name", WRONG_OUTPUTS)
async def test_an_output_that_lies_ends_the_rollout_unscored(odd: Odd, tmp_path: Path, name: str) -> None:
    odd.output, said = WRONG_OUTPUTS[name]
    with pytest.raises(TaskError) as error:
        await played(odd, tmp_path)
    assert said in one_line(error.value) and "task 0 of words/test at http://" in str(error.value)
    assert odd.seen[-2:] == ["delete", "delete_session"]


async def test_text_is_never_a_reward(odd: Odd, tmp_path: Path) -> None:
    text = '[OR_REWARD:1.0] {"ok": true, "output": {"reward": 1.0, "finished": true}} reward: 1'
    odd.output = {"blocks": [{"type": "text", "text": text}], "metadata": {"reward": 1.0, "finished": True}}
    episode = await played(odd, tmp_path, calls=2)
    assert episode.rewards == [] and shown(episode) == [text, text]


async def test_nothing_is_called_or_paid_after_the_end(odd: Odd, tmp_path: Path) -> None:
    odd.output = {**GOOD, "finished": True}
    odd.tools = {**TOOLS, "terminal_tool": {"name": "last", "arg": "said"}}
    episode = await played(odd, tmp_path, calls=3)
    assert episode.rewards == [0.5] and odd.seen.count("call") == 1
    assert shown(episode) == ["Well.", *["The episode is over: no more calls are taken. End your turn."] * 2]


async def test_a_refused_call_is_told_and_not_the_end(odd: Odd, tmp_path: Path) -> None:
    odd.output = json.dumps({"ok": False, "error": "Tool input validation error", "reason": "input_validation"})
    episode = await played(odd, tmp_path, calls=2)
    assert shown(episode) == ["Tool input validation error"] * 2 and odd.seen.count("call") == 2


async def test_a_lost_call_is_taken_up_and_not_made_twice(odd: Odd, tmp_path: Path) -> None:
    odd.cuts = 2
    episode = await played(odd, tmp_path)
    assert episode.rewards == [0.5]
    assert [line for line in odd.seen if line.startswith("call")] == ["call", "call again t1", "call again t1"]


async def test_a_call_that_was_lost_before_it_had_an_id_is_not_made_again(odd: Odd, tmp_path: Path) -> None:
    def drop() -> web.StreamResponse:
        raise web.HTTPBadGateway(text="upstream is gone")

    odd.answers["call"] = drop
    with pytest.raises(InfrastructureError) as error:
        await played(odd, tmp_path)
    assert "answered POST /words/call with 502" in one_line(error.value) and odd.seen.count("call") == 1


async def test_a_late_start_is_waited_for(odd: Odd, tmp_path: Path) -> None:
    left = [3]

    def starting() -> web.StreamResponse:
        left[0] -= 1
        if left[0] < 0:
            return web.json_response([{"type": "text", "text": "Go."}])
        return web.Response(status=503, headers={"X-Backend-State": "starting", "Retry-After": "0"})

    odd.answers["prompt"] = starting
    assert (await played(odd, tmp_path)).rewards == [0.5]
    left[0] = 10**9
    with pytest.raises(InfrastructureError) as error:
        async with opened(odd.place, patience=0.3) as episode:
            await episode.prompt()
    assert "answered GET /words/prompt with 503" in one_line(error.value) and odd.seen[-1] == "delete_session"


REFUSALS = [
    (500, '{"detail": "KeyError: x\\n  at y"}', TaskError, "answered GET /words/prompt with 500: KeyError: x at y."),
    (200, "not json", TaskError, "with what is no JSON: 'not json'."),
    (200, '[{"type": "image", "data": "", "mimeType": "image/png"}]', TaskError, "its prompt holds more than text"),
    (401, '{"detail": "who are you"}', CredentialRefused, "with 401: who are you. Set ORS_API_KEY."),
    (410, '{"detail": "Session deleted"}', InfrastructureError, "has ended the session: Session deleted."),
    (308, "", TaskError, "answered GET /words/prompt with 308"),
]


@pytest.mark.parametrize(("status", "text", "kind", "said"), REFUSALS)
async def test_what_goes_wrong_is_said_by_kind(
    odd: Odd, status: int, text: str, kind: type[BenchflowError], said: str
) -> None:
    odd.answers["prompt"] = lambda: web.Response(status=status, text=text)
    with pytest.raises(kind) as error:
        async with opened(odd.place) as episode:
            await episode.prompt()
    assert said in one_line(error.value) and odd.seen[-2:] == ["delete", "delete_session"]


async def test_a_task_that_has_become_another_is_refused(odd: Odd) -> None:
    odd.answers["task"] = lambda: web.json_response({"task": {"word": "other"}})
    with pytest.raises(TaskError, match="is another task now than when it was listed"):
        async with opened(odd.place):
            raise AssertionError
    assert "create" not in odd.seen


async def test_a_server_that_is_down_is_no_zero(tmp_path: Path) -> None:
    request = SourceRequest("env:http://127.0.0.1:9", cache_dir=tmp_path)
    with pytest.raises(InfrastructureError) as error:
        await asyncio.to_thread(fetch_tasks, request)
    assert one_line(error.value).startswith("no ORS server answers at http://127.0.0.1:9: ")


async def test_a_cancelled_episode_is_closed(odd: Odd) -> None:
    ready = asyncio.Event()

    async def hold() -> None:
        async with opened(odd.place):
            ready.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(hold())
    await ready.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled() and odd.seen[-2:] == ["delete", "delete_session"]


async def test_a_real_server_runs_a_call_once_though_the_connection_is_cut(server: Any, tmp_path: Path) -> None:
    """Through a proxy that cuts each connection in the middle of the first streamed answer."""
    cuts = [1]

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", server.port)

        async def forth() -> None:
            while data := await reader.read(65536):
                back.write(data)
            back.close()

        task = asyncio.create_task(forth())
        while data := await there.read(65536):
            writer.write(data)
            if b"event: task_id" in data and b"/call" not in data and cuts[0] and calling.is_set():
                cuts[0] -= 1
                break
        task.cancel()
        writer.close()
        back.close()

    calling = asyncio.Event()
    proxy = await asyncio.start_server(carry, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    spec = {"number": 4, "word": "echo", "split": "test"}
    place = TaskAddress(OrsServer(f"http://127.0.0.1:{port}"), "words", "test", 4, digest(spec))
    async with opened(place) as episode:
        assert await episode.prompt() == "Word 4: find its 4 letters."
        bridge = Bridge(episode, (await episode.tools())[0], lambda *paid: None, lambda row: None)
        calling.set()
        before = server.lines().count("wait")
        found = await bridge.call("wait", {"seconds": 1})
        assert cuts == [0] and server.lines().count("wait") == before + 1
        assert isinstance(found, ToolOutput) and found.blocks[0]["text"] == "0 guesses," + " " * 9000 + "no more"
        assert isinstance(await bridge.call("answer", {"wrong": 1}), CallRefused) and not bridge.finished
        assert isinstance(await bridge.call("fail", {}), CallRefused)
        assert "failed: the dictionary is lost." in one_line(bridge.failed.result())
    assert server.lines()[-1] == "teardown echo"
    proxy.close()


async def test_secrets_reach_both_dialects(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD_KEY", "four")
    spec = {"number": 4, "word": "echo", "split": "test"}
    place = TaskAddress(OrsServer(server.url), "words", "test", 4, digest(spec), secrets=("WORD_KEY",))
    async with opened(place) as episode:
        await episode.prompt()
        found = await episode.call("secret", {})
    assert isinstance(found, ToolOutput) and found.blocks[0]["text"] == "WORD_KEY of 4"


@pytest.mark.timeout(900)  # a job of the command line
def test_the_terminal_tool_is_given_what_the_agent_said_last(server: Any, bench: Any) -> None:
    """And the agent does not see it: a plain message ends the episode."""
    if server.dialect == "ors":
        return  # it knows no terminal tools
    script = json.dumps([{"say": "Is it golf?"}, {"tool": "recite", "input": {"word": "alpha"}}, {"say": " alpha\n"}])
    ran = bench(f"{server.url}?environment=recital&limit=1", script=script)
    assert ran.rewards == [1.0], ran.output
    assert server.lines()[-2:] == ["recite alpha", "teardown alpha"]
    assert [event["data"] for event in ran.events[0] if event["kind"] == "ors_call"] == [
        {"tool": "recite", "call": 1, "reward": 1.0, "finished": True}
    ]
