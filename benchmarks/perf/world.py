"""A world's state of 100 MB, captured and put back, against `cp` of the same files; and how soon a service answers.

`sqlite` has one database of 100 MB, `files` a folder of the same size. Snapshot and restore are what the state backends
do in the world's box, everything standing still; stopping and starting the services comes on top and is shown apart.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from benchflow_feature_world.state import FILES, SQLITE
from benchflow_feature_world.world import World

from benchflow_core.rollout import Rollout, RolloutConfig
from benchmarks.perf._measure import Measure

TASK = Path(__file__).parents[1] / "clawsbench" / "tasks" / "reply-to-client"
MEGABYTES = 100
_DATABASE = f"""
import os, sqlite3
c = sqlite3.connect("/data/large.db"); c.execute("pragma journal_mode=wal")
c.execute("create table if not exists rows (n integer primary key, data blob)")
for n in range({MEGABYTES}):
    c.execute("insert into rows values (?, ?)", (n, os.urandom(1 << 20)))
c.commit(); c.execute("pragma wal_checkpoint(truncate)")
"""
_FOLDER = f"mkdir -p /data/large; for n in $(seq {MEGABYTES}); do head -c 1048576 /dev/urandom > /data/large/$n; done"


def measure(runs: int) -> list[Measure]:
    return asyncio.run(_measure(runs))


async def _measure(runs: int) -> list[Measure]:
    with tempfile.TemporaryDirectory(prefix="benchflow-perf-") as name:
        task = shutil.copytree(TASK, Path(name) / "task")
        rollout = await Rollout.create(
            RolloutConfig(task_path=task, agent="nop", sandbox="local", jobs_dir=Path(name) / "jobs")
        )
        try:
            await rollout.setup()
            await rollout.start()
            return await _all(rollout.feature("world").world, runs)
        finally:
            await rollout.cleanup()


async def _all(world: World, runs: int) -> list[Measure]:
    box = world.box
    await box.exec(("sh", "-c", f'"$BENCHFLOW_PYTHON" -c "$1"; {_FOLDER}', "sh", _DATABASE), timeout=300)
    times: dict[str, list[float]] = {}

    async def timed(what: str, work: Callable[[], Awaitable[object]]) -> object:
        began = time.perf_counter()
        result = await work()
        times.setdefault(what, []).append(time.perf_counter() - began)
        return result

    for _ in range(max(runs, 3)):
        for kind, backend, path in (("sqlite", SQLITE, "/data/large.db"), ("files", FILES, "/data/large")):
            copy = f"rm -rf /tmp/c1 /tmp/c2; cp -a {path} /tmp/c1; cp -a /tmp/c1 /tmp/c2"

            async def both(backend=backend, path=path) -> None:  # type: ignore[no-untyped-def]
                await box.exec(("rm", "-rf", "/var/lib/benchflow/snapshots/perf"))
                kept = await backend.snapshot(box, (path,), "perf")
                await backend.restore(box, (path,), kept)

            await timed(f"cp {kind}", lambda copy=copy: box.exec(("sh", "-c", copy), timeout=120))  # type: ignore[misc]
            await timed(kind, both)
        began = await world.snapshot("perf-own")
        await timed("service", lambda began=began: world.restore(began))  # type: ignore[misc]
    best = {name: min(values) for name, values in times.items()}
    rows = [
        Measure(f"{kind}: snapshot + restore of {MEGABYTES} MB, to cp twice", best[kind] / best[f"cp {kind}"], "x", 5.0)
        for kind in ("sqlite", "files")
    ]
    seconds = [Measure(f"{kind}: snapshot + restore", best[kind], "s", 1.0) for kind in ("sqlite", "files")]
    return [*rows, *seconds, Measure("a service ended, put back, started and healthy", best["service"], "s", 2.0)]
