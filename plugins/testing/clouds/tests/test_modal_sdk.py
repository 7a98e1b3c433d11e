"""The vendor's own SDK against the local server, without any of our plugins."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("modal")

import modal

from benchflow_testing_clouds.control import Remote
from benchflow_testing_clouds.process import running

IMAGE = "debian:bookworm-slim"
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def cloud() -> Remote:
    with running("modal") as remote, pytest.MonkeyPatch.context() as patch:
        for name, value in remote.env.items():
            patch.setenv(name, value)
        yield remote
        remote.check()
        assert remote.boxes == [], "a box is left"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(cloud: Remote) -> AsyncIterator[Any]:
    found = await modal.Client.from_credentials.aio(cloud.env["MODAL_TOKEN_ID"], cloud.env["MODAL_TOKEN_SECRET"])
    yield found
    await found.close.aio()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def app(client: Any) -> Any:
    return await modal.App.lookup.aio("sdk", create_if_missing=True, client=client)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def image(app: Any) -> Any:
    return await modal.Image.from_registry(IMAGE).build.aio(app)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def sandbox(app: Any, client: Any, image: Any) -> AsyncIterator[Any]:
    found = await modal.Sandbox.create.aio(
        "sleep", "infinity", app=app, image=image, client=client, tags={"who": "sdk"}, timeout=600
    )
    yield found
    await found.terminate.aio()


async def test_commands_run_in_a_real_box(sandbox: Any) -> None:
    process = await sandbox.exec.aio("sh", "-c", "echo $((6 * 7)) $A; id -u; echo no >&2; exit 3", env={"A": "b"})
    assert await process.wait.aio() == 3
    assert await process.stdout.read.aio() == "42 b\n0\n"
    assert await process.stderr.read.aio() == "no\n"


async def test_streams_go_both_ways(sandbox: Any) -> None:
    process = await sandbox.exec.aio("sh", "-c", "while read line; do echo got $line; done; exit 5")
    lines = process.stdout.__aiter__()
    for word in ("one", "two"):
        process.stdin.write(f"{word}\n".encode())
        await process.stdin.drain.aio()
        assert await asyncio.wait_for(lines.__anext__(), 20) == f"got {word}\n"
    assert await process.poll.aio() is None
    process.stdin.write_eof()
    await process.stdin.drain.aio()
    assert await process.wait.aio() == 5
    counting = await sandbox.exec.aio("wc", "-c")
    assert await counting._stdin_write_stream.aio(io.BytesIO(bytes(3_000_000))) == 3_000_000, "in one request"
    assert await counting.stdout.read.aio() == "3000000\n"


async def test_a_cut_stream_is_read_on_from_where_it_was(sandbox: Any, cloud: Remote) -> None:
    cloud.fault("TaskExecStdioRead", after_bytes=100_000)
    process = await sandbox.exec.aio("sh", "-c", "seq 1 100000", text=False)
    got = await process.stdout.read.aio()
    assert got == b"".join(b"%d\n" % n for n in range(1, 100_001))
    assert cloud.state()["faults"] == []


async def test_an_image_is_built_from_a_dockerfile_with_its_context(app: Any, client: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("from the context")
    (tmp_path / "data" / "large").write_bytes(b"l" * (5 << 20))
    (tmp_path / "data" / "tool").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "data" / "tool").chmod(0o755)
    (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\nCOPY data /data\nRUN echo built >/built\n")
    built = await modal.Image.from_dockerfile(tmp_path / "Dockerfile", context_dir=tmp_path).build.aio(app)
    await built.publish.aio("mine:one", client=client)
    again = modal.Image.from_name("mine:one", client=client)
    sandbox = await modal.Sandbox.create.aio("sleep", "infinity", app=app, image=again, client=client, timeout=600)
    try:
        process = await sandbox.exec.aio("sh", "-c", "cat /data/file /built; wc -c </data/large; /data/tool")
        assert await process.stdout.read.aio() == "from the contextbuilt\n5242880\nran\n"
    finally:
        await sandbox.terminate.aio()
    assert await sandbox.wait.aio(raise_on_termination=False) is None and sandbox.returncode == 137


async def test_a_failed_build_says_why(app: Any, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN echo the-reason >&2; exit 9\n")
    with pytest.raises(modal.exception.Error, match="failed"):
        await modal.Image.from_dockerfile(tmp_path / "Dockerfile", context_dir=tmp_path).build.aio(app)


async def test_sandboxes_are_listed_by_tag(app: Any, client: Any, sandbox: Any) -> None:
    found = [s.object_id async for s in modal.Sandbox.list.aio(app_id=app.app_id, tags={"who": "sdk"}, client=client)]
    assert found == [sandbox.object_id]
    assert await sandbox.get_tags.aio() == {"who": "sdk"}
    none = [s async for s in modal.Sandbox.list.aio(app_id=app.app_id, tags={"who": "nobody"}, client=client)]
    assert none == []
    with pytest.raises(modal.exception.NotFoundError):
        await modal.Sandbox.from_id.aio("sb-nobody", client=client)


async def test_a_sandbox_with_a_gpu_goes_the_older_way(app: Any, client: Any, image: Any, cloud: Remote) -> None:
    cloud.reset()
    sandbox = await modal.Sandbox.create.aio("sleep", "9", app=app, image=image, client=client, gpu="T4", timeout=60)
    process = await sandbox.exec.aio("echo", "up")
    assert await process.stdout.read.aio() == "up\n"
    await sandbox.terminate.aio()
    assert cloud.requests["SandboxCreate"] == 1 and "SandboxCreateV2" not in cloud.requests


async def test_a_term_ends_a_sandbox(app: Any, client: Any, image: Any) -> None:
    sandbox = await modal.Sandbox.create.aio("sleep", "600", app=app, image=image, client=client, timeout=1)
    with pytest.raises(modal.exception.SandboxTimeoutError):
        await sandbox.wait.aio()


async def test_refusals_are_typed(client: Any, app: Any, cloud: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.fault("AppGetOrCreate", status=429)
    with pytest.raises(modal.exception.ResourceExhaustedError):
        await modal.App.lookup.aio("sdk", client=client)
    with pytest.raises(modal.exception.NotFoundError):
        await modal.App.lookup.aio("no-such-app", client=client)
    stranger = await modal.Client.from_credentials.aio("ak-x", "as-y")
    with pytest.raises(modal.exception.AuthError):
        await modal.App.lookup.aio("sdk", client=stranger)
    await stranger.close.aio()


async def test_what_the_vendor_does_not_know_is_a_violation(cloud: Remote, client: Any) -> None:
    with pytest.raises(modal.exception.Error):
        await modal.Dict.from_name("nothing", create_if_missing=True).hydrate.aio(client=client)
    with pytest.raises(AssertionError, match="DictGetOrCreate"):
        cloud.check()
    cloud.reset()


async def test_fields_that_the_schema_has_not_are_found_at_any_depth() -> None:
    from modal_proto import api_pb2

    from benchflow_testing_clouds.modal.service import _unknown

    known = api_pb2.SandboxCreateRequest(definition=api_pb2.Sandbox(resources=api_pb2.Resources(milli_cpu=1)))
    assert not _unknown(known)
    deeper = api_pb2.Resources.FromString(b"\xf8\x3f\x01")  # number 1023, which is nobody's
    known.definition.resources.MergeFrom(deeper)
    assert _unknown(known)
