"""The driver: a session, its tools in the box, its prompt to the agent, and what the agent says last back to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from benchflow_wires.asgi import serve_app

from benchflow_adapter_ors.bridge import Bridge
from benchflow_adapter_ors.episode import OrsEpisode, opened
from benchflow_adapter_ors.rewards import SOURCE
from benchflow_adapter_ors.tasks import FILE, PORT, read_place
from benchflow_core.contracts import Episode as Rollout
from benchflow_core.errors import ConfigurationError

if TYPE_CHECKING:
    from benchflow_core.contracts import TurnRecord

__all__ = ["play"]

_T = TypeVar("_T")


async def play(rollout: Rollout, params: Mapping[str, Any]) -> None:
    if not (rollout.task.path / FILE).is_file():
        raise ConfigurationError(f"task '{rollout.task.name}' is of no ORS environment.", remedy="Use another driver.")
    async with opened(read_place(rollout.task.path)) as episode:
        prompt = await episode.prompt()
        tools, last = await episode.tools()
        rollout.note("ors_opened", {"task": str(episode.place), "tools": [tool["name"] for tool in tools]})
        bridge = Bridge(
            episode,
            tools,
            lambda value, tool, call: rollout.reward(value, source=SOURCE, step=call, meta={"tool": tool}),
            lambda row: rollout.note("ors_call", row),
        )
        reason = "the agent's turn did not end by itself"
        try:
            async with serve_app(bridge.app(), "the server of the episode's tools") as endpoint:
                await rollout.serve(endpoint, port=PORT)
                turn = await _unless_lost(rollout.prompt(rollout.roles[0], prompt), bridge, episode)
                if last and not bridge.finished:
                    said = {last["arg"]: _last_words(turn)} if last.get("arg") else {}
                    await _unless_lost(bridge.call(last["name"], said), bridge, episode)
            reason = "by the environment" if bridge.finished else "the agent ended its turn before the episode was over"
        finally:
            ended = {"finished": bridge.finished, "reason": reason, "calls": bridge.calls}
            rollout.note("ors_ended", ended)
            rollout.report({"driver": "ors", **ended})


async def _unless_lost(work: Awaitable[_T], bridge: Bridge, episode: OrsEpisode) -> _T:
    """What is asked for; where the environment breaks meanwhile, that is raised, and nobody is waited for."""
    task = asyncio.ensure_future(work)
    ends: tuple[asyncio.Future[Any], ...] = (bridge.failed, episode.lost)
    try:
        await asyncio.wait({task, *ends}, return_when=asyncio.FIRST_COMPLETED)
        for broken in ends:
            if broken.done() and not bridge.finished:
                raise broken.result()
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _last_words(turn: TurnRecord) -> str:
    """What the agent said after its last tool call."""
    text = ""
    for event in turn.events:
        if event["kind"] in ("tool_call", "tool_call_update"):
            text = ""
        elif event["kind"] == "agent_message_chunk":
            content = (event.get("data") or {}).get("content")
            text += str(content.get("text") or "") if isinstance(content, dict) else ""
    return text.strip()
