"""Access views in a box whose root may mount, as a vendor's may; where it may not, that is found out and said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from benchflow_testing_kit.sandbox.limits import LimitTests

from benchflow_boxkit import package
from benchflow_boxkit.channel import Channel
from benchflow_boxkit.sandbox import BoxSandbox, Tools
from benchflow_boxkit.snapshots import Indexes, Snapshots
from benchflow_core.contracts import (
    AccessView,
    Capability,
    ImageRef,
    ImageRequest,
    NetworkPolicy,
    Process,
    Sandbox,
    SandboxContext,
    SandboxProvider,
    StartRequest,
)
from benchflow_core.errors import CapabilityMissing

local = pytest.importorskip("benchflow_sandbox_local.plugin", reason="the embedded sandbox is not installed")
pytestmark = pytest.mark.skipif(
    Capability.USERS not in local.benchflow_sandbox().capabilities(), reason="a normal user's boxes have one user"
)
_IMAGE = ImageRef("x", workdir="/app", runtimes={"python": package.PYTHON}, meta={"index": "x"})
_DAEMON = 2280
"""A port of a server in the box that does what it is asked for, as Daytona's."""
_ESCAPES = """
import ctypes, os, socket, subprocess, sys
secret = sys.argv[1]
def tried(name, attempt):
    try:
        attempt()
        print(name)
    except OSError:
        pass
def supervisor():
    socket.socket(socket.AF_UNIX).connect("/run/benchflow-box/socket")
def kit():
    open("/opt/benchflow/boxkit/changed", "w")
def again():
    libc = ctypes.CDLL(None)
    if os.fork():
        return os.wait()[1] and (_ for _ in ()).throw(OSError())
    libc.unshare(0x10020000)
    libc.umount2(os.path.dirname(secret).encode(), 2)
    os._exit(0 if os.path.exists(secret) else 1)
def unmounted():
    if ctypes.CDLL(None).umount2(os.path.dirname(secret).encode(), 2):
        raise OSError
def elsewhere():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if os.path.exists(f"/proc/{pid}/root{secret}"):
            return
    raise OSError
def daemon(protocol=0, flag=0):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as client:
        client.sendto(b"x", flag, ("127.0.0.1", 2280)) if flag else client.connect(("127.0.0.1", 2280))
def gateway():
    socket.create_connection(("127.0.0.1", 2281))
def daemon_by_mptcp():
    daemon(262)
def daemon_at_once():
    daemon(0, 0x20000000)
for attempt in (supervisor, kit, again, unmounted, elsewhere, daemon, daemon_by_mptcp, daemon_at_once, gateway):
    tried(attempt.__name__, attempt)
tried("read", lambda: open(secret))
"""


class Attached:
    """A command's standard streams as one. Its tree is not ended with it: the supervisor is part of it."""

    def __init__(self, process: Process) -> None:
        self.read, self.write, self.close = process.read, process.write, process.close_stdin


class Here:
    """A vendor's machine, which is a box of this host."""

    id, notices = "here", ()

    def __init__(self, box: Sandbox) -> None:
        self._box = box

    async def connect(self) -> Attached:
        return Attached(await self._box.spawn(package.ATTACH, cwd="/"))

    async def set_network(self, policy: NetworkPolicy) -> None: ...

    async def logs(self, tail: int) -> bytes:
        return b""

    async def delete(self) -> None:
        await self._box.stop()


class Unseen(BoxSandbox):
    """Nobody asks what its image has: to find out would take longer than all the rest."""

    async def _furnish(self, channel: Channel, revert: tuple[str, ...]) -> list[str]:
        return list((await channel.call("begin", workdir=self._workdir, skip=[]))["users"])


Start = Callable[..., Awaitable[BoxSandbox]]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest_asyncio.fixture
async def start(tmp_path: Path, cache: Path) -> AsyncIterator[Start]:
    providers: list[SandboxProvider] = []

    async def start_(nesting: str) -> BoxSandbox:
        (tmp_path / "work").mkdir()
        context = SandboxContext(tmp_path / "work", cache, options={"nesting": nesting})
        providers.append(provider := local.benchflow_sandbox().open(context))
        image = await provider.prepare(ImageRequest())

        async def machine(*_: object) -> Here:
            box = await provider.start(image, StartRequest(name="machine"))
            await box.upload(package.tree(cache), package.HOME)
            return Here(box)

        indexes, snapshots = Indexes(tmp_path, "here"), Snapshots(tmp_path, "here", {})
        tools = Tools(indexes, snapshots, machine, lambda _: None, (_DAEMON,))
        box = Unseen(tools, _IMAGE, StartRequest(name="box"), {})
        await box.begin()
        return box

    yield start_
    for provider in providers:
        await provider.close()


async def test_views_hold_as_root_and_there_is_no_way_around(start: Start) -> None:
    """Neither through the supervisor, nor namespaces of its own, nor another process's root."""
    box = await start("yes")
    for name, case in (
        ("h", LimitTests.test_hidden_paths_cannot_be_read),
        ("r", LimitTests.test_read_only_paths_cannot_be_changed),
    ):
        await box.exec(["mkdir", f"/{name}"])
        await case(LimitTests(), box, f"/{name}")
    await box.exec(["sh", "-c", "mkdir /secret; echo x >/secret/file"])
    command = [package.PYTHON, "-c", _ESCAPES, "/secret/file"]
    for port in (_DAEMON, _DAEMON + 1):
        await box.spawn([package.PYTHON, "-m", "http.server", "--bind", "127.0.0.1", str(port)])
        while port not in await box.listening():
            await asyncio.sleep(0.02)
    free = await box.exec(command)
    ways = b"supervisor kit again elsewhere daemon daemon_by_mptcp daemon_at_once gateway read"
    assert free.stdout.split() == ways.split(), free.stderr
    limited = await box.exec(command, view=AccessView(hidden=("/secret",)))
    assert (limited.exit_code, limited.stdout) == (0, b"gateway\n"), limited.stderr
    await box.stop()


async def test_nothing_runs_unlimited_where_views_cannot_be_had(start: Start) -> None:
    box = await start("no")
    with pytest.raises(CapabilityMissing, match="unshare: Operation not permitted"):
        await box.exec(["touch", "/ran"], view=AccessView(hidden=("/etc",)))
    assert (await box.exec(["test", "-e", "/ran"])).exit_code == 1
    await box.stop()
