"""A host process that is killed, in whatever phase, leaves nothing once the next run has started."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from benchflow_testing_kit.host import eventually, within

from benchflow_core.contracts import ImageRequest, Lease, SandboxProvider, StartRequest

pytestmark = pytest.mark.docker

Leases = Callable[[str], Awaitable[list[Lease]]]

VICTIM = """
import asyncio, json, os, sys
from pathlib import Path
from benchflow_core.contracts import ImageRequest, Layer, SandboxContext, StartRequest
from benchflow_sandbox_docker.plugin import benchflow_sandbox

job = json.loads(sys.argv[1])
def reached(phase):
    if phase == job["phase"]:
        print("reached", flush=True)

async def main():
    context = SandboxContext(Path(job["work"]), Path(job["cache"]), labels={"test": job["mark"]}, env=dict(os.environ))
    provider = benchflow_sandbox().open(context)
    context_dir = Path(job["work"]) / "context"
    context_dir.mkdir()
    (context_dir / "Dockerfile").write_text(f"FROM debian:bookworm-slim\\nRUN echo {job['mark']}; sleep {job['build']}\\n")
    if job["phase"] == "build":
        asyncio.get_running_loop().call_later(1.5, reached, "build")
    image = await provider.prepare(ImageRequest(context=context_dir, dockerfile=context_dir / "Dockerfile"))
    if job["phase"] == "layer":
        asyncio.get_running_loop().call_later(3.0, reached, "layer")
        layer = Layer(key=job["mark"], prefix="/opt/benchflow/crash", install=(("sh", "-c", "echo x >{prefix}/x; sleep 60"),))
        await provider.prepare(ImageRequest(image="debian:bookworm-slim"), (layer,))
    starting = asyncio.ensure_future(provider.start(image, StartRequest(name="crash")))
    if job["phase"] == "start":
        await asyncio.sleep(0.15)
        reached("start")
    box = await starting
    await box.spawn(["sleep", "600"])
    reached("run")
    snapshot = await box.snapshot("crash")
    reached("snapshot")
    other = await provider.start(snapshot.image, StartRequest(name="verify"))
    reached("verify")
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.parametrize("phase", ["build", "layer", "start", "run", "snapshot", "verify"])
async def test_killed_run_leaves_nothing(
    phase: str, tmp_path: Path, mark: str, find_leases: Leases, open_provider: Callable[[], SandboxProvider]
) -> None:
    work = tmp_path / "victim"
    work.mkdir()
    job = {"phase": phase, "mark": mark, "work": str(work), "cache": str(tmp_path / "cache"),
           "build": 30 if phase == "build" else 0}  # fmt: skip
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", VICTIM, json.dumps(job), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    try:
        async with within(120):
            assert await child.stdout.readline() == b"reached\n"
    finally:
        os.kill(child.pid, signal.SIGKILL)
        await child.wait()

    async def only_the_cache_is_left() -> bool:
        """A finished image and its like are for the next run; what belonged to the dead one is gone."""
        provider = open_provider()
        image = await provider.prepare(ImageRequest(image="debian:bookworm-slim"))
        box = await provider.start(image, StartRequest(name="next"))
        await box.stop()
        await provider.close()
        return {lease.kind for lease in await find_leases(mark)} <= {"image"}

    assert await eventually(only_the_cache_is_left, seconds=60), [
        (lease.kind, lease.id, lease.owner_alive) for lease in await find_leases(mark)
    ]


async def test_leases_name_owner_and_term(provider: SandboxProvider, mark: str, find_leases: Leases) -> None:
    image = await provider.prepare(ImageRequest(image="debian:bookworm-slim"))
    request = StartRequest(name="lease", labels={"job": "j", "rollout": "r"}, expires_after=100.0)
    box = await provider.start(image, request)
    (lease,) = [lease for lease in await find_leases(mark) if lease.kind == "box"]
    assert (lease.labels["job"], lease.labels["rollout"], lease.owner_alive) == ("j", "r", True)
    assert lease.expires_at is not None and 90 < lease.expires_at - lease.created_at < 110
    await box.stop()
    assert [lease for lease in await find_leases(mark) if lease.kind == "box"] == []
