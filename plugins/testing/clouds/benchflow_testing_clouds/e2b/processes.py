"""envd's processes: started, followed, followed again, written to. They outlive the connection that started them."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from e2b.envd.process import process_pb as pb
from protobuf import Oneof

from benchflow_core.contracts import Process
from benchflow_core.errors import BenchflowError
from benchflow_testing_clouds.backing import BackedBox
from benchflow_testing_clouds.e2b.connect import CONTENT_TYPE, ConnectAnswer, envelopes
from benchflow_testing_clouds.e2b.schema import E2bRefusal, message
from benchflow_testing_clouds.ledger import Fault, Ledger
from benchflow_testing_clouds.terminal import TERMINAL

__all__ = ["Processes", "user_of"]

_AHEAD = 64


@dataclass
class EnvdProcess:
    pid: int
    config: Any
    process: Process
    terminal: bool
    tag: str | None
    followers: list[asyncio.Queue[Any]] = field(default_factory=list)
    ended: Any = None

    async def tell(self, event: Any) -> None:
        """Whoever reads slowly holds the process up; whoever does not read at all gets nothing."""
        for queue in list(self.followers):
            await queue.put(event)


def user_of(request: web.Request) -> str:
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    return base64.b64decode(value).decode().partition(":")[0] if kind == "Basic" else ""


class Processes:
    """The process table of one box."""

    def __init__(self, box: BackedBox, user: str, workdir: str, ledger: Ledger) -> None:
        self._box, self._user, self._workdir, self._ledger = box, user, workdir, ledger
        self._known: dict[int, EnvdProcess] = {}
        self._numbers = itertools.count(1000)
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle(self, request: web.Request, name: str, fault: Fault | None) -> web.StreamResponse:
        streaming = name in ("Start", "Connect", "StreamInput")
        kind = request.content_type
        if kind != (CONTENT_TYPE if streaming else "application/json"):
            self._ledger.violation(f"{name}: sent as {kind}")
            raise E2bRefusal(415, "Unsupported Media Type")
        if name == "StreamInput":
            return await self._stream_input(request, fault)
        if streaming:
            bodies = [body async for body in envelopes(request.content)]
            if len(bodies) != 1:
                self._ledger.violation(f"{name}: {len(bodies)} messages instead of one")
                raise E2bRefusal(400, "one message")
            return await (self._start if name == "Start" else self._connect)(request, bodies[0], fault)
        body = await request.read()
        return web.Response(body=(await self._unary(name, body)).to_json(), content_type="application/json")

    def _find(self, selector: Any) -> EnvdProcess:
        match selector.selector if selector is not None else None:
            case Oneof(field="pid", value=pid) if pid in self._known:
                return self._known[pid]
            case Oneof(field="tag", value=tag):
                for found in self._known.values():
                    if found.tag == tag:
                        return found
        raise E2bRefusal(404, "process not found")

    # --- following -------------------------------------------------------------------------------------------------

    async def _start(self, request: web.Request, body: bytes, fault: Fault | None) -> web.StreamResponse:
        asked = message(pb.StartRequest, body, self._ledger, "Start")
        config = asked.process
        argv, env = [config.cmd, *config.args], dict(config.envs)
        options: dict[str, Any] = {
            "cwd": config.cwd or self._workdir,
            "env": env,
            "user": user_of(request) or self._user,
        }
        terminal = asked.pty is not None
        if terminal:
            size = asked.pty.size
            argv = [self._box.python, "-c", TERMINAL, str(size.cols), str(size.rows), *argv]
        process = await self._box.spawn(argv, **options)
        if not terminal and asked.has_field("stdin") and not asked.stdin:
            await process.close_stdin()
        tag = asked.tag if asked.has_field("tag") else None
        running = EnvdProcess(next(self._numbers), config, process, terminal, tag)
        self._known[running.pid] = running
        queue = self._follow(running)
        task = asyncio.ensure_future(self._pump(running))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await self._stream(request, running, queue, pb.StartResponse, fault)

    async def _connect(self, request: web.Request, body: bytes, fault: Fault | None) -> web.StreamResponse:
        asked = message(pb.ConnectRequest, body, self._ledger, "Connect")
        running = self._find(asked.process)
        return await self._stream(request, running, self._follow(running), pb.ConnectResponse, fault)

    @staticmethod
    def _follow(running: EnvdProcess) -> asyncio.Queue[Any]:
        queue: asyncio.Queue[Any] = asyncio.Queue(_AHEAD)
        running.followers.append(queue)
        return queue

    async def _stream(
        self, request: web.Request, running: EnvdProcess, queue: asyncio.Queue[Any], model: Any, fault: Fault | None
    ) -> web.StreamResponse:
        out, sent = ConnectAnswer(request), 0
        limit = fault.after_bytes if fault is not None else None
        try:
            await out.open()
            start: Any = Oneof("start", pb.ProcessEvent.StartEvent(pid=running.pid))
            await out.send(model(event=pb.ProcessEvent(event=start)))
            while True:
                event = await queue.get()
                if event.field == "data":
                    sent += len(event.value.output.value)
                    if limit is not None and sent > limit:
                        return out.cut()
                await out.send(model(event=pb.ProcessEvent(event=event)))
                if event.field == "end":
                    return await out.close()
        except ConnectionResetError:  # nobody listens any more
            return out.cut()
        finally:
            running.followers.remove(queue)
            with contextlib.suppress(asyncio.QueueEmpty):  # the pump may be waiting for room
                while True:
                    queue.get_nowait()

    async def _pump(self, running: EnvdProcess) -> None:
        process, code = running.process, 137

        async def take(read: Any, name: str) -> None:
            while data := await read():
                output: Any = Oneof("pty" if running.terminal else name, data)
                await running.tell(Oneof("data", pb.ProcessEvent.DataEvent(output=output)))

        with contextlib.suppress(BenchflowError):
            await asyncio.gather(take(process.read, "stdout"), take(process.read_stderr, "stderr"))
            code = await process.wait()
        self._known.pop(running.pid, None)
        end = pb.ProcessEvent.EndEvent(exit_code=code, exited=True, status=f"exit status {code}")
        await running.tell(Oneof("end", end))

    # --- writing ---------------------------------------------------------------------------------------------------

    async def _stream_input(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        running, got = None, 0
        limit = fault.after_bytes if fault is not None else None
        out = ConnectAnswer(request)
        async for body in envelopes(request.content):
            asked = message(pb.StreamInputRequest, body, self._ledger, "StreamInput")
            match asked.event:
                case Oneof(field="start", value=start):
                    running = self._find(start.process)
                case Oneof(field="data", value=data):
                    if running is None:
                        self._ledger.violation("StreamInput: data before start")
                        raise E2bRefusal(400, "data before start")
                    got += len(data.input.input.value)
                    if limit is not None and got > limit:
                        return out.cut()
                    await self._write(running, data.input)
        await out.open()
        await out.send(pb.StreamInputResponse())
        return await out.close()

    async def _write(self, running: EnvdProcess, given: Any) -> None:
        if (given.input.field == "pty") != running.terminal:
            self._ledger.violation(f"input for {given.input.field}, which process {running.pid} has not")
            raise E2bRefusal(400, "wrong kind of input")
        await running.process.write(given.input.value)

    async def _unary(self, name: str, body: bytes) -> Any:
        if name == "List":
            message(pb.ListRequest, body, self._ledger, name)
            rows = [pb.ProcessInfo(config=row.config, pid=row.pid, tag=row.tag) for row in self._known.values()]
            return pb.ListResponse(processes=rows)
        if name == "SendInput":
            asked = message(pb.SendInputRequest, body, self._ledger, name)
            await self._write(self._find(asked.process), asked.input)
            return pb.SendInputResponse()
        if name == "CloseStdin":
            asked = message(pb.CloseStdinRequest, body, self._ledger, name)
            await self._find(asked.process).process.close_stdin()
            return pb.CloseStdinResponse()
        if name == "SendSignal":
            asked = message(pb.SendSignalRequest, body, self._ledger, name)
            await self._find(asked.process).process.kill()
            return pb.SendSignalResponse()
        raise NotImplementedError
