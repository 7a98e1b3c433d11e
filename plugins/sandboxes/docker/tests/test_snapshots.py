"""Snapshots: complete, whatever the engine leaves out of an image, and undone exactly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from benchflow_core.contracts import Change, ImageRequest, Sandbox, SandboxProvider, StartRequest
from benchflow_core.errors import TransferRefused
from benchflow_sandbox_docker.engine.api import EngineClient
from benchflow_sandbox_docker.engine.host import find

pytestmark = pytest.mark.docker

Start = Callable[..., Awaitable[Sandbox]]
Task = Callable[..., ImageRequest]

TREE = """FROM debian:bookworm-slim
RUN mkdir -p /data/sub /srv/d/deep && echo image >/data/kept && echo image >/data/gone && echo image >/srv/d/f && \
    echo image >/srv/d/deep/g && ln -s /srv/d /srv/link && echo image >/srv/file && chmod 640 /srv/file && \
    chown 1:1 /srv/file
VOLUME /data
WORKDIR /work
"""


async def _sh(box: Sandbox, script: str) -> str:
    done = await box.exec(["sh", "-c", script])
    assert done.exit_code == 0, done.stderr
    return done.stdout.decode()


def _changes(found: tuple[Change, ...] | None) -> dict[str, Change]:
    assert found is not None
    return {change.path: change for change in found}


async def test_volumes_and_shared_memory_are_captured(provider: SandboxProvider, task: Task) -> None:
    image = await provider.prepare(task(TREE))
    box = await provider.start(image, StartRequest(name="volumes"))
    assert await _sh(box, "cat /data/kept") == "image\n"
    await _sh(box, "rm /data/gone; echo new >/data/sub/new; chmod 700 /data/sub; ln -s kept /data/link")
    await _sh(box, "echo shared >/dev/shm/x; chown 7:7 /data/sub/new")
    snapshot = await box.snapshot("volumes")
    await _sh(box, "echo later >/data/later; rm /dev/shm/x")
    copy = await provider.start(snapshot.image, StartRequest(name="copy"))
    shown = "cd /data; ls -1; cat kept sub/new /dev/shm/x; stat -c '%a' sub; stat -c '%u:%g' sub/new; readlink link"
    assert await _sh(copy, shown) == "kept\nlink\nsub\nimage\nnew\nshared\n700\n7:7\nkept\n"
    assert await _sh(copy, "ls -a / | grep benchflow || true") == "", "no trace of how it came there"
    assert await _sh(box, "ls -a / | grep benchflow || true") == ""
    found = _changes(snapshot.changes)
    assert (found["/data/sub/new"].kind, found["/data/sub/new"].uid) == ("added", 7)
    assert (found["/data/link"].type, found["/data/link"].target) == ("link", "kept")


async def test_file_that_is_all_hole_does_not_fill_the_disk(start: Start) -> None:
    box = await start()
    await _sh(box, "truncate -s 1T /root/hole")
    with pytest.raises(TransferRefused, match="1024 GiB"):
        await box.snapshot("hole")
    await _sh(box, "truncate -s 1M /root/hole")
    assert "/root/hole" in _changes((await box.snapshot("small")).changes), "the box goes on as it was"


async def test_files_named_like_marks_of_a_layer_delete_nothing_unseen(provider: SandboxProvider, start: Start) -> None:
    box = await start()
    await _sh(box, "touch /usr/bin/.wh.grep /etc/apt/.wh..wh..opq; mkdir /root/.wh.x; echo 1 > /root/.wh.x/y")
    snapshot = await box.snapshot("marks")
    found = _changes(snapshot.changes)
    assert found["/usr/bin/grep"].kind == "deleted" and "/usr/bin/.wh.grep" not in found
    gone = [path for path in found if path.startswith("/etc/apt/")]
    assert "/usr/bin/grep" in found and all(found[path].kind == "deleted" for path in gone)
    copy = await provider.start(snapshot.image, StartRequest(name="copy", revert=("/usr/bin/grep", *gone)))
    assert await _sh(copy, "echo x | grep x; ls /etc/apt | wc -l") == await _sh(box, "echo x; ls /etc/apt | wc -l")


async def test_folders_made_anew_and_things_of_another_kind_are_told(provider: SandboxProvider, task: Task) -> None:
    image = await provider.prepare(task(TREE))
    box = await provider.start(image, StartRequest(name="kinds"))
    await _sh(box, "rm -rf /srv/d && mkdir /srv/d && echo mine >/srv/d/own; rm /srv/link && mkdir /srv/link; "
                   "rm /srv/file && ln -s /etc/passwd /srv/file; rm -r /usr/share/base-files")  # fmt: skip
    found = _changes((await box.snapshot("kinds")).changes)
    assert found["/srv/d/own"].kind == "added"
    assert {found[p].kind for p in ("/srv/d/f", "/srv/d/deep")} == {"deleted"}
    assert (found["/srv/link"].type, found["/srv/link"].was) == ("dir", "link")
    assert (found["/srv/file"].type, found["/srv/file"].was, found["/srv/file"].target) == (
        "link",
        "file",
        "/etc/passwd",
    )
    gone = found["/usr/share/base-files"]
    assert (gone.kind, gone.type, gone.was, gone.mode) == ("deleted", "dir", "dir", 0)
    assert "/srv" not in found and "/usr/share" not in found, "a folder that only got other entries is no change"


async def test_undoing_brings_back_content_mode_and_owner(provider: SandboxProvider, task: Task) -> None:
    image = await provider.prepare(task(TREE))
    box = await provider.start(image, StartRequest(name="undo"))
    await _sh(box, "echo mine >/srv/file; chmod 777 /srv/file; chown 0:0 /srv/file; rm -rf /srv/d; ln -s /tmp /srv/d; "
                   "echo added >/etc/added; mkdir -p /opt/mine/x; rm /srv/link; echo x >/srv/link; echo t >/tmp/f")  # fmt: skip
    snapshot = await box.snapshot("undo")
    revert = ("/srv/file", "/srv/d", "/etc/added", "/opt/mine/x", "/srv/link")
    copy = await provider.start(snapshot.image, StartRequest(name="copy", revert=revert))
    shown = "cat /srv/file; stat -c '%a %u:%g' /srv/file; cat /srv/d/f /srv/d/deep/g; readlink /srv/link; cat /tmp/f"
    assert await _sh(copy, shown) == "image\n640 1:1\nimage\nimage\n/srv/d\nt\n"
    assert await _sh(copy, "ls /etc/added /opt/mine/x 2>/dev/null || ls /opt/mine") == ""


async def test_undoing_a_path_below_a_planted_link_writes_nothing_through_it(
    provider: SandboxProvider, task: Task
) -> None:
    image = await provider.prepare(task(TREE))
    box = await provider.start(image, StartRequest(name="link"))
    await _sh(box, "rm -rf /srv/d; mkdir /victim; echo precious >/victim/f; ln -s /victim /srv/d")
    snapshot = await box.snapshot("link")
    copy = await provider.start(snapshot.image, StartRequest(name="copy", revert=("/srv/d/f",)))
    assert await _sh(copy, "cat /victim/f; test ! -L /srv/d; cat /srv/d/f") == "precious\nimage\n"


async def test_nothing_but_kept_snapshots_outlives_the_provider(
    provider: SandboxProvider, start: Start, engine: EngineClient
) -> None:
    box = await start()
    kept, gone, forgotten = [await box.snapshot(name, keep=name == "kept") for name in ("kept", "gone", "forgotten")]
    await provider.forget(forgotten)
    await provider.forget(kept)
    await provider.close()
    there = [await engine.image(str(s.image.meta["image"])) is not None for s in (kept, gone, forgotten)]
    assert there == [True, False, False]


async def test_files_that_the_engine_mounts_are_carried_too(start: Start) -> None:
    box = await start()
    before = _changes((await box.snapshot("before")).changes)
    assert not {"/etc/hosts", "/etc/resolv.conf", "/etc/hostname"} & set(before)
    await _sh(box, "echo 10.1.2.3 app.internal >>/etc/hosts; echo nameserver 10.9.9.9 >/etc/resolv.conf")
    snapshot = await box.snapshot("after")
    found = _changes(snapshot.changes)
    assert [found[p].kind for p in ("/etc/hosts", "/etc/resolv.conf")] == ["modified", "modified"]
    copy = await start(snapshot.image, revert=("/etc/resolv.conf",))
    assert "app.internal" in await _sh(copy, "cat /etc/hosts")
    assert "10.9.9.9" not in await _sh(copy, "cat /etc/resolv.conf")


async def test_file_that_is_a_mount_is_written_in_place(start: Start, tmp_path: Path) -> None:
    box = await start()
    (tmp_path / "hosts").write_text("10.1.2.3 uploaded.internal\n")
    await box.upload(tmp_path / "hosts", "/etc/hosts", mode=0o644)
    assert await _sh(box, "cat /etc/hosts") == "10.1.2.3 uploaded.internal\n"


class Between:
    """Stands between the sandbox and the engine, and answers 500 to questions about changes once `broken`."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.broken = False
        self.refused = 0
        self._pipes: set[asyncio.Task[None]] = set()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_engine, to_engine = await asyncio.open_unix_connection(self.engine)
        self._pipes |= {
            asyncio.create_task(self._ask(reader, to_engine, writer)),
            asyncio.create_task(self._answer(from_engine, writer)),
        }

    async def _ask(
        self, reader: asyncio.StreamReader, engine: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(1 << 16):
            if self.broken and b"/changes HTTP/1.1" in data.partition(b"\r\n")[0]:
                text = b'{"message": "open: not a directory"}'
                self.refused += 1
                back.write(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
            else:
                engine.write(data)
                await engine.drain()
        if engine.can_write_eof():
            engine.write_eof()

    async def _answer(self, engine: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        while data := await engine.read(1 << 16):
            back.write(data)
            await back.drain()
        back.close()


@pytest_asyncio.fixture
async def between(engine: EngineClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Between]:
    proxy = Between(find().path)
    server = await asyncio.start_unix_server(proxy.connect, tmp_path / "between.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/between.sock")
    yield proxy
    server.close()


async def test_changes_are_found_by_looking_where_the_engine_cannot_tell(
    between: Between, open_provider: Callable[[], SandboxProvider], task: Task
) -> None:
    """Podman 4.3 answers 500 where a file became a folder. A file's times can be set back, all but one of them."""
    provider, podman = open_provider(), "podman" in between.engine
    box = await provider.start(await provider.prepare(task(TREE)), StartRequest(name="looking"))
    await _sh(box, "cp -p /srv/d/f /tmp/f; echo IMAGE >/srv/d/f; touch -r /tmp/f /srv/d/f; rm /srv/d/deep/g /tmp/f")
    await _sh(box, "chmod 600 /srv/file; rm /srv/link; mkdir /srv/link; echo x >/srv/link/x; echo x >/data/x")
    told = None if podman else _changes((await box.snapshot("told")).changes)
    between.broken = True
    seen = _changes((await box.snapshot("seen")).changes)
    assert between.refused
    assert told is None or seen == told
    assert {"/srv/d/f", "/srv/d/deep/g", "/srv/file", "/srv/link", "/srv/link/x", "/data/x"} <= seen.keys()
    assert seen["/srv/link"].was == "link" and seen["/srv/d/deep/g"].kind == "deleted"
