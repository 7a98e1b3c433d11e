"""Agents: a pure description of how to start them, and a session that can be had, cancelled and closed."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from benchflow_core.contracts import AgentContext, AgentSpec, Launch, ModelEndpoint, Sandbox, SessionEvent
from benchflow_core.contracts.gateways import Wire
from benchflow_core.errors import AgentError
from benchflow_testing_kit.audit import effects
from benchflow_testing_kit.boxed import BoxedSuite, scripted_model
from benchflow_testing_kit.host import eventually
from benchflow_testing_kit.launching import Opened, agent_context, open_agent
from benchflow_testing_kit.sandbox.bench import Bench, ok
from benchflow_testing_kit.suite import limit

__all__ = ["AgentConformance"]

KEY, SECRET = "kit-key-5c1d0e9a", "kit-secret-77a0b2f4"
URL = "http://127.0.0.1:40404"
REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
COMMAND_LINES = "for f in /proc/[0-9]*/cmdline; do cat $f 2>/dev/null | tr '\\000' ' '; echo; done"

Open = Callable[[], Awaitable[Opened]]


class AgentConformance(BoxedSuite):
    """Fixtures: `plugin`; where it matters `sandbox` (default `local`), `agent_options`, `agent_env`, `prompt`, and
    `model_endpoint` (a model server on this host) for agents that need a model."""

    kind: ClassVar[str] = "agent"
    settings: ClassVar[frozenset[str]] = BoxedSuite.settings | {
        "agent_options",
        "agent_env",
        "prompt",
        "model_endpoint",
    }

    @pytest.fixture
    def agent_options(self) -> Mapping[str, str]:
        """`--agent-option` values."""
        return {}

    @pytest.fixture
    def agent_env(self) -> Mapping[str, str]:
        """`--agent-env` values."""
        return {}

    @pytest.fixture
    def prompt(self) -> str:
        return "Say hello."

    @pytest.fixture
    def model_endpoint(self, request: pytest.FixtureRequest, spec: AgentSpec) -> ModelEndpoint | None:
        """A model server as this host sees it; it is shown in the box. Needed by agents that declare wires.

        Where benchflow-testing is installed, its scripted model.
        """
        return scripted_model(request, spec.wires[0]) if spec.wires else None

    @pytest.fixture
    def context(self, spec: AgentSpec, agent_options: Mapping[str, str], agent_env: Mapping[str, str]) -> AgentContext:
        """A made-up box, for looking at the launch alone."""
        if spec.prepare is None:
            pytest.skip("the agent is no program: it has `connect` instead of `prepare`")
        wire = spec.wires[0] if spec.wires else None
        return AgentContext(
            workdir="/work",
            home="/home/agent",
            user="agent",
            prefix=spec.layers[0].prefix if spec.layers else None,
            runtimes={runtime.name: f"/opt/runtimes/{runtime.name}" for runtime in spec.runtimes},
            model="kit/kit-model" if wire else None,
            endpoint=ModelEndpoint(base_url=URL, key=KEY, wire=wire, model="kit-model") if wire else None,
            env={"HOME": "/home/agent", "KIT_SECRET": SECRET, **agent_env},
            options=agent_options,
        )

    @pytest.fixture
    def launch(self, spec: AgentSpec, context: AgentContext) -> Launch:
        assert spec.prepare is not None
        return spec.prepare(context)

    def test_there_is_a_way_to_start(self, spec: AgentSpec) -> None:
        ways = (spec.prepare, spec.connect, spec.wrap, spec.opens)
        assert any(ways), "an agent has `prepare`, `connect`, `wrap` or `opens`"
        assert set(spec.wires) <= set(typing.get_args(Wire))

    def test_prepare_is_pure(self, spec: AgentSpec, context: AgentContext) -> None:
        assert spec.prepare is not None
        first = spec.prepare(context)
        with effects() as found:
            second = spec.prepare(context)
        assert isinstance(first, Launch) and first == second, "same context, same launch"
        assert not found, f"`prepare` only describes, it does nothing: {found}"

    def test_secrets_are_not_in_arguments(self, launch: Launch) -> None:
        for argv in (launch.argv, *(c.argv for c in launch.companions), *(c.ready for c in launch.companions)):
            shown = " ".join(argv)
            assert KEY not in shown and SECRET not in shown, f"a secret is in the arguments: {argv}"

    def test_launch_is_well_formed(self, launch: Launch) -> None:
        assert launch.argv and all(isinstance(a, str) and "\0" not in a for a in launch.argv)
        for path, content in launch.files.items():
            assert path.startswith("/") and ".." not in path.split("/"), f"{path} is not absolute and plain"
            assert isinstance(content, bytes)
        for name, value in launch.env.items():
            assert name and "=" not in name and isinstance(value, str) and "\0" not in name + value, name
        assert launch.cwd is None or launch.cwd.startswith("/")
        json.dumps(dict(launch.session_meta))
        for companion in launch.companions:
            assert companion.name and companion.argv and companion.ready_timeout > 0

    def test_model_is_reached_through_the_endpoint(self, spec: AgentSpec, launch: Launch) -> None:
        if not spec.wires:
            pytest.skip("the agent needs no model")
        private = repr((launch.env, launch.files, [c.env for c in launch.companions]))
        assert URL in private + repr((launch.argv, launch.session_meta)), "the launch does not point to the endpoint"
        assert KEY in private, "the endpoint's key is neither in `env` nor in `files`"

    def test_installs_are_pinned(self, spec: AgentSpec) -> None:
        keys = [layer.key for layer in spec.layers]
        assert len(set(keys)) == len(keys)
        for layer in spec.layers:
            assert re.search(r"@[^@]*\d", layer.key), f"the key {layer.key!r} has no version: name@version"
            assert layer.prefix.startswith("/") and ".." not in layer.prefix
            assert "@latest" not in repr(layer.install) and not any(
                ":latest" in a for argv in layer.install for a in argv
            )
        if any(layer.install for layer in spec.layers):
            assert spec.version and any(spec.version in key for key in keys), "`version` is what a layer installs"

    def test_web_tools_can_be_switched_off(self, spec: AgentSpec, context: AgentContext, launch: Launch) -> None:
        if not spec.web_tools_can_be_disabled:
            pytest.skip("the agent does not claim that it can")
        assert spec.prepare is not None
        assert spec.prepare(dataclasses.replace(context, web_tools=False)) != launch, (
            "nothing differs without web tools"
        )

    def test_wrapping_gives_an_agent(self, spec: AgentSpec) -> None:
        if spec.wrap is None:
            pytest.skip("the agent wraps no other")
        inner = AgentSpec(summary="inner", prepare=lambda c: Launch(argv=("inner-agent-program", "acp")))
        wrapped = spec.wrap(inner)
        assert isinstance(wrapped, AgentSpec) and (wrapped.prepare or wrapped.connect)

    @pytest_asyncio.fixture(loop_scope="class")
    async def opens(
        self,
        bench: Bench,
        box: Sandbox,
        spec: AgentSpec,
        agent_options: Mapping[str, str],
        agent_env: Mapping[str, str],
        model_endpoint: ModelEndpoint | None,
        tmp_path: Path,
    ) -> AsyncIterator[Open]:
        """Opens sessions in the box, and closes what a test left open."""
        if spec.prepare is None and spec.connect is None:
            pytest.skip("the agent only wraps others")
        if spec.wires and model_endpoint is None:
            pytest.skip("the agent needs a model: install benchflow-testing, or give a fixture `model_endpoint`")
        if model_endpoint is not None:
            model_endpoint = await _inside(bench, box, model_endpoint)
        env = {**agent_env, "KIT_SECRET": SECRET}
        context = await agent_context(bench, box, spec, agent_options, env, model_endpoint)
        opened: list[Opened] = []

        async def open_one() -> Opened:
            folder = tmp_path / str(len(opened))
            folder.mkdir()
            opened.append(await open_agent(box, spec, context, folder))
            return opened[-1]

        yield open_one
        for live in opened:
            await live.close()

    @limit(300)
    async def test_session_answers_prompts(self, opens: Open, prompt: str) -> None:
        live = await opens()
        assert live.session.id
        for _ in range(2):
            outcome = await live.session.prompt(prompt)
            assert outcome.stop_reason in REASONS and outcome.stop_reason != "cancelled", outcome
        for event in live.events:
            assert isinstance(event, SessionEvent) and event.kind
            json.dumps(dict(event.data))

    @limit(300)
    async def test_turn_can_be_cancelled(self, opens: Open, prompt: str) -> None:
        live = await opens()
        await live.session.cancel()
        turn = asyncio.create_task(live.session.prompt(prompt))
        await asyncio.sleep(0.3)
        await live.session.cancel()
        async with asyncio.timeout(60):
            try:
                assert (await turn).stop_reason in REASONS
            except AgentError:
                return

    @limit(300)
    async def test_close_leaves_no_process(self, opens: Open, box: Sandbox, prompt: str) -> None:
        before = await box.processes()
        live = await opens()
        turn = asyncio.create_task(live.session.prompt(prompt))
        await asyncio.sleep(0.3)
        async with asyncio.timeout(60):
            await live.close()
            await asyncio.gather(turn, return_exceptions=True)
            await live.close()
        left: set[int] = set()

        async def gone() -> bool:
            left.clear()
            left.update(set(await box.processes()) - set(before))
            return not left

        # What is killed may take a busy machine a moment to end.
        assert await eventually(gone, seconds=5), f"processes of the agent outlive its session: {sorted(left)}"

    @limit(300)
    async def test_secrets_are_in_no_command_line(
        self, opens: Open, box: Sandbox, prompt: str, model_endpoint: ModelEndpoint | None
    ) -> None:
        live = await opens()
        turn = asyncio.create_task(live.session.prompt(prompt))
        await asyncio.sleep(0.3)
        seen = await ok(box, COMMAND_LINES)
        await asyncio.gather(turn, return_exceptions=True)
        seen += await ok(box, COMMAND_LINES)
        for secret in (SECRET, model_endpoint.key if model_endpoint else SECRET):
            assert secret not in seen, "a command line in the box shows a secret"

    @limit(300)
    async def test_two_sessions_share_a_box(self, opens: Open, prompt: str) -> None:
        one, two = await opens(), await opens()
        for live in (one, two, one):
            assert (await live.session.prompt(prompt)).stop_reason in REASONS
        await one.close()
        assert (await two.session.prompt(prompt)).stop_reason in REASONS


async def _inside(bench: Bench, box: Sandbox, endpoint: ModelEndpoint) -> ModelEndpoint:
    """The same model, as it is reached from the box."""
    url = urlsplit(endpoint.base_url)
    assert url.hostname in ("127.0.0.1", "localhost") and url.port, "model_endpoint.base_url is http://127.0.0.1:PORT"
    return dataclasses.replace(endpoint, base_url=await bench.expose(box, url.port) + url.path)
