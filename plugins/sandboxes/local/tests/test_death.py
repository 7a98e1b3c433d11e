"""What is left when the owner is killed: nothing, or what the next start removes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from benchflow_testing_kit.host import eventually, host_processes

from benchflow_core.contracts import ImageRequest, StartRequest
from benchflow_sandbox_local import leases

OWNER = """
import asyncio, sys
from pathlib import Path
from benchflow_core.contracts import ImageRequest, Resources, SandboxContext, StartRequest
from benchflow_sandbox_local.plugin import benchflow_sandbox

async def main(work, cache, marker, stage):
    provider = benchflow_sandbox().open(SandboxContext(Path(work), Path(cache), options={"stage": stage}))
    image = await provider.prepare(ImageRequest())
    for n in range(2):
        box = await provider.start(image, StartRequest(f"box{n}"))
        await box.exec(["sh", "-c", "for i in 1 2; do setsid sh -c 'while :; do sleep 1; done' $0 & done; true", marker])
        await box.exec(["sh", "-c", "dd if=/dev/zero of=/app/big bs=1M count=1"])
    await box.snapshot("left") if stage != "3" else None
    print(provider.engine._helper._process.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


async def _owner(tmp_path: Path, stage: str) -> tuple[asyncio.subprocess.Process, int, str]:
    marker = f"owner-of-{tmp_path.name}"
    work = tmp_path / "work"
    work.mkdir()
    argv = [sys.executable, "-c", OWNER, str(work), str(tmp_path / "cache"), marker, stage]
    owner = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    assert owner.stdout is not None
    async with asyncio.timeout(60):
        helper = int(await owner.stdout.readline())
    return owner, helper, marker


def _left(tmp_path: Path) -> list[str]:
    state = tmp_path / "cache" / "sandbox-local"
    return [str(p) for name in ("boxes", "trash", "snaps") for p in (state / name).iterdir()]


@pytest.mark.parametrize("stage", ["1", "2", "3"])
async def test_killed_owner_leaves_nothing(tmp_path: Path, stage: str) -> None:
    owner, helper, marker = await _owner(tmp_path, stage)
    assert len(host_processes(marker)) >= 4
    owner.kill()
    await owner.wait()
    assert await eventually(lambda: [p for p in host_processes(marker) if p != owner.pid] == [])
    assert await eventually(lambda: not Path(f"/proc/{helper}").exists())
    assert _left(tmp_path) == []
    assert [path for path, data in leases._read_all() if str(tmp_path) in data["path"]] == []


async def test_what_a_killed_helper_leaves_goes_with_the_next_start(tmp_path: Path, open_provider: Any) -> None:
    owner, helper, marker = await _owner(tmp_path, "1")
    os.kill(helper, signal.SIGSTOP)  # so that it cannot tidy up
    owner.kill()
    await owner.wait()
    os.kill(helper, signal.SIGKILL)
    assert await eventually(lambda: host_processes(marker) == []), "boxes end with their owner, helper or not"
    assert len(_left(tmp_path)) == 3 and len(leases.left_behind()) >= 3
    provider = open_provider(tmp_path / "cache")
    await provider.prepare(ImageRequest())
    assert _left(tmp_path) == []


async def test_a_killed_helper_is_survived(tmp_path: Path, own: Any) -> None:
    box = await own.start(await own.prepare(ImageRequest()), StartRequest("test"))
    os.kill(own.engine._helper._process.pid, signal.SIGKILL)
    assert (await box.exec(["echo", "on"])).stdout == b"on\n"
    await box.stop()
    assert _left(tmp_path) == []


async def test_a_living_box_can_be_reaped(own: Any, tmp_path: Path) -> None:
    request = StartRequest("test", labels={"test": str(tmp_path)})
    box = await own.start(await own.prepare(ImageRequest()), request)
    process = await box.spawn(["sleep", "100"])
    (lease,) = [lease async for lease in leases.list_leases() if lease.labels.get("test") == str(tmp_path)]
    assert lease.owner_alive is True and lease.id == box.info.id
    await leases.reap(lease)
    with pytest.raises(Exception, match="gone"):
        await process.wait()
    assert _left(tmp_path) == []


async def test_boxes_go_when_starting_them_fails(own: Any, tmp_path: Path) -> None:
    image = await own.prepare(ImageRequest())
    (tmp_path / "cache/sandbox-local/base").rename(tmp_path / "cache/sandbox-local/base2")
    with pytest.raises(Exception, match="did not start"):
        await own.start(image, StartRequest("broken"))
    assert await eventually(lambda: _left(tmp_path) == [])


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({}, False),
        ({"started": "1"}, True),
        ({"place": ["another", "boot", "pid:[1]"]}, False),
        ({"place": ["another", "boot", "pid:[1]"], "expires_at": 1.0}, True),
        ({"boot": "earlier"}, True),
        ({"started": "1", "keep": True}, False),
    ],
)
def test_whose_box_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], left: bool) -> None:
    """Another container's process ids mean nothing here; what an earlier boot left is nobody's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = leases.write("box", tmp_path, leases.LeaseRequest("test"))
    data = json.loads(path.read_text())
    if "boot" in change:
        change = {"place": [data["place"][0], change["boot"], data["place"][2]]}
    path.write_text(json.dumps(data | change))
    assert leases.left_behind() == (["box"] if left else [])


def test_a_user_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    leases._usable.cache_clear()
    assert leases.folder().is_relative_to(tmp_path)
    leases._usable.cache_clear()


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0] != "Z"
    except OSError:
        return False


def _children(pid: int) -> set[int]:
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


async def test_the_helpers_workers_are_kept_replaced_and_end_with_it(own: Any) -> None:
    image = await own.prepare(ImageRequest())
    box = await own.start(image, StartRequest("box"))
    helper = own.engine._helper._process.pid
    alone = _children(helper)
    await box.snapshot("first")
    (worker,) = _children(helper) - alone
    for n in range(3):
        await box.snapshot(f"more-{n}")
    assert _children(helper) - alone == {worker}, "one after the other: one does them all"
    await asyncio.gather(*(box.snapshot(f"beside-{n}") for n in range(2)), own.forget(await box.snapshot("gone")))
    os.kill(worker, signal.SIGKILL)

    async def noticed() -> bool:
        return worker not in _children(helper)

    assert await eventually(noticed)
    assert (await box.snapshot("after")).changes == ()
    workers = _children(helper) - alone
    os.kill(helper, signal.SIGKILL)

    async def ended() -> bool:
        return not any(map(_runs, workers))

    assert await eventually(ended)
