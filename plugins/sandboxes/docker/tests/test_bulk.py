"""Much data goes into a box by the engine's own way, with the same result as over the box's connection."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from benchflow_core.contracts import ImageRequest, Sandbox, SandboxContext, StartRequest
from benchflow_sandbox_docker.plugin import benchflow_sandbox

FOUND = benchflow_sandbox().available()
pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not FOUND.ok, reason=f"no Docker engine: {FOUND.reason}"),
    pytest.mark.xdist_group("docker"),
]
MUCH = 5 * 1024 * 1024


@pytest_asyncio.fixture
async def box(tmp_path: Path) -> AsyncIterator[Sandbox]:
    (tmp_path / "work").mkdir()
    provider = benchflow_sandbox().open(SandboxContext(tmp_path / "work", tmp_path / "cache", env=dict(os.environ)))
    image = await provider.prepare(ImageRequest(image="debian:bookworm-slim"))
    yield await provider.start(image, StartRequest(name="bulk"))
    await provider.close()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "large").write_bytes(os.urandom(MUCH))
    (root / "a" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "a" / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a/run.sh")
    return root


async def out(box: Sandbox, script: str) -> str:
    done = await box.exec(("sh", "-c", script), timeout=60)
    return (done.stdout + done.stderr).decode().strip()


async def test_a_large_tree_arrives_as_it_is(box: Sandbox, tree: Path, tmp_path: Path) -> None:
    await box.exec(("sh", "-c", "mkdir -p /safe && ln -s /safe /target && mkdir /other && touch /other/stays"))
    await box.upload(tree, "/target", user="nobody")
    assert await out(box, "ls -A /safe; test -L /target || echo folder") == "folder"
    assert (
        await out(box, "/target/link; readlink /target/link; stat -c %U:%a /target/a/run.sh")
        == "ran\na/run.sh\nnobody:755"
    )
    await box.upload(tree, "/other/deep/er")
    await box.upload(tree, "/dev/shm/there")  # another file system than the root
    assert await out(box, "stat -c %U /other/deep/er/a/b/large; ls /other") == "root\ndeep\nstays"
    await box.download("/dev/shm/there/a/b/large", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tree / "a" / "b" / "large").read_bytes()
    assert await out(box, "ls -A / | grep benchflow") == ""


async def test_cancelled_or_refused_nothing_is_left_in_the_box(box: Sandbox, tree: Path) -> None:
    with pytest.raises(Exception, match="ghost"):
        await box.upload(tree, "/x", user="ghost")
    for delay in (0.0, 0.01, 0.05, 0.1):
        uploading = asyncio.ensure_future(box.upload(tree, "/cancelled"))
        await asyncio.sleep(delay)
        uploading.cancel()
        await asyncio.gather(uploading, return_exceptions=True)
    async with asyncio.timeout(60):
        while await out(box, "ls -A / | grep benchflow-incoming"):
            await asyncio.sleep(0.1)
