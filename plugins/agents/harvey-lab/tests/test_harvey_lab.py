"""Our side of the harness, around a stand-in for theirs: their release is on GitHub, where tests do not reach.

`stand_in/` has the interface of lab-core 1.2.0 that our program uses, and really asks a model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchflow_agent_harvey_lab.plugin import PREFIX, benchflow_agent
from benchflow_layers import PYTHON, PYTHON_LAYER
from benchflow_testing_kit import AgentConformance, xfail
from benchflow_testing_kit.host import eventually
from benchflow_testing_kit.launching import agent_context, open_agent

from benchflow_core.contracts import AgentSpec, Layer, ModelEndpoint, Sandbox
from benchflow_core.errors import AgentError

pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("agent-harvey")]
STAND_IN = Path(__file__).parent / "stand_in"
Open = Callable[[], Awaitable[Any]]


def with_stand_in() -> AgentSpec:
    """The plugin, with what is below `stand_in/` where it would install their wheel."""
    spec = benchflow_agent()
    own = spec.layers[1]
    files = {f"lib/python3.13/site-packages/{p.relative_to(STAND_IN)}": p for p in STAND_IN.rglob("*.py")}
    layer = Layer(
        key=f"lab-core-stand-in@{spec.version}",
        prefix=PREFIX,
        install=((PYTHON, "-m", "venv", "--without-pip", "{prefix}"),),
        files={"harness.py": own.files["harness.py"], **{name: p.read_bytes() for name, p in files.items()}},
    )
    return replace(spec, layers=(PYTHON_LAYER, layer))


OUT_OF_REACH = xfail(reason="its wheel is a release on GitHub, on no package index: what runs in a box is tried below")


class TestPlugin(AgentConformance):
    """As it is published: its launch, its pins."""

    @pytest.fixture
    def plugin(self) -> str:
        return "harvey-lab-harness"

    @pytest.fixture
    def sandbox_options(self, agent_cache: Path) -> Mapping[str, str]:
        return {"dir": str(agent_cache / "sandboxes" / "local")}

    test_session_answers_prompts = OUT_OF_REACH
    test_turn_can_be_cancelled = OUT_OF_REACH
    test_secrets_are_in_no_command_line = OUT_OF_REACH
    test_close_leaves_no_process = OUT_OF_REACH
    test_two_sessions_share_a_box = OUT_OF_REACH


class TestHarness(AgentConformance):
    @pytest.fixture
    def plugin(self) -> AgentSpec:
        return with_stand_in()

    @pytest.fixture
    def sandbox_options(self, agent_cache: Path) -> Mapping[str, str]:
        return {"dir": str(agent_cache / "sandboxes" / "local")}

    @pytest.fixture
    def model(self) -> Iterator[Any]:
        from benchflow_testing import LocalModel

        with LocalModel() as model:
            yield model

    @pytest.fixture
    def model_endpoint(self, model: Any) -> ModelEndpoint:
        return ModelEndpoint(base_url=model.base_url, key="kit-model-key", wire="responses", model="local-model")

    @pytest.mark.quick
    async def test_a_run_of_the_harness_is_told(self, opens: Open, box: Sandbox, model: Any) -> None:
        live = await opens()
        model.script(
            "work", [{"text": "I write.", "tools": [{"do": "write", "path": "a.md", "content": "hi"}]}, "Done."]
        )
        outcome = await live.session.prompt("[[fake:work]]")
        assert outcome.stop_reason == "end_turn" and outcome.usage.input_tokens > 0
        assert [e.kind for e in live.events if e.kind != "session_started"] == [
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "agent_message_chunk",
        ]
        assert live.events[-2].data["status"] == "completed"
        done = await box.exec(("cat", f"{box.info.workdir}/output/a.md"))
        assert done.stdout == b"hi"
        assert [seen.scenario for seen in model.log] == ["work", "work"]

    @pytest.mark.quick
    async def test_its_commands_see_the_workspace_and_no_key(self, opens: Open, box: Sandbox, model: Any) -> None:
        live = await opens()
        command = "pwd -P; echo $OUTPUT_DIR; env | grep -c kit-model-key"
        model.script("look", [{"tools": [{"do": "bash", "command": command}]}, "Done."])
        await live.session.prompt("[[fake:look]]")
        [update] = [e for e in live.events if e.kind == "tool_call_update"]
        seen = update.data["content"][0]["content"]["text"].split()
        assert seen == [box.info.workdir, "/workspace/output", "0"]

    @pytest.mark.quick
    async def test_cancel_ends_a_running_command(self, opens: Open, box: Sandbox, model: Any) -> None:
        live = await opens()
        model.script("sleep", [{"tools": [{"do": "bash", "command": "sleep 987"}]}, "Done."])
        turn = asyncio.create_task(live.session.prompt("[[fake:sleep]]"))
        async with asyncio.timeout(60):
            while not any(e.kind == "tool_call" for e in live.events):
                await asyncio.sleep(0.05)
        await live.session.cancel()
        assert (await turn).stop_reason == "cancelled"
        assert (await live.session.prompt('[[fake:say text="still here"]]')).stop_reason == "end_turn"

        async def gone() -> bool:
            done = await box.exec(("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))
            return b"sleep 987" not in done.stdout

        assert await eventually(gone)

    @pytest.mark.quick
    async def test_a_failing_model_is_an_error(self, opens: Open) -> None:
        live = await opens()
        with pytest.raises(AgentError, match="HTTP Error 400"):
            await live.session.prompt("[[fake:fail]]")

    @pytest.mark.quick
    async def test_it_asks_before_it_changes_anything(
        self, bench: Any, box: Sandbox, spec: AgentSpec, model: Any, model_endpoint: ModelEndpoint, tmp_path: Path
    ) -> None:
        url = await bench.expose(box, model.port)
        context = await agent_context(bench, box, spec, {}, {}, replace(model_endpoint, base_url=url))
        live = await open_agent(box, spec, replace(context, permissions="ask"), tmp_path)
        model.script("both", [{"tools": [{"do": "bash", "command": "true"}]}, "Done."])
        assert (await live.session.prompt("[[fake:both]]")).stop_reason == "end_turn"
        [asked] = [e.data for e in live.events if e.kind == "permission_request"]
        assert asked["toolCall"]["title"] == "bash" and asked["outcome"]["optionId"] == "yes"
        await live.close()
