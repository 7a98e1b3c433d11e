"""`upload` and `download` with honest content."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from benchflow_core.contracts import Sandbox
from benchflow_testing_kit.sandbox.base import SandboxSuite
from benchflow_testing_kit.sandbox.bench import ok, sh
from benchflow_testing_kit.suite import needs, same

__all__ = ["TransferTests"]

ODD_NAMES = (
    "a b",
    "ünïcødé-漢字",
    "-rf",
    "quote'\"",
    "star*",
    "new\nline",
    "$(id)",
    "#hash",
    ".hidden",
    "back\\slash",
    "%41",
)


class TransferTests(SandboxSuite):
    """What goes in comes out, byte for byte, and lands exactly where it was sent."""

    @pytest.mark.parametrize("size", [0, 1, 65_537, 20_000_000])
    async def test_file_round_trip(self, box: Sandbox, scratch: str, tmp_path: Path, size: int) -> None:
        data = random.Random(size).randbytes(size)
        (tmp_path / "in").write_bytes(data)
        await box.upload(tmp_path / "in", f"{scratch}/data")
        assert int(await ok(box, 'wc -c <"$1/data"', scratch)) == size
        await box.download(f"{scratch}/data", tmp_path / "out")
        same((tmp_path / "out").read_bytes(), data)

    async def test_two_thousand_files_round_trip(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        for n in range(2000):
            path = tmp_path / "in" / f"d{n % 20}" / f"f{n}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"file {n}")
        await box.upload(tmp_path / "in", f"{scratch}/tree")
        assert int(await ok(box, 'find "$1/tree" -type f | wc -l', scratch)) == 2000
        await box.download(f"{scratch}/tree", tmp_path / "out")
        same(_content(tmp_path / "out"), _content(tmp_path / "in"))

    async def test_odd_names_round_trip(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        for name in ODD_NAMES:
            (tmp_path / "in" / name).mkdir(parents=True)
            (tmp_path / "in" / name / name).write_text(name)
        await box.upload(tmp_path / "in", f"{scratch}/odd names ü")
        for name in ODD_NAMES:
            assert await ok(box, 'cat "$1"; echo .', f"{scratch}/odd names ü/{name}/{name}") == f"{name}.\n"
        await box.download(f"{scratch}/odd names ü", tmp_path / "out")
        same(_content(tmp_path / "out"), _content(tmp_path / "in"))

    async def test_empty_folders_round_trip(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        (tmp_path / "in" / "a" / "b").mkdir(parents=True)
        await box.upload(tmp_path / "in", f"{scratch}/empty")
        assert (await sh(box, '[ -d "$1/empty/a/b" ]', scratch)).exit_code == 0
        await box.download(f"{scratch}/empty", tmp_path / "out")
        assert (tmp_path / "out" / "a" / "b").is_dir()

    async def test_links_in_an_upload_stay_links(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        source = tmp_path / "in"
        (source / "real").mkdir(parents=True)
        (source / "real" / "file").write_text("x")
        links = {"file-link": "real/file", "dir-link": "real", "dangling": "no/where", "absolute": "/etc/hostname"}
        for name, target in links.items():
            (source / name).symlink_to(target)
        await box.upload(source, f"{scratch}/links")
        for name, target in links.items():
            assert await ok(box, 'readlink "$1"', f"{scratch}/links/{name}") == f"{target}\n"

    async def test_upload_keeps_or_sets_the_mode(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        script = tmp_path / "run"
        script.write_text("#!/bin/sh\necho ran\n")
        script.chmod(0o755)
        await box.upload(script, f"{scratch}/run")
        assert (await box.exec([f"{scratch}/run"])).stdout == b"ran\n"
        await box.upload(script, f"{scratch}/private", mode=0o600)
        assert (await ok(box, 'ls -l "$1/private"', scratch)).startswith("-rw-------")

    async def test_upload_belongs_to_the_default_user(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "f").write_text("x")
        await box.upload(tmp_path / "in", f"{scratch}/own")
        uid = (await ok(box, "id -u")).strip()
        for path in ("own", "own/f"):
            assert (await ok(box, 'ls -ldn "$1"', f"{scratch}/{path}")).split()[2] == uid

    @needs("users")
    async def test_upload_belongs_to_the_user_asked_for(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        other = next(u for u in box.info.users if u != box.info.default_user)
        (tmp_path / "in" / "d").mkdir(parents=True)
        (tmp_path / "in" / "d" / "f").write_text("x")
        await box.upload(tmp_path / "in", f"{scratch}/own", user=other)
        for path in ("own", "own/d", "own/d/f"):
            assert (await ok(box, 'ls -ld "$1"', f"{scratch}/{path}")).split()[2] == other

    async def test_upload_makes_parents_and_replaces(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        for text in ("first, and longer", "second"):
            (tmp_path / "in").write_text(text)
            await box.upload(tmp_path / "in", f"{scratch}/a/b/c")
            assert await ok(box, 'cat "$1/a/b/c"', scratch) == text

    async def test_upload_of_a_folder_is_laid_over(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        for number in ("one", "two"):
            (tmp_path / number).mkdir()
            (tmp_path / number / number).write_text(number)
            (tmp_path / number / "both").write_text(number)
            await box.upload(tmp_path / number, f"{scratch}/over")
        assert await ok(box, 'cd "$1/over" && ls && cat both', scratch) == "both\none\ntwo\ntwo"

    @pytest.mark.parametrize("where", ["target", "inside"])
    async def test_upload_does_not_follow_a_planted_link(
        self, box: Sandbox, scratch: str, tmp_path: Path, where: str
    ) -> None:
        """An agent may leave links where the verifier's files will go."""
        await ok(box, 'mkdir "$1/victim" "$1/tree"; echo precious >"$1/victim/file"', scratch)
        (tmp_path / "in" / "sub").mkdir(parents=True)
        (tmp_path / "in" / "sub" / "file").write_text("new")
        if where == "target":
            await ok(box, 'ln -s "$1/victim" "$1/link"; ln -s "$1/victim/file" "$1/flink"', scratch)
            await box.upload(tmp_path / "in" / "sub", f"{scratch}/link")
            await box.upload(tmp_path / "in" / "sub" / "file", f"{scratch}/flink")
            written = [f"{scratch}/link/file", f"{scratch}/flink"]
        else:
            await ok(box, 'ln -s ../victim "$1/tree/sub"', scratch)
            await box.upload(tmp_path / "in", f"{scratch}/tree")
            written = [f"{scratch}/tree/sub/file"]
        assert await ok(box, 'cat "$1/victim/file"', scratch) == "precious\n"
        for path in written:
            assert await ok(box, 'cat "$1"', path) == "new"

    async def test_download_lands_exactly_at_the_target(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        await ok(box, 'mkdir -p "$1/d/sub"; echo one >"$1/d/f"; echo two >"$1/d/sub/g"', scratch)
        await box.download(f"{scratch}/d/f", tmp_path / "new" / "name")
        (tmp_path / "there").mkdir()
        for name in ("tree", "there"):
            await box.download(f"{scratch}/d", tmp_path / name)
            assert _content(tmp_path / name) == {"f": b"one\n", "sub/g": b"two\n"}
        assert (tmp_path / "new" / "name").read_text() == "one\n"

    async def test_missing_source_is_said(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            await box.download(f"{scratch}/nothing", tmp_path / "out")
        with pytest.raises(FileNotFoundError):
            await box.upload(tmp_path / "nothing", f"{scratch}/in")
        assert not (tmp_path / "out").exists()

    async def test_parallel_transfers(self, box: Sandbox, scratch: str, tmp_path: Path) -> None:
        async def round_trip(n: int) -> None:
            data = random.Random(n).randbytes(300_000)
            (tmp_path / f"in{n}").write_bytes(data)
            await box.upload(tmp_path / f"in{n}", f"{scratch}/p{n}")
            await box.download(f"{scratch}/p{n}", tmp_path / f"out{n}")
            same((tmp_path / f"out{n}").read_bytes(), data)

        await asyncio.gather(*(round_trip(n) for n in range(12)))


def _content(root: Path) -> dict[str, bytes]:
    files = (Path(folder, name) for folder, _, names in os.walk(root) for name in names)
    return {str(path.relative_to(root)): path.read_bytes() for path in files}
