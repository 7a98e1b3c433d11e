"""One episode on the server: a session that is opened, kept alive, asked and always closed."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from benchflow_adapter_ors.tasks import TaskAddress, digest
from benchflow_adapter_ors.wire import OrsClient, SessionGone, connected
from benchflow_core.errors import BenchflowError, ConfigurationError, TaskError

__all__ = ["CallRefused", "OrsEpisode", "ToolOutput", "opened"]

_PING: Final = 10.0
_MOST_LOST: Final = 5


@dataclass(frozen=True)
class ToolOutput:
    """What a tool gave: text and images for the agent, reward and end for us."""

    blocks: Sequence[Mapping[str, Any]]
    reward: float | None
    finished: bool


@dataclass(frozen=True)
class CallRefused:
    """The environment did not run the call: the agent may try another. `over`: it takes no more."""

    error: str
    over: bool = False


class OrsEpisode:
    """A session of a task."""

    def __init__(self, wire: OrsClient, place: TaskAddress) -> None:
        self._wire, self.place = wire, place
        self.lost: asyncio.Future[BenchflowError] = asyncio.get_running_loop().create_future()
        """Done when the session has gone while nobody asked anything of it."""

    async def prompt(self) -> str:
        """Waits until the environment is set up."""
        blocks = await self._wire.ask("GET", self._path("prompt"))
        if not isinstance(blocks, list) or not all(isinstance(b, dict) and b.get("type") == "text" for b in blocks):
            raise TaskError(f"{self.place}: its prompt holds more than text, which agents here cannot be given.")
        text = "\n\n".join(str(block.get("text", "")) for block in blocks).strip()
        if not text:
            raise TaskError(f"{self.place}: its prompt is empty.")
        return text

    async def tools(self) -> tuple[list[Mapping[str, Any]], Mapping[str, Any] | None]:
        """The tools of this task, and the one that is given what the agent says last, if there is one."""
        try:
            found = await self._wire.ask("GET", self._path("task_tools"))
        except TaskError as error:
            if error.details.get("status") != 404:
                raise
            found = await self._wire.ask("GET", self._path("tools"))
        try:
            tools, last = list(found["tools"]), found.get("terminal_tool")
            names = [tool["name"] for tool in tools] + ([last["name"]] if last else [])
        except (TypeError, KeyError, AttributeError):
            raise TaskError(f"{self.place}: its list of tools cannot be read.") from None
        if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(tools):
            raise TaskError(f"{self.place}: its tools have no names, or the same one twice.")
        return tools, last

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput | CallRefused:
        """Runs once, however often the connection is lost meanwhile."""
        text = await self._wire.stream(self._path("call"), {"name": name, "input": dict(arguments)})
        try:
            found = json.loads(text)
            if found["ok"] is False:
                return CallRefused(str(found["error"]), over=found.get("reason") == "episode_finished")
            return self._output(name, found["output"])
        except (ValueError, TypeError, KeyError):
            raise TaskError(f"{self.place}: tool '{name}' answered what cannot be read: {text[:120]!r}.") from None

    def _output(self, name: str, given: Mapping[str, Any]) -> ToolOutput:
        """Reward and end are taken from their own fields, and only as what the standard says they are."""
        reward, finished, blocks = given.get("reward"), given.get("finished", False), given["blocks"]
        number = isinstance(reward, int | float) and not isinstance(reward, bool) and math.isfinite(reward)
        if reward is not None and not number:
            raise TaskError(f"{self.place}: tool '{name}' gave the reward {reward!r:.60}, which is no finite number.")
        if not isinstance(finished, bool):
            raise TaskError(f"{self.place}: tool '{name}' said finished = {finished!r:.60}, which is no truth value.")
        if not isinstance(blocks, list) or not all(_is_block(block) for block in blocks):
            raise TaskError(f"{self.place}: tool '{name}' gave what is neither text nor an image.")
        return ToolOutput(blocks, None if reward is None else float(reward), finished)

    def _path(self, what: str) -> str:
        return f"/{self.place.environment}/{what}"

    async def keep_alive(self) -> None:
        """A ping every ten seconds, until the session has gone or nobody answers any more."""
        lost = 0
        while not self.lost.done():
            await asyncio.sleep(_PING)
            try:
                await self._wire.ask("POST", "/ping")
                lost = 0
            except BenchflowError as error:
                lost += 1
                if isinstance(error, SessionGone) or lost >= _MOST_LOST:
                    self.lost.set_result(error)


@asynccontextmanager
async def opened(place: TaskAddress, *, patience: float = 600.0) -> AsyncIterator[OrsEpisode]:
    """A new session of exactly the task that was listed, kept alive."""
    async with connected(place.server, patience=patience) as wire:
        where = {"split": place.split, "index": place.index}
        spec = await wire.field(dict, "task", f"/{place.environment}/task", where)
        if digest(spec) != place.spec:
            raise TaskError(f"{place} is another task now than when it was listed.", remedy="Start a new job.")
        await _create(wire, place, spec)
        episode = OrsEpisode(wire, place)
        beat = asyncio.create_task(episode.keep_alive())
        try:
            yield episode
        finally:
            beat.cancel()
            await asyncio.gather(beat, return_exceptions=True)


async def _create(wire: OrsClient, place: TaskAddress, spec: Any) -> None:
    body: dict[str, Any] = {"env_name": place.environment, "task_spec": spec}
    headers: dict[str, str] = {}
    if secrets := _secrets(place):
        if await _is_openreward(wire):
            shown = {name: {"value": value} for name, value in secrets.items()}
            headers["X-Secrets"] = base64.b64encode(json.dumps(shown).encode()).decode()
        else:
            body["secrets"] = secrets
    await wire.ask("POST", "/create", body, headers=headers, once=True)


async def _is_openreward(wire: OrsClient) -> bool:
    """Which of the two dialects: `ors-sdk` has no such address."""
    try:
        return isinstance(await wire.ask("GET", "/version"), dict)
    except TaskError:
        return False


def _secrets(place: TaskAddress) -> dict[str, str]:
    if missing := [name for name in place.secrets if not os.environ.get(name)]:
        raise ConfigurationError(f"{place} is to be given {missing[0]}, which is not set.", remedy="Set it first.")
    return {name: os.environ[name] for name in place.secrets}


def _is_block(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    fields = {"text": ("text",), "image": ("data", "mimeType")}.get(str(block.get("type")), ())
    return bool(fields) and all(isinstance(block.get(field), str) for field in fields)
