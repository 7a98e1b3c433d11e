"""On a real Ray cluster of two nodes on this host: the kit's checks, whole jobs, and a node that goes away."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress
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


async def test_a_node_that_answers_nothing_is_given_up(cluster, tmp_path):
    """Frozen, not dead: Ray goes on believing in it. What it ran is run by the others."""
    node = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    marker = f"9.{os.getpid():07d}{id(tmp_path) % 1000:03d}"
    options = {"script": f"- run: sleep {marker}"}
    given = {"agent_options": options, "trials": 4, "executor_options": {"silence": "12"}}
    work = asyncio.create_task(job(tmp_path, agent="scripted", **given).run())
    assert await eventually(lambda: len(host_processes(f"sleep\0{marker}")) >= 4, seconds=90), "both nodes have two"
    frozen = actors(node)
    for actor in frozen:
        os.kill(actor, signal.SIGSTOP)
    result = await work
    for actor in frozen:
        with suppress(ProcessLookupError):
            os.kill(actor, signal.SIGCONT)
    cluster.remove_node(node, allow_graceful=False)
    assert frozen and result.coverage == 1.0
    said = (tmp_path / "jobs" / "j" / "journal.jsonl").read_text()
    assert said.count("has not answered for 12 s") == 2


def actors(node) -> list[int]:
    """The process ids of our actors on a node: children of its raylet."""
    [raylet] = [process.process.pid for process in node.all_processes["raylet"]]
    mine = [path.parent for path in Path("/proc").glob("[0-9]*/status") if f"PPid:\t{raylet}\n" in path.read_text()]
    return [int(folder.name) for folder in mine if b"NodeWorker" in (folder / "cmdline").read_bytes()]


async def test_a_job_whose_last_node_is_lost_says_so_keeps_what_it_has_and_resumes(cluster, tmp_path):
    node = cluster.add_node(num_cpus=2, resources={"last": 1})
    cluster.wait_for_nodes()
    marker = f"3.{os.getpid():07d}{id(tmp_path) % 1000:03d}"
    options = {"script": f"- run: sleep {marker}"}
    given = {"agent": "scripted", "agent_options": options, "concurrency": 2, "trials": 6}
    given["executor_options"] = {"resource": "last", "silence": "10"}
    work = asyncio.create_task(job(tmp_path, **given).run())
    finished = (tmp_path / "jobs" / "j").glob
    assert await eventually(lambda: len(list(finished("*/result.json"))) >= 2, seconds=90)
    cluster.remove_node(node, allow_graceful=False)
    result = await work
    summary = json.loads((tmp_path / "jobs" / "j" / "summary.json").read_text())
    assert "no node with CPUs and the resource 'last' any more" in summary["stopped"]
    assert result.scored >= 2 and summary["not_run"] + result.unscored >= 2

    node = cluster.add_node(num_cpus=2, resources={"last": 1})
    cluster.wait_for_nodes()
    result = await Evaluation.reopen(tmp_path / "jobs" / "j").run()
    cluster.remove_node(node, allow_graceful=False)
    assert result.coverage == 1.0


def test_an_address_where_nobody_listens_is_refused_at_once():
    from benchflow_executor_ray.cluster import _join

    with pytest.raises(ConnectionError):
        _join("127.0.0.1:1")


@pytest.mark.usefixtures("cluster")
async def test_what_cannot_work_is_said(tmp_path):
    with pytest.raises(ConfigurationError, match="no node with CPUs and the resource 'gpu-of-the-moon'"):
        await job(tmp_path, executor_options={"resource": "gpu-of-the-moon"}).run()
    assert not (tmp_path / "jobs").exists()
