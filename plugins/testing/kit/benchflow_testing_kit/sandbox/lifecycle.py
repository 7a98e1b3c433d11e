"""Starting, stopping, crashing: nothing is ever left behind."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import sys
import time
import uuid

import pytest

from benchflow_core.contracts import ImageRef, Sandbox
from benchflow_core.errors import BenchflowError, InfrastructureError
from benchflow_testing_kit.host import eventually, host_processes, open_descriptors, within
from benchflow_testing_kit.resolve import Resolved
from benchflow_testing_kit.sandbox.base import SandboxSuite
from benchflow_testing_kit.sandbox.bench import Bench, ok, sh
from benchflow_testing_kit.suite import limit, soak

__all__ = ["LifecycleTests"]

CRASHING_HOST = """
import asyncio, json, sys
from pathlib import Path
from benchflow_core.contracts import ImageRef, SandboxContext, StartRequest
from benchflow_core.plugins import registry

async def main(job):
    spec = registry().get("sandbox", job["plugin"]).spec
    context = SandboxContext(work_dir=Path(job["work"]), cache_dir=Path(job["cache"]),
                             labels=job["labels"], options=job["options"], concurrency=2)
    provider = spec.open(context)
    image = ImageRef(**job["image"])
    for n in range(2):
        box = await provider.start(image, StartRequest(name=f"crash-{n}", labels=job["labels"]))
        await box.spawn(["sh", "-c", "while :; do sleep 1; done", job["marker"]])
        await box.exec(["sh", "-c", "while :; do sleep 1; done >/dev/null 2>&1 </dev/null &", job["marker"]])
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main(json.loads(sys.argv[1])))
"""


class LifecycleTests(SandboxSuite):
    """A box exists from `start` to `stop` and not a moment longer, whatever happens in between."""

    async def test_box_tells_what_it_is(self, box: Sandbox) -> None:
        assert isinstance(box, Sandbox), "a method of the protocol is missing"
        info = box.info
        assert info.id and info.workdir.startswith("/")
        assert info.default_user in info.users
        await ok(box, 'cd "$1" && : >kit-probe && rm kit-probe', info.workdir)
        assert isinstance(await box.logs(), bytes)

    async def test_working_directory_of_the_request_is_made_and_used(self, bench: Bench) -> None:
        folder = f"/tmp/{_marker()}"
        box = await bench.start(workdir=folder)
        assert box.info.workdir == folder
        assert await ok(box, 'pwd && : >probe && rm probe && cd / && rmdir "$1"', folder) == f"{folder}\n"

    async def test_parallel_starts(self, bench: Bench) -> None:
        boxes = await asyncio.gather(*(bench.start(env={"KIT_N": str(n)}) for n in range(8)))
        assert len({box.info.id for box in boxes}) == 8
        answers = await asyncio.gather(*(ok(box, "echo $KIT_N") for box in boxes))
        assert answers == [f"{n}\n" for n in range(8)]

    async def test_stop_ends_every_process_and_can_be_repeated(self, bench: Bench) -> None:
        box, marker = await bench.start(), _marker()
        process = await box.spawn(["sh", "-c", "while :; do sleep 1; done", marker])
        await sh(box, f"nohup sh -c 'while :; do sleep 1; done' {marker} >/dev/null 2>&1 </dev/null &")
        await box.stop()
        await box.stop()
        assert await eventually(lambda: not host_processes(marker))
        async with within(30):
            assert await process.wait() != 0
        with pytest.raises(InfrastructureError):
            await ok(box, "echo alive")

    async def test_stop_while_a_command_runs(self, bench: Bench) -> None:
        box, marker = await bench.start(), _marker()
        running = asyncio.create_task(box.exec(["sh", "-c", "echo on; while :; do sleep 1; done", marker]))
        await asyncio.sleep(0.5)
        async with within(40):
            await box.stop()
            with contextlib.suppress(InfrastructureError):
                assert (await running).exit_code != 0
        assert await eventually(lambda: not host_processes(marker))

    async def test_close_stops_what_still_runs(self, bench: Bench) -> None:
        provider, marker = bench.another_provider(), _marker()
        box = await provider.start(bench.image, bench.start_request(labels={"conformance": bench.label, "box": marker}))
        process = await box.spawn(["sh", "-c", "while :; do sleep 1; done", marker])
        async with within(60):
            await provider.close()
            assert await process.wait() != 0
        assert await eventually(lambda: not host_processes(marker))
        assert await bench.leases(box=marker) == []
        await box.stop()

    @pytest.mark.parametrize("delay", [0.0, 0.005, 0.03, 0.15])
    async def test_cancelled_start_leaves_nothing(self, bench: Bench, delay: float) -> None:
        await (await bench.start()).stop()
        before, marker = _listing(bench), _marker()
        request = bench.start_request(labels={"conformance": bench.label, "box": marker}, env={"KIT_MARK": marker})
        task = asyncio.create_task(bench.provider.start(bench.image, request))
        await asyncio.sleep(delay)
        if task.cancel():
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await (await task).stop()
        await asyncio.sleep(1)  # what comes up late has come up by now
        await _assert_gone(bench, marker)
        assert await eventually(lambda: _listing(bench) <= before), _listing(bench) - before

    async def test_failed_start_leaves_nothing(self, bench: Bench) -> None:
        before, marker = _listing(bench), _marker()
        image = ImageRef(ref=f"no-such-image-{marker}")
        request = bench.start_request(labels={"conformance": bench.label, "box": marker}, env={"KIT_MARK": marker})
        with pytest.raises(BenchflowError):
            await bench.provider.start(image, request)
        await _assert_gone(bench, marker)
        assert await eventually(lambda: _listing(bench) <= before), _listing(bench) - before

    async def test_stopped_boxes_leave_no_files_and_descriptors(self, bench: Bench) -> None:
        async def cycle() -> None:
            box = await bench.start()
            process = await box.spawn(["cat"])
            await sh(box, "echo x >file")
            await process.kill()
            await box.stop()

        await cycle()
        files, descriptors = _listing(bench), open_descriptors()
        for _ in range(5):
            await cycle()
        assert await eventually(lambda: open_descriptors() <= descriptors + 1), "each box leaves descriptors open"
        assert await eventually(lambda: _listing(bench) <= files), _listing(bench) - files

    async def test_leases_show_live_boxes_with_their_labels(self, bench: Bench) -> None:
        marker = _marker()
        labels = {"conformance": bench.label, "box": marker, "purpose": "agent"}
        box = await bench.start(labels=labels, expires_after=3600.0)
        found = [lease for lease in await bench.leases(box=marker) if lease.kind == "box"]
        if not found:
            pytest.skip("list_leases names no boxes: they must end with their host (see the crash test)")
        assert len(found) == 1 and found[0].labels.items() >= labels.items()
        assert abs(found[0].created_at - time.time()) < 600
        assert found[0].owner_alive is not False, "its owner is this very process"
        assert found[0].expires_at is None or found[0].expires_at > time.time() + 600
        assert bench.spec.reap is not None, "what is leased can be reaped"
        await box.stop()
        assert await bench.leases(box=marker) == []

    @limit(180)
    async def test_crash_of_the_host_process_leaks_nothing(self, bench: Bench, resolved: Resolved) -> None:
        resolved.entry_point()
        marker = _marker()
        context = bench.context(f"crash-{marker}")
        job = {
            "plugin": resolved.name,
            "marker": marker,
            "work": str(context.work_dir),
            "cache": str(context.cache_dir),
            "options": dict(context.options),
            "labels": {"conformance": bench.label, "box": marker},
            "image": json.loads(json.dumps(dataclasses.asdict(bench.image))),
        }
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CRASHING_HOST, json.dumps(job), stdout=asyncio.subprocess.PIPE
        )
        assert child.stdout is not None
        try:
            async with within(90):
                assert await child.stdout.readline() == b"ready\n"
        finally:
            os.kill(child.pid, signal.SIGKILL)
            await child.wait()
        for lease in await bench.leases(box=marker):
            assert lease.owner_alive is not True, "its owner was killed"
            assert bench.spec.reap is not None, "a box was left behind and there is no way to reap it"
            await bench.spec.reap(lease)
        gone = await eventually(lambda: not host_processes(marker))
        assert gone, f"processes outlive a crash and reaping: {host_processes(marker)}"
        assert await bench.leases(box=marker) == []

    @soak
    async def test_hundred_boxes_one_after_the_other_and_thirty_at_once(self, bench: Bench) -> None:
        for n in range(100):
            box = await bench.start()
            assert await ok(box, 'echo "$1"', str(n)) == f"{n}\n"
            await box.stop()
        boxes = await asyncio.gather(*(bench.start() for _ in range(30)))
        await asyncio.gather(*(ok(box, "true") for box in boxes for _ in range(5)))

    @soak
    async def test_a_thousand_commands_in_one_box(self, bench: Bench) -> None:
        box, descriptors = await bench.start(), 0
        for n in range(40):
            await asyncio.gather(*(ok(box, "echo x") for _ in range(25)))
            descriptors = descriptors or open_descriptors()
            assert open_descriptors() <= descriptors + 5, f"descriptors grow: round {n}"


def _marker() -> str:
    return f"kit-marker-{uuid.uuid4().hex}"


def _listing(bench: Bench) -> set[str]:
    """Names in the jobs' work folders, three levels deep: where leftovers would show."""
    return {str(p) for pattern in ("*", "*/*", "*/*/*") for p in bench.work_dir.glob(pattern)}


async def _assert_gone(bench: Bench, marker: str) -> None:
    async def no_lease() -> bool:
        return await bench.leases(box=marker) == []

    assert await eventually(lambda: not host_processes(marker, environment=True)), "a process of the box is left"
    assert await eventually(no_lease), "a lease of the box is left"
