"""The vendor's own SDK against the local server, without any of our plugins."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from benchflow_testing_clouds.control import Remote
from benchflow_testing_clouds.process import running

sdk = pytest.importorskip("daytona")  # it imports what it is asked for, when it is asked
IMAGE = "debian:bookworm-slim"


@pytest.fixture(scope="module")
def cloud() -> Remote:
    with running("daytona") as remote, pytest.MonkeyPatch.context() as patch:
        for name, value in remote.env.items():
            patch.setenv(name, value)
        yield remote
        remote.check()
        assert remote.boxes == [], "a box is left"


@pytest.fixture
def storage_without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's object storage client insists on TLS and reads no variable; the local storage has none."""
    from daytona._async import object_storage

    real = object_storage.S3Store

    def plain(**settings: Any) -> Any:
        return real(**{**settings, "client_options": {**settings["client_options"], "allow_http": True}})

    monkeypatch.setattr(object_storage, "S3Store", plain)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def daytona(cloud: Remote) -> AsyncIterator[sdk.AsyncDaytona]:
    async with sdk.AsyncDaytona() as found:
        yield found


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def sandbox(daytona: sdk.AsyncDaytona):
    found = await daytona.create(sdk.CreateSandboxFromImageParams(image=IMAGE, labels={"who": "sdk"}), timeout=0)
    yield found
    await found.delete()


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_commands_run_in_a_real_box(sandbox) -> None:
    done = await sandbox.process.exec("echo $((6 * 7)); id -u; exit 3", env={"A": "b"})
    assert (done.exit_code, done.result) == (3, "42\n0\n")


async def test_files_go_in_and_out(sandbox, tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    await sandbox.fs.create_folder("/work", "755")
    await sandbox.fs.upload_file(data, "/work/a b")
    assert await sandbox.fs.download_file("/work/a b") == data
    info = await sandbox.fs.get_file_info("/work/a b")
    assert (info.size, info.is_dir) == (len(data), False)
    odd = 'quo"te\nline'
    await sandbox.process.exec(f"printf x > '/work/{odd}'")  # the SDK would not send such a name
    assert await sandbox.fs.download_file(f"/work/{odd}") == b"x"
    assert [entry.name for entry in await sandbox.fs.list_files("/work")] == ["a b", odd]
    await sandbox.fs.delete_file("/work/a b")
    with pytest.raises(sdk.DaytonaError):
        await sandbox.fs.download_file("/work/a b")


async def test_a_session_streams_both_ways(sandbox) -> None:
    await sandbox.process.create_session("talk")
    for line in ("cd /tmp; export WHO=me", 'test "$PWD$WHO" = /tmpme'):
        done = await sandbox.process.execute_session_command("talk", sdk.SessionExecuteRequest(command=line))
        assert done.exit_code == 0, "a session is one shell"
    asked = sdk.SessionExecuteRequest(command="while read line; do echo got $line; echo err >&2; done", run_async=True)
    command = await sandbox.process.execute_session_command("talk", asked)
    out, err, seen = [], [], asyncio.Event()

    def take(into: list[str], text: str) -> None:
        into.append(text)
        if "got two" in "".join(out) and "".join(err).count("err") == 2:
            seen.set()

    takers = partial(take, out), partial(take, err)
    logs = asyncio.create_task(sandbox.process.get_session_command_logs_async("talk", command.cmd_id, *takers))
    for word in ("one", "two"):
        await sandbox.process.send_session_command_input("talk", command.cmd_id, f"{word}\n")
    await asyncio.wait_for(seen.wait(), 20)
    await sandbox.process.delete_session("talk")
    await asyncio.wait_for(logs, 20)
    assert "".join(out) == "got one\ngot two\n" and "".join(err) == "err\nerr\n"


async def test_a_terminal_is_one_and_survives_its_connection(sandbox) -> None:
    got, seen = bytearray(), asyncio.Event()

    def take(data: bytes) -> None:
        got.extend(data)
        seen.set()

    async def until(text: bytes) -> None:
        async with asyncio.timeout(20):
            while text not in got:
                seen.clear()
                await seen.wait()

    terminal = await sandbox.process.create_pty_session("term", take, envs={"SECRET": "s3"})
    await terminal.send_input("tty; X=kept; echo $SECRET$((40+2))\n")
    await until(b"s342")
    assert b"/dev/pts/" in got
    await terminal.disconnect()
    assert [session.id for session in await sandbox.process.list_pty_sessions()] == ["term"]
    again = await sandbox.process.connect_pty_session("term", take)
    await again.send_input("echo still $X\n")
    await until(b"still kept")
    await again.send_input("exit 7\n")
    assert (await asyncio.wait_for(again.wait(), 20)).exit_code == 7


async def test_an_image_is_built_from_a_dockerfile_with_its_context(
    daytona: sdk.AsyncDaytona, tmp_path: Path, storage_without_tls: None
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("from the context")
    (tmp_path / "Dockerfile").write_text(f"FROM {IMAGE}\nCOPY data /data\nRUN echo built >/built\n")
    image = sdk.Image.from_dockerfile(tmp_path / "Dockerfile")
    await daytona.snapshot.create(
        sdk.CreateSnapshotParams(name="mine", image=image, resources=sdk.Resources(cpu=2, memory=2))
    )
    sandbox = await daytona.create(sdk.CreateSandboxFromSnapshotParams(snapshot="mine"), timeout=0)
    try:
        assert (sandbox.cpu, sandbox.memory) == (2, 2)
        assert (await sandbox.process.exec("cat /data/file /built")).result == "from the contextbuilt\n"
    finally:
        await sandbox.delete()
    await daytona.snapshot.delete("mine")
    with pytest.raises(sdk.DaytonaNotFoundError):
        await daytona.snapshot.get("mine")


async def test_a_failed_build_says_why(daytona: sdk.AsyncDaytona) -> None:
    image = sdk.Image.base(IMAGE).run_commands("echo the-reason >&2; exit 9")
    said: list[str] = []
    with pytest.raises(sdk.DaytonaError):
        await daytona.snapshot.create(sdk.CreateSnapshotParams(name="bad", image=image), on_logs=said.append)
    assert "the-reason" in "".join(said)
    await daytona.snapshot.delete("bad")


async def test_sandboxes_are_listed_by_label(daytona: sdk.AsyncDaytona, sandbox) -> None:
    found = [entry.id async for entry in daytona.list(sdk.ListSandboxesQuery(labels={"who": "sdk"}, limit=1))]
    assert found == [sandbox.id]
    assert [entry async for entry in daytona.list(sdk.ListSandboxesQuery(labels={"who": "nobody"}))] == []


async def test_a_slow_start_is_told_by_an_event(daytona: sdk.AsyncDaytona, cloud: Remote) -> None:
    cloud.fault("POST /sandbox", delay=0.5)
    found = await daytona.create(sdk.CreateSandboxFromImageParams(image=IMAGE), timeout=0)
    assert (await found.process.exec("echo up")).result == "up\n"
    await found.delete()


async def test_refusals_are_typed(daytona: sdk.AsyncDaytona, cloud: Remote) -> None:
    cloud.fault("GET /sandbox", status=429, retry_after=7)
    with pytest.raises(sdk.DaytonaRateLimitError) as caught:
        await daytona.get("anything")
    assert caught.value.headers.get("Retry-After") == "7"
    with pytest.raises(sdk.DaytonaNotFoundError):
        await daytona.get("no-such-sandbox")


async def test_a_half_written_download_is_noticed(sandbox, cloud: Remote) -> None:
    await sandbox.fs.upload_file(b"x" * 500_000, "/big")
    cloud.fault("POST /files/bulk-download", after_bytes=100_000)
    with pytest.raises(sdk.DaytonaError):
        await sandbox.fs.download_file("/big")
    assert len(await sandbox.fs.download_file("/big")) == 500_000


async def test_what_the_vendor_does_not_know_is_a_violation(cloud: Remote) -> None:
    import urllib.error
    import urllib.request

    request = urllib.request.Request(
        f"{cloud.url}/api/no-such-route", headers={"Authorization": f"Bearer {cloud.env['DAYTONA_API_KEY']}"}
    )
    with pytest.raises(urllib.error.HTTPError):
        await asyncio.to_thread(urllib.request.urlopen, request)
    with pytest.raises(AssertionError, match="no-such-route"):
        cloud.check()
    cloud.reset()
    body = b'{"name": "x", "buildInfo": {"dockerfileContent": "FROM x", "colour": "blue"}, "cpu": "many"}'
    headers = {"Authorization": f"Bearer {cloud.env['DAYTONA_API_KEY']}", "Content-Type": "application/json"}
    for sent in (body, body.replace(b'"many"', b"1")):
        request = urllib.request.Request(f"{cloud.url}/api/snapshots", sent, headers)
        with contextlib.suppress(urllib.error.HTTPError):
            await asyncio.to_thread(urllib.request.urlopen, request)
        with pytest.raises(AssertionError, match=r"not a CreateSnapshot|BuildInfo has no field 'colour'"):
            cloud.check()
        cloud.reset()
