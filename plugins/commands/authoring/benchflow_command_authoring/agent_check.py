"""`bench agent check`: install an agent here, run turns against a scripted local model, and say what works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from benchflow_command_authoring.completion import one_of
from benchflow_command_authoring.write_task import init_task
from benchflow_core.contracts import AgentSpec, Check, private_folder
from benchflow_core.errors import AgentTimeout, BenchflowError, ConfigurationError, ProviderError

if TYPE_CHECKING:
    from benchflow_core.contracts import CommandContext
    from benchflow_core.contracts.core import Core, OpenRollout

__all__ = ["check"]

_ROLE = "agent"
_MARKS = {"ok": "✓", "fail": "✗", "skip": "–", "warn": "!"}
_FILE = "benchflow-check.txt"
_CONTENT = "written by the agent, as the local model told it to\n"


@click.command("check")
@click.argument("name", shell_complete=one_of("agent"))
@click.option("-e", "--sandbox", shell_complete=one_of("sandbox"), help="Where to run; else the best that answers.")
@click.option(
    "--agent-option", "agent_options", multiple=True, metavar="K=V", help="An option of the agent; repeatable."
)
@click.option(
    "--timeout", type=float, default=900.0, show_default=True, help="Seconds for all of it, install included."
)
@click.pass_obj
def check(ui: CommandContext, name: str, sandbox: str | None, agent_options: tuple[str, ...], timeout: float) -> None:
    """Install an agent here and try it on a scripted local model: no key, no cost.

    \b
    bench agent check pi
    bench agent check ./agent.toml --sandbox docker

    Exit code 1 when something does not work. Needs benchflow-testing, which has the model.
    """
    options = dict(_key_and_value(option) for option in agent_options)
    found: list[Check] = []

    def say(one: Check) -> None:
        found.append(one)
        if not ui.json:
            ui.out(f"{_MARKS[one.status]} {one.name:<16}{one.detail}")

    core = ui.core()
    core.run(_run(core, name, sandbox, options, timeout, say))
    failed = any(one.status == "fail" for one in found)
    rows = [{"name": one.name, "status": one.status, "detail": one.detail} for one in found]
    ui.emit({"agent": name, "ok": not failed, "checks": rows}, lambda: None)
    if failed:
        raise SystemExit(1)


def _key_and_value(option: str) -> tuple[str, str]:
    key, separator, value = option.partition("=")
    if not separator or not key:
        raise click.BadParameter(f"{option!r} is not K=V.", param_hint="'--agent-option'")
    return key, value


async def _run(
    core: Core,
    name: str,
    sandbox: str | None,
    options: dict[str, str],
    timeout: float,
    say: Callable[[Check], None],
) -> None:
    spec: AgentSpec = core.plugin("agent", name).spec
    try:
        async with asyncio.timeout(timeout), _rollout(core, name, spec, sandbox, options) as (rollout, model):
            await _Checks(spec, rollout, model, say).run()
    except AgentTimeout:  # the agent's own, which is a TimeoutError, too
        raise
    except TimeoutError:
        raise AgentTimeout(f"checking '{name}' took longer than {timeout:g} s.", remedy="Add --timeout.") from None


@asynccontextmanager
async def _rollout(
    core: Core, name: str, spec: AgentSpec, sandbox: str | None, options: dict[str, str]
) -> AsyncIterator[tuple[OpenRollout, Any]]:
    """Open a rollout on a task made for it, whose model is the local one."""
    try:
        from benchflow_testing import LocalModel
    except ImportError:
        remedy = f"Run: {core.install_command('benchflow-testing')}"
        raise ConfigurationError("checking an agent needs a local model.", remedy=remedy) from None
    with private_folder() as folder:
        async with LocalModel() as model:
            provider, env = core.provider_at(spec.wires[0], model.base_url) if spec.wires else (None, {})
            task, _ = init_task(core, "check", folder, pytest=False)
            async with core.host(env) as host:
                rollout = await host.rollout(
                    task,
                    agent=name,
                    model=f"{provider}/local-model" if provider else None,
                    sandbox=sandbox,
                    agent_options=options,
                    allow_substitute=True,
                    jobs_dir=folder / "jobs",
                )
                try:
                    yield rollout, model
                finally:
                    await rollout.cleanup()


class _Checks:
    """The checks of one agent, one after the other."""

    def __init__(self, spec: AgentSpec, rollout: OpenRollout, model: Any, say: Callable[[Check], None]) -> None:
        self._spec = spec
        self._rollout = rollout
        self._model = model
        self._say = say
        self._path = ""

    async def run(self) -> None:
        """Run the checks of the plugin, then ours; the first three are what the rest stands on."""
        for one in self._spec.check():
            if one.status != "ok":
                self._say(one)
        await self._rollout.setup()
        for name, work in (("install", self._install), ("session", self._session), ("prompt", self._prompt)):
            if not await self._try(name, work):
                return
        if self._spec.wires:
            await self._try("tool call", self._tool)
            await self._try("second prompt", self._prompt)
            await self._try("model calls", self._calls)
            await self._try("failing model", self._failure)

    async def _try(self, name: str, work: Callable[[], Awaitable[str]]) -> bool:
        try:
            detail = await work()
        except BenchflowError as error:
            self._say(Check(name, "fail", str(error)))
            return False
        self._say(Check(name, "ok", detail))
        return True

    async def _install(self) -> str:
        before = self._rollout.seconds
        await self._rollout.start()
        await self._rollout.install_agent()
        layers = ", ".join(layer.key for layer in self._rollout.plan.layers()) or "nothing to install"
        return f"{layers}: in the box after {self._rollout.seconds - before:.1f} s"

    async def _session(self) -> str:
        before = self._rollout.seconds
        await self._rollout.connect()
        return f"ready after {self._rollout.seconds - before:.1f} s"

    async def _prompt(self) -> str:
        turn = await self._rollout.prompt(_ROLE, '[[fake:say text="all is well"]]')
        return f"ended with {turn.outcome.stop_reason}"

    async def _tool(self) -> str:
        self._path = f"{self._rollout.workdir.rstrip('/')}/{_FILE}"
        step = {"text": "I write it.", "tools": [{"do": "write", "path": self._path, "content": _CONTENT}]}
        self._model.script("check", [step, "Done."])
        turn = await self._rollout.prompt(_ROLE, "[[fake:check]]")
        done = await self._rollout.sandbox.exec(("cat", self._path), timeout=30)
        if done.stdout.decode("utf-8", "replace") != _CONTENT:
            raise ConfigurationError("the file that the model asked for is not in the box, or not as asked for.")
        return f"{turn.n_tool_calls} recorded, the file is there"

    async def _calls(self) -> str:
        recorded = [exchange async for exchange in self._rollout.models.agent_exchanges()]
        asked = [seen for seen in self._model.log if seen.wire]
        through = [exchange for exchange in recorded if exchange.error_type != "refused"]
        if len(through) != len(asked):
            raise ConfigurationError(f"the gateway recorded {len(through)} calls, the model answered {len(asked)}.")
        usage = await self._rollout.models.so_far()
        return f"{len(asked)} through the gateway, {usage.input_tokens} tokens in, {usage.output_tokens} out"

    async def _failure(self) -> str:
        try:
            turn = await self._rollout.prompt(_ROLE, "[[fake:fail]]")
        except ProviderError:
            return "told apart from a failure of the agent"
        raise ConfigurationError(f"a turn whose model calls failed ended with {turn.outcome.stop_reason}.")
