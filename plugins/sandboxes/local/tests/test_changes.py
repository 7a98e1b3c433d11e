"""Snapshots, what they say has changed, and undoing it: the corners of overlays."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchflow_core.contracts import ImageRequest, StartRequest


async def changes_after(start: Any, script: str) -> tuple[Any, Any, dict[str, Any]]:
    box = await start()
    done = await box.exec(["sh", "-c", script])
    assert done.exit_code == 0, done.stderr
    snapshot = await box.snapshot("test")
    return box, snapshot, {change.path: change for change in snapshot.changes}


async def text(box: Any, script: str) -> str:
    done = await box.exec(["sh", "-c", script])
    return str((done.stdout + done.stderr).decode())


async def test_replaced_folder_shows_what_it_lost(start: Any) -> None:
    script = "cd /etc/apt && ls -d * >/tmp/names && cd / && rm -r /etc/apt && mkdir /etc/apt && echo x >/etc/apt/new"
    box, _, found = await changes_after(start, script)
    names = (await text(box, "cat /tmp/names")).split()
    assert {f"/etc/apt/{name}" for name in names} == {p for p, c in found.items() if c.kind == "deleted"}
    assert found["/etc/apt/new"].kind == "added" and "/etc/apt" not in found


async def test_type_changes_tell_what_was(start: Any) -> None:
    script = "cd /etc; rm hosts; mkdir hosts; rm -r apt; ln -s hosts apt; rm hostname; mkfifo hostname"
    _, _, found = await changes_after(start, script)
    rows = {path: (c.kind, c.type, c.was) for path, c in found.items()}
    assert rows["/etc/hosts"] == ("modified", "dir", "file")
    assert rows["/etc/apt"] == ("modified", "link", "dir") and found["/etc/apt"].target == "hosts"
    assert rows["/etc/hostname"] == ("modified", "other", "file")


async def test_what_only_looks_changed_is_not(start: Any) -> None:
    script = """cp /etc/hosts /tmp/h && cat /tmp/h >/etc/hosts && rm /tmp/h; touch /etc/hostname
        chmod 600 /etc/fstab && chmod 644 /etc/fstab; mkdir /usr/lib/x && rmdir /usr/lib/x; true"""
    _, _, found = await changes_after(start, script)
    assert list(found) == []


@pytest.mark.skipif(shutil.which("setcap") is None, reason="needs setcap")
async def test_capabilities_are_a_change(start: Any) -> None:
    _, _, found = await changes_after(
        start, "touch /app/x; setcap cap_net_raw+ep /usr/bin/tee 2>/dev/null || touch /app/refused"
    )
    assert "/usr/bin/tee" in found or "/app/refused" in found


async def test_modes_owners_and_roots_of_mounts(start: Any) -> None:
    script = "chmod 700 /srv; chmod 711 /usr; chmod u+s /etc/hosts; echo x >/dev/shm/x"
    _, _, found = await changes_after(start, script)
    assert {path: c.mode for path, c in found.items()} == {
        "/srv": 0o700, "/usr": 0o711, "/etc/hosts": 0o4644, "/dev/shm/x": 0o644,
    }  # fmt: skip


async def test_odd_names_and_deep_folders_are_captured(start: Any, provider: Any) -> None:
    script = """cd /app && printf x >"$(printf 'bad\\377name')" && python3 - <<'END'
import os
for _ in range(1500):
    os.mkdir("d"); os.chdir("d")
open("deep", "w").write("reached")
END"""
    _, snapshot, found = await changes_after(start, script)
    assert "/app/bad\udcffname" in found
    box = await provider.start(snapshot.image, StartRequest("copy"))
    code = "import os\nos.chdir('/app')\nfor _ in range(1500): os.chdir('d')\nprint(open('deep').read())"
    assert await text(box, f'python3 -c "{code}"; ls /app | wc -l') == "reached\n2\n"
    await box.stop()


async def test_hard_links_holes_and_capabilities_survive(start: Any, provider: Any) -> None:
    script = "cd /app && echo a >a && ln a b && truncate -s 200M sparse && echo end >>sparse && mkfifo pipe"
    _, snapshot, _ = await changes_after(start, script)
    box = await provider.start(snapshot.image, StartRequest("copy"))
    shown = await text(
        box, "cd /app; stat -c '%h %s' a b sparse; du -k sparse | cut -f1; stat -c %F pipe; tail -c4 sparse"
    )
    first, second, sparse, used, kind, tail = shown.splitlines()
    assert [first, second, sparse, kind, tail] == ["2 2", "2 2", "1 209715204", "fifo", "end"]
    assert int(used) < 1000


REVERTS = [
    ("an added file", "echo x >/app/x", "/app/x", "ls -A /app", ""),
    ("an added folder", "mkdir -p /data/a/b", "/data", "ls -d /data 2>/dev/null", ""),
    ("one file of several", "echo 1 >/app/1; echo 2 >/app/2", "/app/1", "ls /app", "2\n"),
    ("a deleted file", "rm /usr/bin/env", "/usr/bin/env", "ls /usr/bin/env", "/usr/bin/env\n"),
    ("a deleted folder", "rm -r /etc/apt", "/etc/apt", "ls -d /etc/apt/sources.list.d", "/etc/apt/sources.list.d\n"),
    ("a file below a deleted folder", "rm -r /etc/default", "/etc/default/useradd", "ls /etc/default", "useradd\n"),
    ("a file below a replaced folder", "rm -r /etc/default; mkdir /etc/default; echo >/etc/default/own",
     "/etc/default/useradd", "ls /etc/default", "own\nuseradd\n"),
    ("a file beside a folder that was made again", "rm -r /etc/apt; mkdir -p /etc/apt/apt.conf.d", "/etc/apt/sources.list.d",
     "ls /etc/apt; ls /etc/apt/apt.conf.d", "apt.conf.d\nsources.list.d\n"),
    ("a file below what became a link", "rm -r /etc/default; ln -s /app /etc/default", "/etc/default/useradd",
     "ls -l /etc/default | wc -l; ls -A /app", "2\n"),
    ("a folder's mode", "chmod 700 /srv; echo x >/srv/x", "/srv", "stat -c %a /srv; ls /srv", "755\nx\n"),
    ("a mount's mode", "chmod 700 /usr", "/usr", "stat -c %a /usr", "755\n"),
    ("a folder that became a file", "rm -r /etc/apt; echo >/etc/apt", "/etc/apt", "test -d /etc/apt/sources.list.d && echo y", "y\n"),
    ("what never changed", "true", "/etc/hosts", "wc -l </etc/hosts", "2\n"),
    ("what never was", "true", "/no/such/path", "ls -d /no 2>/dev/null", ""),
    ("shared memory", "echo x >/dev/shm/x", "/dev/shm/x", "ls /dev/shm", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "script", "path", "look", "expected"), REVERTS, ids=[row[0] for row in REVERTS])
@pytest.mark.parametrize("stage", ["1", "2"])
async def test_reverting(
    open_provider: Any, stage: str, name: str, script: str, path: str, look: str, expected: str
) -> None:
    provider = open_provider(stage=stage)
    if stage == "2" and "/usr" in script:
        pytest.skip("/usr is read-only at stage 2")
    box = await provider.start(await provider.prepare(ImageRequest()), StartRequest("test"))
    done = await box.exec(["sh", "-c", script])
    assert done.exit_code == 0, done.stderr
    snapshot = await box.snapshot("test")
    before = {change.path for change in snapshot.changes}
    copy = await provider.start(snapshot.image, StartRequest("copy", revert=(path,)))
    assert await text(copy, look) == expected
    again = await provider.start(snapshot.image, StartRequest("again"))
    rest = (await again.snapshot("again")).changes
    assert rest == (), "a box on a snapshot has changed nothing yet"
    assert before == {c.path for c in (await box.snapshot("same")).changes}, "the first box is as it was"


@pytest.mark.parametrize("stage", ["1", "2"])
async def test_what_an_image_holds_comes_back_to_a_box_that_goes_on(
    open_provider: Any, stage: str, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x\nRUN echo built >/etc/own; mkdir -p /srv/a/b; echo deep >/srv/a/b/c\n")
    provider = open_provider(stage=stage)
    request = ImageRequest(dockerfile=tmp_path / "Dockerfile", context=tmp_path, allow_substitute=True)
    image = await provider.prepare(request)
    box = await provider.start(image, StartRequest("test"))
    await text(box, "echo 1 >/etc/own; rm -r /srv/a; echo new >/srv/new")
    first = await box.snapshot("first")
    assert [c.path for c in first.changes] == ["/etc/own", "/srv/a", "/srv/new"]
    copy = await provider.start(first.image, StartRequest("copy", revert=("/etc/own", "/srv/a")))
    assert await text(copy, "cat /etc/own /srv/a/b/c /srv/new") == "built\ndeep\nnew\n"
    child = await provider.start(first.image, StartRequest("child", carry_changes=True))
    assert await text(child, "cat /etc/own; mkdir -p /srv/a/b; rm /srv/new; ls /srv/a/b") == "1\n"
    second = await child.snapshot("second")
    assert [(c.path, c.kind) for c in second.changes] == [("/etc/own", "modified"), ("/srv/a/b/c", "deleted")]
    await child.restore(second)
    assert (await child.snapshot("third")).changes == second.changes
    back = await provider.start(second.image, StartRequest("back", revert=("/etc/own", "/srv/a/b/c")))
    assert await text(back, "cat /etc/own /srv/a/b/c; ls /srv") == "built\ndeep\na\n"
    on_image = await provider.start(image, StartRequest("plain", carry_changes=True))
    assert (await on_image.snapshot("none")).changes == (), "an image is not a snapshot"


async def test_files_stand_still_while_they_are_captured(start: Any, provider: Any) -> None:
    """Two files are written in turn, and copied first and last of many: a copy in which they are apart was not of one
    moment."""
    box = await start()
    code = "i=0; while :; do i=$((i+1)); for f in a z; do echo $i >/app/m; mv /app/m /app/$f; done; done"
    writer = await box.spawn(["sh", "-c", code])
    await box.exec(["sh", "-c", "for n in $(seq 400); do echo $n >/app/file$n; done"])
    for _ in range(5):
        await asyncio.sleep(0.1)
        copy = await provider.start((await box.snapshot("x")).image, StartRequest("copy"))
        one, two = (await text(copy, "cat /app/a /app/z")).split()
        assert 0 <= int(one) - int(two) <= 1
        await copy.stop()
    await writer.kill()


async def test_a_parent_in_vfork_does_not_hold_up_a_snapshot(start: Any) -> None:
    """It cannot be stopped while its child has not become a program, and the child may take its time."""
    box = await start()
    code = "import ctypes, os, time\nlibc = ctypes.PyDLL(None)\nos.write(1, b'on\\n')\nlibc.vfork() or time.sleep(300)"
    process = await box.spawn(["python3", "-c", code])
    assert await process.read() == b"on\n"
    await asyncio.sleep(0.2)
    await asyncio.wait_for(box.snapshot("x"), 8)
    await process.kill()


async def test_commands_asked_for_during_a_snapshot_wait_for_it(start: Any) -> None:
    box = await start()
    await box.exec(["sh", "-c", "for n in $(seq 300); do echo $n >/app/file$n; done"])
    both = await asyncio.gather(box.snapshot("x"), *(box.exec(["sh", "-c", f"echo >/app/late{n}"]) for n in range(5)))
    assert all(done.exit_code == 0 for done in both[1:])


async def test_a_link_planted_where_we_mount_is_refused(provider: Any, start: Any, tmp_path: Path) -> None:
    """A box cannot move what a mount of ours stands on, so the next one finds it in place."""
    image = await provider.prepare(ImageRequest())
    python = image.runtimes["python"]
    if not python.startswith("/opt/benchflow/"):
        pytest.skip("the interpreter is not mounted")
    box = await start()
    tries = "import os, contextlib\nfor f in (lambda: os.rename('/opt/benchflow', '/opt/moved'), lambda: os.rmdir('/opt/benchflow/python'),\n"
    tries += (
        "  lambda: os.rename('/opt/benchflow/python', '/opt/moved'), lambda: os.symlink('/app', '/opt/benchflow')):\n"
    )
    tries += "    with contextlib.suppress(OSError): f(); print('done')"
    assert (await box.exec(["python3", "-c", tries])).stdout == b""
    copy = await provider.start((await box.snapshot("x")).image, StartRequest("copy"))
    done = await copy.exec([python, "-c", "import os; print(os.__file__)"])
    assert done.stdout.startswith(b"/opt/benchflow/python/")
    assert (await text(copy, "readlink -f /opt/benchflow/python")) == "/opt/benchflow/python\n"
