"""The task command router: commands in a running sandbox, their streams, and its network."""

from __future__ import annotations

from typing import Any

from grpclib import Status
from modal_proto import api_pb2
from modal_proto import task_command_router_pb2 as wire
from modal_proto.task_command_router_grpc import TaskCommandRouterBase

from benchflow_testing_clouds.ledger import Ledger
from benchflow_testing_clouds.modal.commands import ExecCommand
from benchflow_testing_clouds.modal.service import GrpcService, abort
from benchflow_testing_clouds.modal.state import KnownModalSandbox, ModalWorld, refuse

__all__ = ["Router"]

_MESSAGE = 4 << 20


class Router(GrpcService):
    base = TaskCommandRouterBase

    def __init__(self, world: ModalWorld, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.world = world

    def authorize(self, name: str, metadata: Any) -> None:
        kind, _, token = str(metadata.get("authorization") or "").partition(" ")
        if kind != "Bearer" or all(known.jwt != token for known in self.world.sandboxes.values()):
            raise refuse(Status.UNAUTHENTICATED, "no access to a command router")

    async def dies(self, request: Any) -> None:
        failed = api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_FAILURE)
        await self.world.end(self.world.of_task(request.task_id), failed)

    def _command(self, request: Any) -> ExecCommand:
        found = self.world.of_task(request.task_id).execs.get(request.exec_id)
        if found is None:
            raise refuse(Status.NOT_FOUND, f"no command {request.exec_id}")
        command: ExecCommand = found
        return command

    async def TaskExecStart(self, stream: Any, request: Any, __: Any) -> None:
        known = self.world.of_task(request.task_id)
        if request.exec_id not in known.execs:  # sent again after a dropped connection: the same command
            known.execs[request.exec_id] = await self._start(known, request)
        await stream.send_message(wire.TaskExecStartResponse())

    async def _start(self, known: KnownModalSandbox, request: Any) -> ExecCommand:
        assert known.box is not None
        env: dict[str, str] = dict(request.env)
        for source in request.secret_sources:
            if source.secret_id:
                self.ledger.violation("TaskExecStart: this server has no secrets")
            env.update(source.env.contents)
        cwd = request.workdir or None
        argv = list(request.command_args)
        if request.HasField("pty_info") and request.pty_info.enabled:
            process = await known.box.terminal(argv, cwd=cwd, env=env)
        else:
            process = await known.box.spawn(argv, cwd=cwd, env=env, user="root")
        out = request.stdout_config == wire.TASK_EXEC_STDOUT_CONFIG_PIPE
        return ExecCommand(process, out, request.stderr_config == wire.TASK_EXEC_STDERR_CONFIG_PIPE)

    async def TaskExecStdioRead(self, stream: Any, request: Any, fault: Any) -> None:
        command = self._command(request)
        errors = request.file_descriptor == wire.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDERR
        left = None if fault is None else fault.after_bytes
        async for data in command.outputs[1 if errors else 0].read(request.offset):
            part = data if left is None else data[:left]
            if part:
                await stream.send_message(wire.TaskExecStdioReadResponse(data=part))
            if left is not None and (left := left - len(part)) <= 0:
                abort(stream)
                return
        if command.gone:
            raise refuse(Status.NOT_FOUND, f"Task {request.task_id} is not running")

    async def TaskExecStdinWrite(self, stream: Any, request: Any, __: Any) -> None:
        if len(request.data) > _MESSAGE * 4:
            raise refuse(Status.INVALID_ARGUMENT, "message is too large")
        await self._command(request).write(request.offset, request.data, request.eof)
        await stream.send_message(wire.TaskExecStdinWriteResponse())

    async def TaskExecStdinStatus(self, stream: Any, request: Any, __: Any) -> None:
        command = self._command(request)
        answer = wire.TaskExecStdinStatusResponse(num_bytes_written=command.written, closed=command.closed)
        await stream.send_message(answer)

    async def TaskExecStdinWriteStream(self, stream: Any, request: Any, __: Any) -> None:
        command, offset = self._command(request.start), request.start.offset
        while (message := await stream.recv_message()) is not None:
            if message.WhichOneof("payload") == "end":
                await command.write(offset, b"", True)
                break
            await command.write(offset, message.data, False)
            offset += len(message.data)
        await stream.send_message(wire.TaskExecStdinWriteStreamResponse())

    async def TaskExecWait(self, stream: Any, request: Any, __: Any) -> None:
        command = self._command(request)
        await command.finished.wait()
        await stream.send_message(wire.TaskExecWaitResponse(**_status(command, request)))

    async def TaskExecPoll(self, stream: Any, request: Any, __: Any) -> None:
        command = self._command(request)
        status = _status(command, request) if command.finished.is_set() else {}
        await stream.send_message(wire.TaskExecPollResponse(**status))

    async def SandboxStdinWriteV2(self, stream: Any, request: Any, __: Any) -> None:
        known = self.world.of_task(request.task_id)
        if known.main is None:
            raise refuse(Status.FAILED_PRECONDITION, "the sandbox has no standard input")
        await known.main.write(request.offset, request.data, request.eof)
        await stream.send_message(wire.SandboxStdinWriteV2Response())

    async def SandboxStdioReadV2(self, stream: Any, request: Any, __: Any) -> None:
        known = self.world.of_task(request.task_id)
        errors = request.file_descriptor == wire.SANDBOX_STDIO_FILE_DESCRIPTOR_STDERR
        offset = request.offset
        if known.main is not None:
            async for data in known.main.outputs[1 if errors else 0].read(offset):
                await stream.send_message(wire.SandboxStdioReadV2Response(data=data, starting_offset=offset))
                offset += len(data)

    async def TaskSetNetworkAccess(self, stream: Any, request: Any, __: Any) -> None:
        await self.world.set_network(self.world.of_task(request.task_id), request.network_access)
        await stream.send_message(wire.TaskSetNetworkAccessResponse())


def _status(command: ExecCommand, request: Any) -> dict[str, int]:
    if command.gone or command.code is None:
        raise refuse(Status.NOT_FOUND, f"Task {request.task_id} is not running")
    return {"code": command.code} if command.code >= 0 else {"signal": -command.code}
