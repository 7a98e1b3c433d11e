"""The same on a real Docker engine: an image that owns its lifecycle, claws as layers, and an agent that cheats."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("benchflow_sandbox_docker", reason="the Docker sandbox is not installed")

from benchflow_sandbox_docker.plugin import benchflow_sandbox

from benchflow_core.rollout import Rollout, RolloutConfig

from .conftest import GET
from .test_runs import ASKS, SQUAT

FOUND = benchflow_sandbox().available()
pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not FOUND.ok, reason=f"no Docker engine: {FOUND.reason}"),
    pytest.mark.xdist_group("docker"),
]
BENCHMARKS = Path(__file__).parents[4] / "benchmarks"
CHI = BENCHMARKS / "chi-bench"


@pytest.fixture
def on_docker(tmp_path, host):
    async def run(task, agent="oracle", **settings):
        config = RolloutConfig(task_path=task, agent=agent, sandbox="docker", jobs_dir=tmp_path / "jobs", **settings)
        return await (await Rollout.create(config, host)).run()

    return run


@pytest.fixture(scope="module")
def stand_in():
    """Only where nobody has the published image: then it is ours, and goes away again."""
    there = subprocess.run(["docker", "image", "inspect", "chi-bench:latest"], capture_output=True, check=False)
    if there.returncode:
        subprocess.run(
            ["docker", "build", "-q", "-t", "chi-bench:latest", CHI / "stand-in"], check=True, capture_output=True
        )
    elif b"org.benchflow.stand-in" not in there.stdout:
        pytest.skip("chi-bench:latest here is not the stand-in")
    yield
    if there.returncode:
        subprocess.run(["docker", "rmi", "-f", "chi-bench:latest"], check=False, capture_output=True)


async def test_an_image_that_owns_its_lifecycle(on_docker, stand_in):
    task, manifest = CHI / "tasks" / "close-the-referral", str(CHI / "environment.toml")
    solved = await on_docker(task, environment_manifest=manifest)
    assert solved.rewards == {"reward": 1.0}, (solved.error, solved.verifier_error)
    assert solved.image_fidelity == "exact" and solved.isolation == "fresh"
    assert "ward: task 'close-the-referral'" in (solved.rollout_dir / "world" / "logs" / "image.log").read_text()
    idle = await on_docker(task, "nop", environment_manifest=manifest)
    assert idle.rewards == {"reward": 0.0}


async def test_an_image_without_its_task_is_not_ready(on_docker, stand_in, tmp_path):
    text = (CHI / "environment.toml").read_text().replace("CHI_BENCH_TASK_ID", "OTHER")
    for seconds in ("2", "30"):  # a busy machine may not have started it in two
        (tmp_path / "m.toml").write_text(text.replace("120", seconds))
        folder = CHI / "tasks" / "close-the-referral"
        result = await on_docker(folder, environment_manifest=str(tmp_path / "m.toml"))
        assert result.rewards is None and f"not ready within {seconds} s: http://localhost:8023/health" in result.error
        if "HTTP 503" in result.error:
            assert "0 referrals" in result.error_info["details"]["log"]
            return
    raise AssertionError(result.error)


async def test_claws_as_layers_in_an_image_that_knows_nothing_of_them(on_docker):
    result = await on_docker(BENCHMARKS / "clawsbench" / "tasks" / "file-the-attachment")
    assert result.rewards == {"reward": 1.0}, (result.error, result.verifier_error)
    world = json.loads((result.rollout_dir / "world" / "state" / "world.json").read_text())
    assert world["services"] == ["gmail", "gdrive"] and world["placement"] == "own-box"


async def test_cheats_do_not_count_here_either(on_docker, task):
    result = await on_docker(task(SQUAT, ASKS))
    assert result.rewards == {"reward": 0.0}, (result.error_info, result.verifier_error_info)


COMPOSE = """services:
  main:
    depends_on: [beside]
  beside:
    image: python:3.12-slim
    command: [python, -m, http.server, "8000", -d, /etc]
"""
BOTH = f"{GET} http://beside:8000/hostname && {GET} 'http://localhost:9700/set?answer=42'"


@pytest.mark.parametrize(("solution", "reward"), [(BOTH, 1.0), (SQUAT, 0.0)], ids=["honest", "squatter"])
async def test_a_world_beside_a_compose_task(on_docker, task, solution, reward):
    """Its box has the main service's image and none of the others; the agent sees both."""
    asks = ASKS.replace("print(rows)", 'print(rows, urllib.request.urlopen("http://beside:8000/hostname").read())')
    folder = task(solution, asks, **{"environment__docker-compose.yaml": COMPOSE})
    result = await on_docker(folder)
    assert result.rewards == {"reward": reward}, (result.error_info, result.verifier_error_info)
    assert result.world["placement"] == "own-box" and result.world["services"] == ["kv"]
