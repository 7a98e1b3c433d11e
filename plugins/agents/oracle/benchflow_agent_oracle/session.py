"""Runs a solution script in the box: brought in only now, its output kept, put out of reach afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from benchflow_core.contracts import ExecResult, PromptOutcome, SessionContext, SessionEvent, Solution
from benchflow_core.errors import AgentTimeout, InfrastructureError, TaskError

__all__ = ["OracleSession", "find_solution"]

_SHOWN = 64 * 1024
_HOUSEKEEPING = 60.0

_MAKE_READY = """
chmod 700 "$1" && { [ -x "$2" ] || chmod u+x "$2"; } || exit 97
{ [ -d "${3%/*}" ] || mkdir -p "${3%/*}"; } && : > "$3" || exit 97
[ "$4" = root ] || chown "$4" "$1" "$2" "$3" || exit 97
"""
# A script without a first line of its own is bash's, where there is one. Output goes to a file and not through us, so
# that a server which the solution leaves running keeps a place to write to.
_RUN = """
if [ "$6" = itself ]; then "$2"; else "$(command -v bash || command -v sh)" -c '"$0"' "$2"; fi > "$3" 2>&1 < /dev/null
code=$?
[ ! -s "$3" ] || tail -c "$5" "$3"
echo "ran $code" >&2
exit "$code"
"""
_CLEAR = 'rm -rf -- "$1"'
_LOCK = 'chown 0 "$1" 2>/dev/null; chmod 700 "$1"'


def find_solution(context: SessionContext) -> Solution:
    """The step's own, else the task's."""
    solution = (context.step.solution if context.step else None) or context.task.solution
    where = (
        f"step '{context.step.name}' of task '{context.task.name}'" if context.step else f"task '{context.task.name}'"
    )
    if solution is None:
        raise TaskError(f"{where} has no reference solution.", remedy="Add solution/solve.sh or use another agent.")
    script = solution.dir / solution.script
    if not script.is_file():
        raise TaskError(f"{where}: {script} does not exist.", remedy="The oracle runs exactly this script.")
    return solution


class OracleSession:
    """One turn plays the solution, whatever the prompt says."""

    def __init__(self, context: SessionContext, solution: Solution) -> None:
        self._context = context
        self._solution = solution
        self._user = context.agent.user
        self._script = f"{solution.target.rstrip('/')}/{solution.script}"
        with (solution.dir / solution.script).open("rb") as script:
            self._how = "itself" if script.read(2) == b"#!" else "by-shell"
        self._log = f"{context.log_dir.rstrip('/')}/oracle.txt"
        self._turns = 0
        self._running: asyncio.Task[ExecResult] | None = None

    @property
    def id(self) -> str:
        return "oracle"

    async def prompt(self, text: str) -> PromptOutcome:
        """A script that fails ends its turn like any other: what it is worth, the verifier says."""
        self._turns += 1
        call: dict[str, Any] = {"toolCallId": f"oracle-{self._turns}"}
        raw_input = {"command": self._script, "cwd": self._context.agent.workdir, "user": self._user}
        shown = {"title": self._script, "kind": "execute", "status": "in_progress", "rawInput": raw_input}
        self._emit("tool_call", {**call, **shown})
        self._running = asyncio.create_task(self._play())
        try:
            done = await self._running
        except asyncio.CancelledError:
            self._emit("tool_call_update", {**call, "status": "failed", "rawOutput": {"cancelled": True}})
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return PromptOutcome("cancelled", data={"log": self._log})
        finally:
            self._running = None
        return self._finished(call, done)

    async def cancel(self) -> None:
        """Ends the script with everything it started."""
        if self._running is not None:
            self._running.cancel()

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    def _finished(self, call: Mapping[str, Any], done: ExecResult) -> PromptOutcome:
        output = done.stdout.decode("utf-8", "replace")
        raw_output = {"exit_code": done.exit_code, "output": output, "log": self._log, "timed_out": done.timed_out}
        content = [{"type": "content", "content": {"type": "text", "text": output}}] if output else []
        status = "failed" if done.exit_code or done.timed_out else "completed"
        self._emit("tool_call_update", {**call, "status": status, "content": content, "rawOutput": raw_output})
        if done.timed_out:
            raise AgentTimeout(
                f"{self._script} did not end within {self._solution.timeout:g} s.",
                details={"reason": "wall-clock", "timeout": self._solution.timeout},
            )
        return PromptOutcome("end_turn", data={"exit_code": done.exit_code, "log": self._log})

    async def _play(self) -> ExecResult:
        """One command where the agent is root; otherwise root makes ready and locks around it."""
        solution, as_root = self._solution, self._user in ("root", "0")
        if self._context.step is not None:  # an earlier step's solution may lie there
            await self._sh(_CLEAR, root=True, timeout=_HOUSEKEEPING)
        await self._context.sandbox.upload(solution.dir, solution.target, user=self._user)
        if as_root:
            done = await self._sh(_MAKE_READY + _RUN, timeout=solution.timeout)
            return self._checked(done)
        self._checked(await self._sh(_MAKE_READY, root=True, timeout=_HOUSEKEEPING))
        try:
            return self._checked(await self._sh(_RUN, timeout=solution.timeout))
        finally:
            with suppress(InfrastructureError):  # a box that is gone keeps nothing to lock
                await self._sh(_LOCK, root=True, timeout=_HOUSEKEEPING)

    def _checked(self, done: ExecResult) -> ExecResult:
        """One that never came to run is not one that failed."""
        code = done.exit_code
        if code in (97, 126, 127) and not done.stderr.rstrip().endswith(b"ran %d" % code):
            reason = done.stderr.decode("utf-8", "replace").strip()[-300:]
            raise TaskError(f"the solution could not be made ready at {self._solution.target}: {reason}.")
        return done

    async def _sh(self, script: str, *, timeout: float | None, root: bool = False) -> ExecResult:
        arguments = (self._solution.target, self._script, self._log, self._user, str(_SHOWN), self._how)
        agent = self._context.agent
        return await self._context.sandbox.exec(
            ("sh", "-c", script, "sh", *arguments),
            cwd="/" if root else agent.workdir,
            user="root" if root else self._user,
            env=None if root else {**agent.env, "DEBIAN_FRONTEND": "noninteractive", **self._context.solution_env},
            timeout=timeout,
        )

    def _emit(self, kind: str, data: Mapping[str, Any]) -> None:
        self._context.emit(SessionEvent(kind, {"sessionUpdate": kind, **data}))
