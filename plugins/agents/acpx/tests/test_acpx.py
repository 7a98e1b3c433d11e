from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from benchflow_agent_acpx.plugin import benchflow_agent
from benchflow_testing_kit import AgentConformance
from benchflow_testing_kit.resolve import resolve

from benchflow_core.contracts import AgentContext, AgentSpec, Companion, Launch
from benchflow_core.errors import ConfigurationError

pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("agent-acpx")]
CONTEXT = AgentContext(workdir="/work", home="/home/agent", user="agent", prefix=None)


class Cached(AgentConformance):
    """Installed once for all of them."""

    @pytest.fixture
    def sandbox_options(self, agent_cache: Path) -> Mapping[str, str]:
        return {"dir": str(agent_cache / "sandboxes" / "local")}


class TestAcpx(Cached):
    """The wrapper itself."""

    @pytest.fixture
    def plugin(self) -> str:
        return "acpx"


class TestAcpxScripted(Cached):
    """An agent as it comes out of it."""

    @pytest.fixture
    def plugin(self) -> AgentSpec:
        return benchflow_agent().wrap(resolve("agent", "scripted").spec)  # type: ignore[misc]

    @pytest.fixture
    def agent_options(self) -> Mapping[str, str]:
        return {"script": "{otherwise: [{run: 'sleep 1'}, {say: Hello.}]}"}


def test_everything_of_the_agent_is_kept() -> None:
    launch = Launch(
        argv=("/opt/it/agent", "it's", "acp"),
        env={"KEY": "secret"},
        files={"/home/agent/settings": b"x"},
        companions=(Companion("beside", ("beside",)),),
        cwd="/elsewhere",
    )
    inner = AgentSpec(summary="it", prepare=lambda c: launch, wires=("chat",), errors_are_silent=True, version="7")
    spec = benchflow_agent()
    assert spec.wrap is not None
    wrapped = spec.wrap(inner)
    assert wrapped.wires == ("chat",) and wrapped.errors_are_silent and wrapped.version == spec.version
    assert wrapped.prepare is not None
    found = wrapped.prepare(CONTEXT)
    assert found.env == launch.env and found.companions == launch.companions
    script = found.files["/home/agent/.benchflow-acpx/agent/agent.sh"].decode()
    assert script == "cd /elsewhere && exec /opt/it/agent 'it'\"'\"'s' acp\n"
    assert found.files["/home/agent/settings"] == b"x"


def test_an_agent_that_is_no_program_is_refused() -> None:
    spec = benchflow_agent()
    assert spec.wrap is not None
    with pytest.raises(ConfigurationError, match="ACP programs"):
        spec.wrap(resolve("agent", "oracle").spec)
