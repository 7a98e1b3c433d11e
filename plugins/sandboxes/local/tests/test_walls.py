"""What root in a box cannot do to the host, to the box's first process, or to see."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from benchflow_testing_kit.host import host_processes

from benchflow_core.contracts import ImageRequest, Sandbox, StartRequest

REFUSED = {
    "core_pattern": "echo '|/tmp/x' >/proc/sys/kernel/core_pattern",
    "sysctl": "echo 1 >/proc/sys/vm/drop_caches",
    "sysrq": "echo c >/proc/sysrq-trigger",
    "sys": "echo mem >/sys/power/state",
    "mount a tmpfs": "mount -t tmpfs none /mnt",
    "mount proc": "mount -t proc none /mnt",
    "unmount": "umount /proc/sys",
    "remount": "mount -o remount,rw /proc/sys",
    "bind": "mount --bind / /mnt",
    "user namespace": "unshare -U true",
    "mount namespace": "unshare -m true",
    "enter the first process": "nsenter -t 1 -m true",
    "see the first process's root": "ls /proc/1/root/",
    "read the first process": "head -c1 /proc/1/mem",
    "read its environment": "grep -q . /proc/1/environ",
    "device node": "mknod /tmp/disk b 8 0",
    "host name": "hostname other",
    "host clock": "date -s '2001-01-01'",
    "kernel log": "dmesg",
}


async def test_root_in_a_box_is_refused(start: Any) -> None:
    box = await start()
    results = {name: (await box.exec(["sh", "-c", script])).exit_code for name, script in REFUSED.items()}
    assert [name for name, code in results.items() if code == 0] == []


async def test_with_nesting_root_mounts_in_its_box_and_still_changes_nothing_outside(open_provider: Any) -> None:
    provider = open_provider(nesting="yes")
    box = await provider.start(await provider.prepare(ImageRequest()), StartRequest(name="nesting"))
    free = (
        "unshare -Um true && mount -t tmpfs none /mnt && mount --bind /app /srv && mount -o remount,rw,bind /proc/sys"
    )
    assert (await box.exec(["sh", "-c", free])).exit_code == 0
    kept = ("core_pattern", "sysctl", "sysrq", "sys", "device node", "host clock", "kernel log")
    results = {name: (await box.exec(["sh", "-c", REFUSED[name]])).exit_code for name in kept}
    assert [name for name, code in results.items() if code == 0] == []


async def test_the_interpreter_of_the_host_cannot_be_changed(provider: Any, start: Any) -> None:
    image = await provider.prepare(ImageRequest())
    python = image.runtimes["python"]
    if python.startswith("/usr/"):
        pytest.skip("it is one of the programs in /usr, of which a box has its own copy")
    box = await start()
    for path in (python, f"{os.path.realpath(sys.base_prefix)}/bin/python3"):
        assert (await box.exec(["sh", "-c", f"{path} -c pass"])).exit_code == 0
        assert (await box.exec(["sh", "-c", f"echo >>{path} || rm -f {path}"])).exit_code != 0


async def test_first_process_cannot_be_killed(start: Any) -> None:
    box = await start()
    await box.exec(["sh", "-c", "kill -9 1; kill -INT 1; kill -TERM 1; kill -STOP 1; kill -CHLD 1; kill -SEGV 1"])
    assert (await box.exec(["echo", "on"])).stdout == b"on\n"


async def test_everything_killed_from_inside_leaves_the_box(start: Any) -> None:
    box = await start()
    process = await box.spawn(["sleep", "100"])
    done = await box.exec(["sh", "-c", "kill -9 -1; echo alive"])
    assert done.stdout == b"alive\n"
    assert await process.wait() == -9
    assert (await box.exec(["echo", "on"])).stdout == b"on\n"


async def test_homes_projects_and_sockets_of_the_host_do_not_exist(start: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    box = await start()
    here = Path(__file__).resolve()
    hidden = [tmp_path / "secret", here, Path.home() / ".ssh", Path("/var/run/docker.sock"), Path("/run/docker.sock")]
    hidden += [Path("/var/log/syslog"), Path("/lost+found"), Path("/sys/fs/cgroup/memory"), Path("/proc/1/cwd/etc")]
    for path in hidden:
        assert (await box.exec(["ls", "-d", str(path)])).exit_code != 0, f"{path} is visible"
    assert (await box.exec(["sh", "-c", "ls -A /root /home | grep -v '^/\\|^$\\|^.pyenv$'"])).stdout == b""


async def test_accounts_and_secrets_of_the_host_stay_outside(start: Any) -> None:
    box = await start()
    text = (await box.exec(["sh", "-c", "cat /etc/passwd /etc/shadow /etc/group"])).stdout.decode()
    assert "root:x:0:0:" in text and "root:*:" in text
    people = [row.split(":") for row in Path("/etc/passwd").read_text().splitlines()]
    for name, uid in ((row[0], int(row[2])) for row in people if len(row) == 7):
        if 1000 <= uid < 60000:
            assert f"{name}:" not in text, "an account of a person is visible"
    names = (
        await box.exec(["find", "/etc", "-name", "*.key", "-o", "-name", "sudoers", "-o", "-name", "*_key"])
    ).stdout
    assert names == b""


async def test_what_only_root_may_read_on_the_host_is_not_in_a_box(open_provider: Any, start: Any) -> None:
    if not os.access("/opt", os.W_OK):
        pytest.skip("needs to place a file in /opt")
    folder, file = Path("/opt/benchflow-test-secret"), Path("/opt/benchflow-test-secret-file")
    try:
        folder.mkdir(mode=0o700)
        (folder / "inner").write_text("secret")
        file.write_text("secret")
        file.chmod(0o600)
        box = await start()
        assert (await box.exec(["cat", str(folder / "inner"), str(file)])).stdout == b""
    finally:
        (folder / "inner").unlink()
        folder.rmdir()
        file.unlink()


async def test_files_of_a_box_are_not_those_of_root_on_the_host(start: Any, tmp_path: Path) -> None:
    """Ids are shifted: root in the box is an id that owns nothing here."""
    if os.geteuid() != 0:
        pytest.skip("ids are shifted only where root runs the boxes")
    box: Sandbox = await start()
    marker = f"marker-of-{tmp_path.name}"
    process = await box.spawn(["sh", "-c", "echo on; while :; do sleep 1; done", marker])
    await process.read()
    found = host_processes(marker)
    assert found and all(os.stat(f"/proc/{pid}").st_uid >= 0x70000000 for pid in found)


async def test_a_crash_calls_no_core_handler(start: Any) -> None:
    """The host's handler would run outside, as root, on data from inside: a limit of one byte keeps it away."""
    box = await start()
    done = await box.exec(["python3", "-c", "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))"])
    assert done.stdout == b"(1, 1)\n"


async def test_corrupt_accounts_do_not_lock_us_out(start: Any) -> None:
    box = await start()
    await box.exec(["sh", "-c", "rm /etc/passwd /etc/group; mkfifo /etc/passwd; mkdir /etc/group"])
    assert (await box.exec(["id", "-u"], user="root", timeout=10)).stdout == b"0\n"
    await box.exec(["sh", "-c", "rm /etc/passwd; echo root:x:1000:1000::/evil:/bin/sh >/etc/passwd"])
    assert (await box.exec(["sh", "-c", "id -u; echo $HOME"])).stdout == b"0\n/root\n"


async def test_setuid_programs_work_for_users_of_the_box(start: Any) -> None:
    if os.geteuid() != 0:
        pytest.skip("one user only")
    box = await start()
    script = "cp /usr/bin/id /usr/local/bin/who-am-i && chmod 4755 /usr/local/bin/who-am-i"
    assert (await box.exec(["sh", "-c", script])).exit_code == 0
    done = await box.exec(["/usr/local/bin/who-am-i"], user="nobody")
    assert b"euid=0(root)" in done.stdout
