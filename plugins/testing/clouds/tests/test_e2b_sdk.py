"""The vendor's own SDK against the local server, without any of our plugins."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

pytest.importorskip("e2b")

from e2b import (
    AsyncSandbox,
    AsyncTemplate,
    AuthenticationException,
    BuildException,
    CommandExitException,
    NotFoundException,
    RateLimitException,
    SandboxQuery,
)
from e2b.exceptions import SandboxException
from e2b.sandbox.commands.command_handle import PtySize

from benchflow_testing_clouds.backing import has_users
from benchflow_testing_clouds.control import Remote
from benchflow_testing_clouds.fixtures import NO_USERS
from benchflow_testing_clouds.process import running

IMAGE = "debian:bookworm-slim"


@pytest.fixture(scope="module")
def cloud() -> Iterator[Remote]:
    if not has_users():
        pytest.skip(NO_USERS)
    with running("e2b") as remote, pytest.MonkeyPatch.context() as patch:
        for name, value in remote.env.items():
            patch.setenv(name, value)
        yield remote
        remote.check()
        assert remote.boxes == [], "a box is left"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def template(cloud: Remote) -> str:
    await AsyncTemplate.build(AsyncTemplate().from_image(IMAGE), "plain", cpu_count=1, memory_mb=512)
    return "plain"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def sandbox(template: str) -> AsyncIterator[AsyncSandbox]:
    found = await AsyncSandbox.create(template, metadata={"who": "sdk & more"}, envs={"GIVEN": "g"}, timeout=600)
    yield found
    assert await found.kill()


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_commands_run_in_a_real_box(sandbox: AsyncSandbox) -> None:
    done = await sandbox.commands.run("echo $((6 * 7)) $GIVEN $A; id -un; echo err >&2", envs={"A": "b"})
    assert (done.exit_code, done.stdout, done.stderr) == (0, "42 g b\nuser\n", "err\n")
    with pytest.raises(CommandExitException) as caught:
        await sandbox.commands.run("id -u; exit 3", user="root")
    assert (caught.value.exit_code, caught.value.stdout) == (3, "0\n")


async def test_files_go_in_and_out(sandbox: AsyncSandbox) -> None:
    data = bytes(range(256)) * 5000
    assert await sandbox.files.make_dir("/home/user/work")
    assert not await sandbox.files.make_dir("/home/user/work")
    await sandbox.files.write("work/a b", data)
    assert bytes(await sandbox.files.read("/home/user/work/a b", format="bytes")) == data
    info = await sandbox.files.get_info("work/a b")
    assert (info.size, info.owner, info.name) == (len(data), "user", "a b")
    await sandbox.files.rename("work/a b", "work/c")
    odd = "/home/user/work/new\nli'ne"
    assert [made.path for made in await sandbox.files.write_files([{"path": odd, "data": b"x"}])] == [odd]
    assert {entry.path for entry in await sandbox.files.list("work")} == {odd, "/home/user/work/c"}
    await sandbox.files.remove("work/c")
    assert not await sandbox.files.exists("work/c")
    with pytest.raises(NotFoundException):
        await sandbox.files.read("work/c")


async def test_a_command_takes_input_and_is_found_again(sandbox: AsyncSandbox) -> None:
    handle = await sandbox.commands.run(
        "while read line; do echo got $line; done", background=True, stdin=True, timeout=0
    )
    await handle.send_stdin("one\n")
    assert handle.pid in [row.pid for row in await sandbox.commands.list()]
    await handle.disconnect()
    seen = asyncio.Event()
    again = await sandbox.commands.connect(handle.pid, timeout=0, on_stdout=lambda _: seen.set())
    await sandbox.commands.send_stdin(handle.pid, "two\n")
    await asyncio.wait_for(seen.wait(), 20)
    await sandbox.commands.close_stdin(handle.pid)
    done = await asyncio.wait_for(again.wait(), 20)
    assert "got two\n" in done.stdout and done.exit_code == 0


async def test_a_terminal_carries_bytes_both_ways_in_order(sandbox: AsyncSandbox) -> None:
    got, seen = bytearray(), asyncio.Event()

    def take(data: bytes) -> None:
        got.extend(data)
        seen.set()

    async def until(text: bytes) -> None:
        async with asyncio.timeout(20):
            while text not in got:
                seen.clear()
                await seen.wait()

    terminal = await sandbox.pty.create(PtySize(24, 80), take, user="root", envs={"SECRET": "s3"}, timeout=0)
    typed = sandbox.pty.stream_input(terminal.pid, timeout=0)
    for part in (b"tty; X=ke", b"pt; echo $SECRET$((40", b"+2))\n"):
        await typed.send(part)
    await until(b"s342")
    assert b"/dev/pts/" in got
    await typed.close()
    await sandbox.pty.send_stdin(terminal.pid, b"echo still $X\n")
    await until(b"still kept")
    assert await sandbox.pty.kill(terminal.pid) and not await sandbox.pty.kill(987654)


async def test_an_image_is_built_from_a_dockerfile_with_its_context(template: str, tmp_path: Path) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "file").write_text("from the context")
    text = f'FROM {IMAGE}\nENV A="x y"\nWORKDIR /w\nCOPY data /data\nRUN echo "$A $PWD" >/built\nUSER root\n'
    built = AsyncTemplate(file_context_path=str(tmp_path)).from_dockerfile(text)
    assert not await AsyncTemplate.exists("mine")
    await AsyncTemplate.build(built, "mine", cpu_count=2, memory_mb=1024)
    assert await AsyncTemplate.exists("mine")
    await AsyncTemplate.build(AsyncTemplate().from_template("mine"), "mine-small", cpu_count=1, memory_mb=512)
    for name in ("mine", "mine-small"):
        found = await AsyncSandbox.create(name)
        try:
            done = await found.commands.run("cat /data/deep/file /built; pwd; id -un")
            assert done.stdout == "from the contextx y /w\n/w\nroot\n"
            info = await found.get_info()
            assert (info.cpu_count, info.memory_mb) == ((2, 1024) if name == "mine" else (1, 512))
        finally:
            await found.kill()


async def test_a_failed_build_says_why(cloud: Remote) -> None:
    said: list[str] = []
    bad = AsyncTemplate().from_image(IMAGE).run_cmd("echo the-reason >&2; exit 9")
    with pytest.raises(BuildException):
        await AsyncTemplate.build(bad, "bad", on_build_logs=lambda entry: said.append(entry.message))
    assert "the-reason" in "".join(said)


async def test_sandboxes_are_listed_by_metadata(sandbox: AsyncSandbox) -> None:
    pages = AsyncSandbox.list(query=SandboxQuery(metadata={"who": "sdk & more"}), limit=1)
    assert [row.sandbox_id for row in await pages.next_items()] == [sandbox.sandbox_id] and not pages.has_next
    assert await AsyncSandbox.list(query=SandboxQuery(metadata={"who": "nobody"})).next_items() == []


async def test_a_sandbox_ends_at_its_time(template: str, cloud: Remote) -> None:
    found = await AsyncSandbox.create(template, timeout=600)
    await found.update_network({"allow_internet_access": False})
    await found.set_timeout(1)
    async with asyncio.timeout(20):
        while found.sandbox_id in await asyncio.to_thread(lambda: cloud.boxes):
            await asyncio.sleep(0.2)
    assert not await found.is_running() and not await found.kill()


async def test_refusals_are_typed(template: str, cloud: Remote) -> None:
    cloud.fault("POST /v2/sandboxes", status=429, retry_after=7)
    with pytest.raises(RateLimitException):
        await AsyncSandbox.create(template, retries=0)
    with pytest.raises(SandboxException, match="not found"):
        await AsyncSandbox.create("no-such-template")
    with pytest.raises(AuthenticationException):
        await AsyncSandbox.create(template, api_key="e2b_wrong")


async def test_a_half_written_download_is_noticed(sandbox: AsyncSandbox, cloud: Remote) -> None:
    await sandbox.files.write("/home/user/big", b"x" * 500_000)
    cloud.fault("GET /files", after_bytes=100_000)
    with pytest.raises(Exception, match=r"."):
        await sandbox.files.read("/home/user/big", format="bytes")
    assert len(await sandbox.files.read("/home/user/big", format="bytes")) == 500_000


async def test_what_the_vendor_does_not_know_is_a_violation(cloud: Remote) -> None:
    bodies = (
        ("/no-such-route", None),
        ("/v2/sandboxes", b'{"templateID": "plain", "colour": "blue"}'),
        ("/v2/sandboxes", b'{"templateID": "plain", "network": {"colour": ["blue"]}}'),
        ("/v2/sandboxes", b'{"templateID": "plain", "timeout": "long"}'),
    )
    for path, body in bodies:
        headers = {"X-API-KEY": cloud.env["E2B_API_KEY"], "Content-Type": "application/json"}
        request = urllib.request.Request(cloud.url + path, body, headers)
        with pytest.raises(urllib.error.HTTPError) as refused:
            await asyncio.to_thread(urllib.request.urlopen, request)
        assert refused.value.code == (400 if body else 404)
        with pytest.raises(AssertionError, match=r"no-such-route|colour|timeout is no str"):
            cloud.check()
        cloud.reset()
