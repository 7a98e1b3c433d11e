"""Cloud sandboxes against local protocol servers: requests per rollout, and many rollouts in one process.

The server, its boxes and this process share the machine: times say little, counts and memory do. The minimum for a
box is create, run, fetch and delete: four requests.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.perf._measure import Measure, main

TASK = Path(__file__).parents[2] / "examples" / "tasks" / "hello-file"
VENDORS = tuple(os.environ.get("BENCHFLOW_PERF_CLOUDS", "daytona,e2b,modal").split(","))
MANY = int(os.environ.get("BENCHFLOW_PERF_CLOUD_ROLLOUTS", "256"))
MINIMUM = 4
MAKES_AND_ENDS = re.compile(r"^(POST (/v2)?/sandbox(es)?|DELETE /sandbox.*|SandboxCreateV2|SandboxTerminateV2)$")
WRITES = "TaskExecStdinWrite"
"""Modal's SDK sends each write to a command as a request of its own; they are told apart from the others."""

CHILD = """
import asyncio, json, sys
from benchmarks.perf.clouds import rollouts
print(json.dumps(asyncio.run(rollouts(sys.argv[1], int(sys.argv[2]), sys.argv[3]))))
"""


def _rss() -> float:
    """Of this process now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def rollouts(vendor: str, count: int, work: str) -> dict[str, float]:
    """So many oracle rollouts at once in this process; memory after a first round and after the last."""
    from benchflow_core.rollout import Host, Rollout, RolloutConfig

    async with Host(env={**os.environ, "BENCHFLOW_CACHE": f"{work}/cache"}, concurrency=count) as host:
        again = 0

        async def one() -> None:
            """As a job runs it: what the machine was too busy for is tried again."""
            nonlocal again
            config = RolloutConfig(
                TASK, agent="oracle", sandbox=vendor, isolation="shared", jobs_dir=Path(work, "jobs")
            )
            while True:
                result = await (await Rollout.create(config, host)).run()
                if result.rewards == {"reward": 1.0}:
                    return
                assert result.error_info and result.error_info["retryable"], result.error
                again += 1

        await one()
        await asyncio.gather(*(one() for _ in range(min(8, count))))
        before = _rss()
        await asyncio.gather(*(one() for _ in range(count)))
        middle = _rss()
        await asyncio.gather(*(one() for _ in range(count)))
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        return {"before": before, "after": middle, "again": _rss(), "most": most, "tries": again}


def _requests(vendor: str, env: Mapping[str, str], work: Path, remote: Any) -> tuple[float, float]:
    """Of one warm rollout, verified in its own box and thus two boxes; per box, and writes beside them."""
    command = [sys.executable, "-m", "benchflow_core.cli.main", "--quiet", "eval", "create", "-t", str(TASK)]
    command += ["-a", "oracle", "--sandbox", vendor, "-o", str(work / "jobs")]
    full = {**os.environ, **env, "BENCHFLOW_CACHE": str(work / "cache")}
    for _ in range(2):
        remote.reset()
        subprocess.run(command, check=True, env=full, stdout=subprocess.DEVNULL)
    found: dict[str, int] = remote.requests
    print(f"{vendor}: {found}", file=sys.stderr)
    writes = found.pop(WRITES, 0)
    return sum(found.values()) / 2, writes / 2


async def _beyond(vendor: str, work: str, remote: Any) -> float:
    """Milliseconds of a box, from create to delete with one command and one file, beyond the answers to both."""
    from importlib import import_module

    from benchflow_core.contracts import ImageRequest, SandboxContext, StartRequest

    (folder := Path(work, "alone")).mkdir()
    spec = import_module(f"benchflow_sandbox_{vendor}.plugin").benchflow_sandbox()
    provider = spec.open(SandboxContext(folder, Path(work, "cache"), env={**os.environ, **remote.env}))
    image = await provider.prepare(ImageRequest(image="debian:bookworm-slim"))
    found = []
    for number in range(8):
        remote.reset()
        began = time.monotonic()
        box = await provider.start(image, StartRequest(name=f"b{number}"))
        await box.exec(["sh", "-c", "echo x > /tmp/x"])
        await box.download("/tmp/x", folder / f"x{number}")
        await box.stop()
        wall = time.monotonic() - began
        seconds: dict[str, float] = remote.state()["seconds"]
        found.append(wall - sum(value for route, value in seconds.items() if MAKES_AND_ENDS.search(route)))
    await provider.close()
    return min(found) * 1000


def measure(runs: int) -> list[Measure]:
    from benchflow_testing_clouds.process import running

    measures = []
    for vendor in VENDORS:
        with tempfile.TemporaryDirectory() as folder, running(vendor) as remote:
            per_box, writes = _requests(vendor, remote.env, Path(folder), remote)
            detail = f"minimum {MINIMUM}" + (f"; and {writes:g} writes" if writes else "")
            measures.append(Measure(f"{vendor}: requests per box", per_box, "requests", MINIMUM + 2, detail))
            env = {**os.environ, **remote.env}
            os.environ |= remote.env  # where the SDK looks
            beyond = asyncio.run(_beyond(vendor, folder, remote))
            measures.append(Measure(f"{vendor}: beyond create and delete", beyond, "ms", None, "the least of 8 boxes"))
            child = [sys.executable, "-c", CHILD, vendor, str(MANY), folder]
            done = subprocess.run(child, env=env, check=True, stdout=subprocess.PIPE, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            grown = found["again"] / found["after"]
            told = [f"{found[name]:.0f} MB" for name in ("before", "after", "again", "most")]
            detail = f"{told[0]} after 8, {told[1]} after {MANY}, {told[2]} after as many again, at most {told[3]}"
            detail += f"; {found['tries']:.0f} tried again"
            measures.append(Measure(f"{vendor}: memory after {MANY} more at once", grown, "x", 1.15, detail))
            remote.check()
    return measures


if __name__ == "__main__":
    sys.exit(main({"clouds": measure}))
