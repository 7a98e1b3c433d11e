"""What is there before an agent starts: its files, and the processes beside it."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio

from benchflow_core.contracts import AgentContext, Companion, ImageRequest, SandboxContext, StartRequest
from benchflow_core.errors import AgentError
from benchflow_core.plugins import registry
from benchflow_core.rollout.companions import start_companion
from benchflow_core.rollout.sessions import _write_files

CONTEXT = AgentContext(workdir="/tmp", home="/root", user="root", prefix=None, env={"WHO": "companion"})


@pytest_asyncio.fixture
async def box(tmp_path):
    (tmp_path / "work").mkdir()
    spec = registry().get("sandbox", "local").spec
    provider = spec.open(SandboxContext(work_dir=tmp_path / "work", cache_dir=tmp_path / "cache"))
    image = await provider.prepare(ImageRequest(image="any", allow_substitute=True))
    yield await provider.start(image, StartRequest(name="companions"))
    await provider.close()


def companion(script: str, ready: str = "test -e /tmp/ready", limit: float = 60.0) -> Companion:
    return Companion("beside", ("sh", "-c", script), ready=("sh", "-c", ready), ready_timeout=limit)


async def test_it_is_waited_for_and_gone_afterwards(box, tmp_path):
    beside = companion('echo "I am $WHO"; sleep 0.5; touch /tmp/ready; sleep 1000')
    running = await start_companion(box, beside, CONTEXT, tmp_path / "beside.txt")
    assert (await box.exec(("test", "-e", "/tmp/ready"))).exit_code == 0
    assert await box.processes()
    await running.kill()
    await running.kill()
    assert await box.processes() == []
    assert (tmp_path / "beside.txt").read_text() == "I am companion\n"


async def test_a_full_pipe_does_not_stop_it(box, tmp_path):
    beside = companion("head -c 8000000 /dev/zero; head -c 8000000 /dev/zero >&2; touch /tmp/ready; sleep 1000")
    running = await start_companion(box, beside, CONTEXT, tmp_path / "beside.txt")
    await running.kill()
    assert (tmp_path / "beside.txt").stat().st_size < 2_000_000, "what is kept has a limit"


async def test_one_that_dies_is_not_waited_for(box):
    with pytest.raises(AgentError, match="'beside' ended with exit code 7 before it was ready: no port left") as found:
        async with asyncio.timeout(60):
            await start_companion(box, companion("echo no port left >&2; exit 7", limit=600), CONTEXT, None)
    assert found.value.details["output_tail"] == "no port left"


async def test_one_that_is_never_ready_is_ended(box):
    with pytest.raises(AgentError, match="'beside' was not ready within 1 s: still busy"):
        await start_companion(box, companion("echo still busy; sleep 1000", limit=1.0), CONTEXT, None)
    assert await box.processes() == []


async def test_the_folders_of_its_files_are_the_agents_own(box):
    """An agent keeps its sessions and caches beside its settings, also where it is not root."""
    made = await box.exec(("useradd", "-m", "worker"), user="root")
    if made.exit_code or box.info.users == ("root",):
        pytest.skip("the box has one user")
    settings = "/home/worker/.agent/deep/settings.json"
    await _write_files(box, {settings: b"{}"}, "worker")
    script = f"test ! -L {settings} && stat -c '%U %a' {settings} && touch /home/worker/.agent/deep/session"
    done = await box.exec(("sh", "-c", script), user="worker")
    assert (done.exit_code, done.stdout) == (0, b"worker 600\n"), done.stderr
