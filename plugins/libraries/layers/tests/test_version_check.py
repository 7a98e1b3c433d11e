"""An install that leaves a program which does not run is a failed install, not an agent that fails."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from benchflow_layers import npm_layers, pip_layers, version_check

from benchflow_core.plugins import registry
from benchflow_core.rollout import Rollout, RolloutConfig

EXAMPLE = Path(__file__).parents[4] / "examples" / "tasks" / "hello-file"


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        pytest.param("echo agent v1.2.3 >&2", "", id="right"),
        pytest.param("echo 1.2.2", "is not version 1.2.3: it says '1.2.2'", id="another"),
        pytest.param("echo no native package; exit 3", "ended with 3: no native package", id="fails"),
        pytest.param("exec /nowhere/native", "does not start", id="missing"),
        pytest.param("cat", "says ''", id="waits-for-input"),
    ],
)
def test_the_program_starts_and_says_its_version(program: str, complaint: str) -> None:
    argv = version_check("1.2.3", "sh", "-c", program)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode == 0) == (not complaint), done
    assert complaint in done.stderr


def test_it_comes_after_all_else_of_an_install() -> None:
    for layers in (npm_layers("/p", "x@1", check=("1", "x")), pip_layers("/p", "x@1", b"", check=("1", "x"))):
        assert layers[1].install[-1] == version_check("1", "x")


def test_every_agent_of_ours_that_is_installed_asks_for_its_version() -> None:
    layers = [layer for loaded in registry().all("agent") for layer in loaded.spec.layers if layer.install]
    agents = [layer for layer in layers if "/agents/" in layer.prefix]
    assert len(agents) >= 8
    for layer in agents:
        assert layer.install[-1][:3] == version_check("", "")[:3], f"nothing asks {layer.key} for its version"


async def test_a_rollout_whose_agent_does_not_start_is_unscored_and_says_why(tmp_path: Path) -> None:
    check = version_check("1.0.0", "/nowhere/native", "--version")
    agent = tmp_path / "agent.toml"
    agent.write_text(
        f'name = "odd"\nversion = "1.0.0"\nlaunch = ["true"]\n[install]\nrun = [{json.dumps(list(check))}]\n'
    )
    config = RolloutConfig(EXAMPLE, agent=str(agent), sandbox="local", jobs_dir=tmp_path / "jobs")
    result = await (await Rollout.create(config)).run()
    assert result.rewards is None
    info = result.error_info or {}
    assert info["kind"] == "infrastructure" and info["retryable"], info
    assert "does not start: /nowhere/native --version" in info["message"] and info["remedy"], info
