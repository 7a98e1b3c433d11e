"""Verifiers 0.4: tasksets and environments of `verifiers.v1`."""

from __future__ import annotations

import base64
import contextlib
import contextvars
import itertools
import os
import time
from collections.abc import AsyncIterator
from typing import Any

import verifiers.v1 as vf
from aiohttp import web
from benchflow_harness import SAID
from benchflow_worker import Play, flatten
from verifiers.v1.configs.agent import agent_config_fields
from verifiers.v1.runtimes import DockerConfig, DockerRuntimeInfo
from verifiers.v1.utils.loaders import environment_class

_playing: contextvars.ContextVar[BoxRuntime] = contextvars.ContextVar("playing")


def describe(spec: dict[str, Any]) -> dict[str, Any]:
    """Every task, with what its box needs."""
    config = env_config(spec)
    taskset = vf.load_taskset(config.taskset)
    if not taskset.bounded and spec["limit"] is None:
        raise ValueError("the taskset never ends: say how many tasks with ?limit=N")
    kind, shared = type(taskset).task_type(), type(taskset).toolsets(config.taskset)
    tasks = [_task(task) for task in itertools.islice(taskset, spec["limit"])]
    toolsets = [*kind.toolsets(config.taskset.task), *shared]
    if inside := [one.server_name for one in toolsets if getattr(one.config, "colocated", False)]:
        raise ValueError(
            f"tool server '{inside[0]}' wants to run inside the agent's box (colocated), which is not supported"
        )
    tools = [one.server_name for one in toolsets]
    return {"tasks": tasks, "tools": tools, "seats": list(agent_config_fields(config)), "version": _version()}


def _version() -> str:
    from verifiers import __version__

    return str(__version__)


def _task(task: Any) -> dict[str, Any]:
    data = task.data
    try:
        said = flatten(data.system_prompt, data.prompt)
    except ValueError as error:
        raise ValueError(f"task {data.idx}: {error}") from None
    return {
        "data": data.model_dump(mode="json"),
        "instruction": said,
        "description": data.description or data.name or "",
        "image": data.image,
        "workdir": data.workdir,
        "needs_container": task.NEEDS_CONTAINER,
        "user": data.agent_user,
        "allow": data.network_allow,
        "block": data.network_block,
        "resources": data.resources.model_dump(mode="json"),
        "timeout": data.timeout.model_dump(mode="json"),
        "skills": len(data.skills),
    }


def env_config(spec: dict[str, Any]) -> Any:
    """Every seat is BenchFlow's agent."""
    wanted = {"taskset": {**spec["args"], "id": spec["id"]}}
    seats = agent_config_fields(vf.resolve_env_config(wanted))
    ours = {"harness": {"id": "benchflow_harness"}, "runtime": {"type": "subprocess"}}
    return vf.resolve_env_config({**wanted, **dict.fromkeys(seats, ours)})


class BoxRuntime(vf.Runtime):
    """The agent's box, as the environment's hooks see it."""

    supports_user = True

    def __init__(self, play: Play, data: Any) -> None:
        super().__init__()
        self.play = play
        image = {"image": data.image} if data.image else {}
        self.config = DockerConfig(**image, allow=data.network_allow, block=data.network_block)
        self.info = DockerRuntimeInfo(**self.config.model_dump())

    async def start(self) -> None:
        pass

    async def run(self, argv: list[str], env: dict[str, str]) -> Any:
        done = await self.play.ask("run", argv=argv, env=self.process_env(env), user=self.user)
        return vf.ProgramResult(done["exit_code"], done["stdout"], done["stderr"])

    async def _read(self, path: str, max_bytes: int | None = None) -> bytes:
        return base64.b64decode(await self.play.ask("read", path=path, limit=max_bytes, user=self.user))

    async def write(self, path: str, data: bytes) -> None:
        await self.play.ask("write", path=path, data=base64.b64encode(data).decode(), user=self.user)

    async def teardown(self) -> None:
        pass


class Lent:
    """An environment's agents, each placed into the box there is."""

    def __init__(self, agents: Any) -> None:
        self._agents = agents

    def __getattr__(self, seat: str) -> LentAgent:
        return LentAgent(getattr(self._agents, seat))


class LentAgent:
    def __init__(self, agent: Any) -> None:
        self._agent = agent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    def run(self, task: Any, *, runtime: Any = None, **more: Any) -> Any:
        return self._agent.run(task, runtime=runtime or _playing.get(), **more)

    def interaction(self, task: Any, *, runtime: Any = None, **more: Any) -> Any:
        return self._agent.interaction(task, runtime=runtime or _playing.get(), **more)

    @contextlib.asynccontextmanager
    async def provision(self, task: Any = None) -> AsyncIterator[BoxRuntime]:
        yield _playing.get()


async def open_game(spec: dict[str, Any]) -> Game:
    config = env_config(spec)
    base = environment_class(config.taskset.id, config.id)

    async def run(self: Any, task: Any, agents: Any) -> None:
        await base.run(self, task, Lent(agents))

    env = type(base.__name__, (base,), {"run": run})(config)
    game = Game(env, contextlib.AsyncExitStack())
    await game.open()
    return game


class Game:
    """One environment that is being served, and the endpoint that stands for its model."""

    def __init__(self, env: Any, stack: contextlib.AsyncExitStack) -> None:
        self._env, self._stack = env, stack

    async def open(self) -> None:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/v1/chat/completions", _repeat)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        os.environ.setdefault("BENCHFLOW_NO_KEY", "none")
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        client = vf.EvalClientConfig(base_url=url, api_key_var="BENCHFLOW_NO_KEY")
        self._context = vf.ModelContext(model="agent", client=client, sampling=vf.SamplingConfig())
        await self._stack.enter_async_context(self._env.serving())

    async def play(self, play: Play, data: dict[str, Any]) -> dict[str, Any]:
        kind = type(self._env.taskset).task_type()
        task = kind(kind.data_type().model_validate(data), self._env.config.taskset.task)
        _playing.set(BoxRuntime(play, task.data))
        (slot,) = self._env.slots(task, 1)
        episode = await self._env.run_slot(slot, self._context)
        for trace in episode.traces:
            SAID.pop(trace.id, None)
        errors = [*episode.errors, *(error for trace in episode.traces for error in trace.errors)]
        if errors:
            return {"error": {"type": errors[0].type, "message": errors[0].message[:1000]}}
        trace = episode.traces[0]
        return {
            "reward": trace.reward,
            "rewards": {
                name: one and {"score": one.score, "weight": one.weight} for name, one in trace.rewards.items()
            },
            "metrics": trace.metrics,
            "stop_condition": trace.stop_condition,
            "turns": trace.num_turns,
        }


async def _repeat(request: web.Request) -> web.Response:
    message = SAID[request.headers["X-Session-ID"]]
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    answer = {"id": "benchflow", "object": "chat.completion", "created": int(time.time()), "model": "agent"}
    return web.json_response({**answer, "choices": [choice], "usage": usage})
