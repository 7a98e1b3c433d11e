"""On a real Ray cluster of two nodes on this host: the kit's checks, whole jobs, and a node that goes away."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from benchflow_testing_kit import ExecutorConformance
from benchflow_testing_kit.host import eventually, host_processes

from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation import Evaluation, EvaluationConfig

TASK = Path(__file__).parents[4] / "examples" / "tasks" / "hello-file"

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("ray")]


@pytest.fixture(scope="module")
def cluster():
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "120"}
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.mark.usefixtures("cluster")
class TestRay(ExecutorConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "ray"


def job(folder: Path, **settings) -> Evaluation:
    given = {"agent": "oracle", "sandbox": "local", "executor": "ray", "concurrency": 4, **settings}
    return Evaluation(TASK, folder / "jobs", EvaluationConfig(**given), "j")


def workers(folder: Path) -> set[int]:
    return {json.loads(p.read_text())["worker"]["pid"] for p in (folder / "jobs" / "j").glob("*/lock.json")}


async def test_a_job_goes_on_when_a_node_is_lost(cluster, tmp_path):
    node = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    marker = f"9.{os.getpid():07d}{id(tmp_path) % 1000:03d}"
    options = {"script": f"- run: sleep {marker}"}
    work = asyncio.create_task(job(tmp_path, agent="scripted", agent_options=options, trials=4).run())
    assert await eventually(lambda: len(host_processes(f"sleep\0{marker}")) >= 4, seconds=90), "both nodes have two"
    cluster.remove_node(node, allow_graceful=False)
    result = await work
    assert result.coverage == 1.0
    lost = [json.loads(p.read_text()) for p in (tmp_path / "jobs" / "j").glob("attempts/*/result.json")]
    assert [row["error_info"]["code"] for row in lost] == ["worker_lost"] * 2
    assert len(workers(tmp_path)) == 1, "what was lost ran again on the node that is left"
    assert await eventually(lambda: not host_processes(marker)), "a worker without its node tears down"


def test_an_address_where_nobody_listens_is_refused_at_once():
    from benchflow_executor_ray.cluster import _join

    with pytest.raises(ConnectionError):
        _join("127.0.0.1:1")


@pytest.mark.usefixtures("cluster")
async def test_what_cannot_work_is_said(tmp_path):
    with pytest.raises(ConfigurationError, match="no node with CPUs and the resource 'gpu-of-the-moon'"):
        await job(tmp_path, executor_options={"resource": "gpu-of-the-moon"}).run()
    assert not (tmp_path / "jobs").exists()
