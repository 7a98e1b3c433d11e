"""A task's box without an agent: for loops that hold the model themselves, in training or in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchflow_core.contracts.sandboxes import ExecResult, Sandbox
from benchflow_core.errors import BenchflowError, ConfigurationError
from benchflow_core.rollout import Host, Rollout, RolloutConfig, RolloutResult

__all__ = ["BashToolResult", "TaskRuntime", "TaskRuntimeConfig", "TaskRuntimeResult"]

TaskRuntimeConfig = RolloutConfig
TaskRuntimeResult = RolloutResult

_PLACE = {"scene": "default", "role": "caller", "turn": 1}


@dataclass(frozen=True)
class BashToolResult:
    """What a command printed, as text a model can be given."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool = False
    truncated: bool = False

    @classmethod
    def of(cls, done: ExecResult) -> BashToolResult:
        out, err = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
        return cls(done.exit_code, out, err, done.timed_out, done.truncated)

    @property
    def output(self) -> str:
        """Both streams, one after the other."""
        return self.stdout + self.stderr


class TaskRuntime:
    """One life of a task: `create`, any number of `bash`, `verify`, `close`. Every call is in its event log.

    An async context manager: whatever happens inside, the box goes and the result is written.
    """

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        self._numbers = count(1)

    @classmethod
    async def create(
        cls,
        task: str | Path | RolloutConfig,
        *,
        sandbox: str | None = None,
        agent: str = "nop",
        host: Host | None = None,
        **settings: Any,
    ) -> Self:
        """Start the task's box. `agent` plays no part but is named in the result; `settings` are fields of
        `RolloutConfig`. Runtimes that are given one `Host` share its images and its sandbox."""
        if not isinstance(task, RolloutConfig):
            task = RolloutConfig(task_path=Path(task), agent=agent, sandbox=sandbox, **settings)
        rollout = await Rollout.create(task, host)
        if rollout.plan.task.steps:
            raise ConfigurationError(
                f"task '{rollout.plan.task.name}' has several steps, and TaskRuntime plays one.",
                remedy="Use bf.Rollout, which goes from step to step.",
            )
        made = cls(rollout)
        try:
            await rollout.setup()
            await rollout.start()
            await rollout.install_agent()
        except BenchflowError as error:
            rollout.fail(error)
            await rollout.cleanup()
            raise
        except BaseException:
            await rollout.cleanup()
            raise
        rollout.record.event("turn_started", {"prompt": made.instruction}, **_PLACE)
        return made

    @property
    def instruction(self) -> str:
        return self.rollout.instruction()

    @property
    def sandbox(self) -> Sandbox:
        """The box itself: files, processes, ports, snapshots."""
        return self.rollout.sandbox

    async def bash(
        self, command: str, *, timeout: float | None = None, max_output: int = 1024 * 1024
    ) -> BashToolResult:
        """Run it as the agent would: its user, its working directory. A time-out ends what it started."""
        rollout = self.rollout
        call: dict[str, Any] = {"toolCallId": f"bash-{next(self._numbers)}"}
        shown = {"title": command[:200], "kind": "execute", "status": "in_progress", "rawInput": {"command": command}}
        rollout.record.event("tool_call", {**call, **shown}, **_PLACE)
        env = {"HOME": rollout.agent_home, **rollout.plan.features.env}
        done = await rollout.sandbox.exec(
            ("bash", "-c", command),
            cwd=rollout.workdir, env=env, user=rollout.agent_user, timeout=timeout, max_output=max_output,
        )  # fmt: skip
        result = BashToolResult.of(done)
        content = [{"type": "content", "content": {"type": "text", "text": result.output}}]
        raw = {"exit_code": result.exit_code, "timed_out": result.timed_out}
        status = "failed" if result.exit_code or result.timed_out else "completed"
        rollout.record.event(
            "tool_call_update", {**call, "status": status, "content": content, "rawOutput": raw}, **_PLACE
        )
        return result

    async def verify(self) -> RolloutResult:
        """Score the box as it stands, as after an agent. The box goes on; a later call scores it anew."""
        rollout = self.rollout
        try:
            await rollout.gather()
            await rollout.verify()
        except BenchflowError as error:
            rollout.fail(error)
        return rollout.result

    async def close(self) -> RolloutResult:
        """End the box and write the result. Safe to call again."""
        if self.rollout.phase != "cleaned":
            self.rollout.record.event("turn_finished", {"stop_reason": "end_turn"}, **_PLACE)
        return await self.rollout.cleanup()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, BenchflowError):
            self.rollout.fail(error)
        await self.close()
