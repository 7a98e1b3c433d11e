"""What comes out of a box is untrusted: links, traversal, special files, bombs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time
from pathlib import Path

import pytest

from benchflow_core.contracts import DownloadLimits, Sandbox
from benchflow_core.errors import TransferRefused
from benchflow_testing_kit.host import within
from benchflow_testing_kit.sandbox.base import SandboxSuite
from benchflow_testing_kit.sandbox.bench import Bench, ok, sh
from benchflow_testing_kit.suite import limit, soak

__all__ = ["HostileTests"]


class HostileTests(SandboxSuite):
    """Downloads bring regular files and folders, beneath the target, within the limits, and nothing else."""

    @pytest.fixture
    def secret(self, tmp_path: Path) -> Path:
        """A file of the host that no download may ever bring."""
        path = tmp_path / "host-secret"
        path.write_text("host-secret-content")
        return path

    async def test_links_are_left_out(self, box: Sandbox, scratch: str, tmp_path: Path, secret: Path) -> None:
        script = """
            mkdir -p "$1/d/sub" && cd "$1/d" && echo honest >sub/file
            ln -s /etc/passwd passwd; ln -s "$2" secret; ln -s / root; ln -s .. up; ln -s ../../../../../.. far
            ln -s sub inner; ln -s sub/file inner-file; ln -s nowhere dangling"""
        await ok(box, script, scratch, str(secret))
        await box.download(f"{scratch}/d", tmp_path / "out")
        assert _shape(tmp_path / "out") == {"sub": "dir", "sub/file": "file"}
        _assert_untouched(tmp_path, {"out", "host-secret"})

    async def test_a_link_as_the_source_brings_nothing_of_the_host(
        self, box: Sandbox, scratch: str, tmp_path: Path, secret: Path
    ) -> None:
        await ok(box, 'ln -s "$2" "$1/link"; ln -s "$3" "$1/dirlink"', scratch, str(secret), str(tmp_path))
        for name in ("link", "dirlink", "dirlink/host-secret"):
            with contextlib.suppress(FileNotFoundError, TransferRefused):
                await box.download(f"{scratch}/{name}", tmp_path / "out" / name)
        assert "host-secret-content" not in _texts(tmp_path / "out")
        assert "link" not in _shape(tmp_path / "out").values()

    async def test_special_files_are_left_out(self, bench: Bench, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        script = """
            mkdir "$1/d"; cd "$1/d"; echo honest >file; mkfifo pipe
            mknod null c 1 3 2>/dev/null; mknod disk b 8 0 2>/dev/null; true"""
        await ok(box, script, scratch)
        python = bench.image.runtimes.get("python")
        if python is not None:
            code = "import os, socket; os.chdir('d'); socket.socket(socket.AF_UNIX).bind('socket')"
            assert (await box.exec([python, "-c", code], cwd=scratch)).exit_code == 0
        async with within(60):
            await box.download(f"{scratch}/d", tmp_path / "out")
        assert _shape(tmp_path / "out") == {"file": "file"}
        with pytest.raises((FileNotFoundError, TransferRefused)):
            async with within(60):
                await box.download(f"{scratch}/d/pipe", tmp_path / "pipe")

    async def test_hard_links_arrive_as_files_of_their_own(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        await ok(box, 'mkdir "$1/d"; cd "$1/d"; echo same >one; ln one two', scratch)
        await box.download(f"{scratch}/d", tmp_path / "out")
        assert _shape(tmp_path / "out") == {"one": "file", "two": "file"}
        assert [(tmp_path / "out" / n).read_text() for n in ("one", "two")] == ["same\n", "same\n"]

    async def test_powers_do_not_arrive(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        await ok(box, 'mkdir "$1/d"; echo x >"$1/d/f"; chmod 6777 "$1/d/f"; chmod 2777 "$1/d"', scratch)
        await box.download(f"{scratch}/d", tmp_path / "out")
        for path in (tmp_path / "out", tmp_path / "out" / "f"):
            assert not path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID), "setuid or setgid arrived on the host"
            assert not path.stat().st_mode & 0o022, "others of the host may write what came out of a box"
            assert path.stat().st_uid == os.geteuid()

    async def test_unreadable_modes_do_not_block_the_host(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        """A folder of mode 000 must not become one that the host cannot remove, nor stop what lies beside it."""
        await ok(
            box, 'mkdir -p "$1/d/locked"; echo x >"$1/d/locked/f"; echo y >"$1/d/g"; chmod 0 "$1/d/locked"', scratch
        )
        await box.download(f"{scratch}/d", tmp_path / "out")
        assert (tmp_path / "out" / "g").read_text() == "y\n"
        assert (tmp_path / "out" / "locked").stat().st_mode & 0o700 == 0o700

    async def test_bytes_are_limited(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        script = 'mkdir "$1/d"; for i in 0 1 2 3 4 5 6 7 8 9; do dd if=/dev/zero of="$1/d/$i" bs=1000 count=100; done'
        await ok(box, script, scratch)
        await box.download(f"{scratch}/d", tmp_path / "within", limits=DownloadLimits(max_bytes=1_000_000))
        assert sum(p.stat().st_size for p in (tmp_path / "within").iterdir()) == 1_000_000
        for name, source in (("tree", f"{scratch}/d"), ("file", f"{scratch}/d/0")):
            with pytest.raises(TransferRefused):
                await box.download(source, tmp_path / name, limits=DownloadLimits(max_bytes=99_999))
            assert _size(tmp_path / name) < 200_000

    async def test_a_sparse_giant_is_refused_at_once(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        made = await sh(box, 'mkdir "$1/d"; dd if=/dev/zero of="$1/d/f" bs=1 count=1 seek=100G 2>&1', scratch)
        if made.exit_code != 0:
            await ok(box, 'dd if=/dev/zero of="$1/d/f" bs=1 count=1 seek=2147483648', scratch)
        began = time.monotonic()
        with pytest.raises(TransferRefused):
            await box.download(f"{scratch}/d", tmp_path / "out")
        with pytest.raises(TransferRefused):
            await box.download(f"{scratch}/d/f", tmp_path / "file")
        assert time.monotonic() - began < 60
        assert _size(tmp_path) < 600 * 1024 * 1024

    async def test_entries_are_limited(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        script = 'mkdir "$1/d"; cd "$1/d"; i=0; while [ $i -lt 300 ]; do mkdir d$i; : >f$i; i=$((i+1)); done'
        await ok(box, script, scratch)
        await box.download(f"{scratch}/d", tmp_path / "within", limits=DownloadLimits(max_entries=700))
        assert len(list((tmp_path / "within").iterdir())) == 600
        with pytest.raises(TransferRefused):
            await box.download(f"{scratch}/d", tmp_path / "out", limits=DownloadLimits(max_entries=599))

    async def test_depth_is_limited(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        script = 'cd "$1"; i=0; while [ $i -lt "$2" ]; do mkdir d; cd d; i=$((i+1)); done; echo deep >f'
        await ok(box, f'mkdir "$1/shallow"; set -- "$1/shallow" 30; {script}', scratch)
        await box.download(f"{scratch}/shallow", tmp_path / "within")
        assert (tmp_path / "within" / "/".join("d" * 30) / "f").read_text() == "deep\n"
        await ok(box, f'mkdir "$1/deep"; set -- "$1/deep" 500; {script}', scratch)
        with pytest.raises(TransferRefused):
            await box.download(f"{scratch}/deep", tmp_path / "out")

    @limit(300)
    async def test_a_file_replaced_while_it_is_read(
        self, box: Sandbox, scratch: str, tmp_path: Path, secret: Path
    ) -> None:
        """File, link to the host's secret, link to a folder of the host: in turn, as fast as the box can."""
        script = """
            mkdir -p "$1/d" "$1/real"; cd "$1"; echo honest >real/host-secret; : >run
            while [ -e run ]; do
                echo honest >d/x.new; mv -f d/x.new d/x; ln -s "$2" d/l.new; mv -f d/l.new d/x
                rm -rf d/sub; mkdir d/sub; echo honest >d/sub/host-secret; rm -rf d/sub; ln -s "$3" d/sub
            done"""
        swapping = asyncio.create_task(sh(box, script, scratch, str(secret), str(tmp_path)))
        await ok(box, 'until [ -e "$1/run" ]; do sleep 1; done', scratch, timeout=20)
        for n in range(40):
            with contextlib.suppress(FileNotFoundError, TransferRefused):
                await box.download(f"{scratch}/d", tmp_path / "out" / str(n))
            with contextlib.suppress(FileNotFoundError, TransferRefused):
                await box.download(f"{scratch}/d/x", tmp_path / "out" / f"x{n}")
        await ok(box, 'rm "$1/run"', scratch)
        await swapping
        assert "link" not in _shape(tmp_path / "out").values()
        assert "host-secret-content" not in _texts(tmp_path / "out"), "a download followed a link to a file of the host"
        _assert_untouched(tmp_path, {"out", "host-secret"})

    @soak
    async def test_two_hundred_thousand_entries_are_refused(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        script = """
            mkdir "$1/d"; cd "$1/d"; i=0
            while [ $i -lt 200 ]; do mkdir $i; ( cd $i; seq 1 1000 | xargs touch ); i=$((i+1)); done"""
        await ok(box, script, scratch)
        with pytest.raises(TransferRefused):
            await box.download(f"{scratch}/d", tmp_path / "out")


def _shape(root: Path) -> dict[str, str]:
    """Relative path to `file`, `dir`, `link` or `other`, without following anything."""
    kinds = {}
    for folder, dirs, files in os.walk(root):
        for path in (Path(folder, name) for name in dirs + files):
            mode = path.lstat().st_mode
            names = ((stat.S_ISLNK, "link"), (stat.S_ISDIR, "dir"), (stat.S_ISREG, "file"))
            kinds[str(path.relative_to(root))] = next((name for test, name in names if test(mode)), "other")
    return kinds


def _texts(root: Path) -> str:
    """Everything readable below a folder, links included: what a user would see there."""
    texts = []
    for path in root.rglob("*"):
        with contextlib.suppress(OSError):
            texts.append(path.read_text(errors="replace") if path.is_file() else "")
    return "".join(texts)


def _size(root: Path) -> int:
    if not root.is_dir():
        return root.stat().st_blocks * 512 if root.exists() else 0
    return sum(path.lstat().st_blocks * 512 for path in root.rglob("*"))


def _assert_untouched(folder: Path, expected: set[str]) -> None:
    found = {path.name for path in folder.iterdir()}
    assert found <= expected, f"something was written outside the target: {found - expected}"
