"""Snapshots, restoring, changes, and reverting."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from benchflow_core.contracts import Change, Sandbox
from benchflow_core.errors import BenchflowError
from benchflow_testing_kit.host import within
from benchflow_testing_kit.sandbox.base import SandboxSuite
from benchflow_testing_kit.sandbox.bench import HEARTBEAT, Bench, beats, ok, sh
from benchflow_testing_kit.suite import needs

__all__ = ["SnapshotTests"]

FURNISH = """
mkdir -p "$1/dir/empty" && cd "$1" && echo plain >plain && echo 'ü name' >'dir/ü name'
echo run >run && chmod 4751 run && ln -s plain link && ln -s /no/where dangling && ln plain hard
dd if=/dev/urandom of=blob bs=1024 count=300 2>/dev/null"""

FINGERPRINT = """
cd "$1" && find . | LC_ALL=C sort | while IFS= read -r p; do ls -ld "$p" | cut -c1-10; printf '%s ' "$p"
if [ -L "$p" ]; then readlink "$p"; elif [ -f "$p" ]; then cksum <"$p"; fi; done"""

OWN_FILES = "find /etc -xdev -type f -size +0 -size -64 2>/dev/null | LC_ALL=C sort | head -n 400"


class SnapshotTests(SandboxSuite):
    """A snapshot is the file system of one moment, whole and independent."""

    @needs("snapshot")
    async def test_box_from_a_snapshot_has_its_files(self, bench: Bench) -> None:
        box = await bench.start()
        folder = await bench.scratch(box)
        await ok(box, FURNISH, folder)
        expected = await ok(box, FINGERPRINT, folder)
        snapshot = await box.snapshot("kit-one")
        await ok(box, 'cd "$1" && echo later >plain && rm run && echo new >new', folder)
        copy = await bench.start(snapshot.image)
        assert await ok(copy, FINGERPRINT, folder) == expected
        assert copy.info.workdir == box.info.workdir
        assert "later" in await ok(box, 'cat "$1/plain"', folder), "the box itself goes on"

    @needs("snapshot")
    async def test_snapshot_covers_the_whole_file_system(self, bench: Bench) -> None:
        box = await bench.start()
        folders = ("/etc", "/usr/local/bin", "/opt", "/var/lib", "/root", "/home", "/srv", "/tmp", "/")
        written = [f for f in folders if (await sh(box, 'echo kept >"$1/kit-kept"', f)).exit_code == 0]
        copy = await bench.start((await box.snapshot("kit-whole")).image)
        for folder in written:
            assert await ok(copy, 'cat "$1/kit-kept"', folder) == "kept\n", f"{folder} is not in the snapshot"
        assert written, "nothing could be written anywhere"

    @needs("snapshot")
    async def test_boxes_from_one_snapshot_are_independent(self, bench: Bench) -> None:
        box = await bench.start()
        folder = await bench.scratch(box)
        await ok(box, 'echo original >"$1/f"', folder)
        snapshot = await box.snapshot("kit-twins")
        one, two = await asyncio.gather(bench.start(snapshot.image), bench.start(snapshot.image))
        await ok(one, 'echo changed >"$1/f"; echo x >"$1/g"', folder)
        await one.stop()
        await box.stop()
        assert await ok(two, 'cat "$1/f"; ls "$1"', folder) == "original\nf\n"
        assert await ok(await bench.start(snapshot.image), 'cat "$1/f"', folder) == "original\n"

    @needs("snapshot")
    async def test_snapshot_of_a_box_from_a_snapshot(self, bench: Bench) -> None:
        box = await bench.start()
        folder = await bench.scratch(box)
        for n in range(4):
            await ok(box, 'echo "$2" >"$1/$2"; rm -f "$1/$(($2 - 1))"; echo "$2" >>"$1/all"', folder, str(n))
            box = await bench.start((await box.snapshot(f"kit-chain-{n}")).image)
        assert await ok(box, 'cd "$1"; ls; cat all', folder) == "3\nall\n0\n1\n2\n3\n"

    @needs("snapshot")
    async def test_processes_go_on_while_a_snapshot_is_taken(self, bench: Bench) -> None:
        box = await bench.start()
        folder = await bench.scratch(box)
        process = await box.spawn(["sh", "-c", HEARTBEAT, "sh", f"{folder}/beat"])
        await asyncio.sleep(0.3)
        await box.snapshot("kit-live")
        assert await beats(box, [f"{folder}/beat"]) == [f"{folder}/beat"]
        await process.kill()

    @needs("snapshot")
    async def test_kept_snapshot_outlives_its_provider(self, bench: Bench) -> None:
        provider = bench.another_provider()
        box = await provider.start(bench.image, bench.start_request())
        folder = await bench.scratch(box)
        await ok(box, 'echo kept >"$1/f"', folder)
        snapshot = await box.snapshot("kit-kept", keep=True)
        await provider.close()
        assert await ok(await bench.start(snapshot.image), 'cat "$1/f"', folder) == "kept\n"

    @needs("snapshot")
    async def test_forgotten_snapshot_harms_no_box(self, bench: Bench) -> None:
        box = await bench.start()
        folder = await bench.scratch(box)
        await ok(box, 'echo one >"$1/f"', folder)
        forgotten, kept = await box.snapshot("kit-forget"), await box.snapshot("kit-stays")
        copy = await bench.start(forgotten.image)
        await copy.stop()
        await bench.provider.forget(forgotten)
        await bench.provider.forget(forgotten)
        with pytest.raises(BenchflowError):
            await bench.start(forgotten.image)
        assert await ok(box, 'cat "$1/f"', folder) == "one\n"
        assert await ok(await bench.start(kept.image), 'cat "$1/f"', folder) == "one\n"

    @needs("restore")
    async def test_restore_puts_the_box_back(self, bench: Bench) -> None:
        box = await bench.start()
        folder = await bench.scratch(box)
        await ok(box, FURNISH, folder)
        expected = await ok(box, FINGERPRINT, folder)
        snapshot = await box.snapshot("kit-back")
        process = await box.spawn(["sh", "-c", HEARTBEAT, "sh", f"{folder}/beat"])
        await ok(
            box, 'cd "$1" && echo x >>plain && rm -rf dir link && mkdir link && chmod 700 run && echo n >new', folder
        )
        for _ in range(2):
            await box.restore(snapshot)
            assert await ok(box, FINGERPRINT, folder) == expected
            await ok(box, 'rm -rf "$1/dir"', folder)
        async with within(30):
            assert await process.wait() != 0, "every process ends"

    @needs("changes", "snapshot")
    async def test_changes_name_what_differs_from_the_image(self, bench: Bench) -> None:
        box = await bench.start()
        modified, deleted, mode, touched = await _own_files(box)
        folder = await bench.scratch(box)
        script = """
            cd "$5" && mkdir sub && echo 12345 >sub/added && chmod 4755 sub/added && ln -s /etc/passwd link
            echo more >>"$1"; rm "$2"; chmod 751 "$3"; cat "$4" >/dev/null
            echo gone >temporary; rm temporary"""
        await ok(box, script, modified, deleted, mode, touched, folder)
        changes = (await box.snapshot("kit-changes")).changes
        assert changes is not None
        found: Mapping[str, Change] = {change.path: change for change in changes}
        assert [c.path for c in changes] == sorted(found), "sorted by path, each path once"
        added = found[f"{folder}/sub/added"]
        assert (added.kind, added.type, added.mode, added.size) == ("added", "file", 0o4755, 6)
        assert (found[f"{folder}/sub"].kind, found[f"{folder}/sub"].type) == ("added", "dir")
        link = found[f"{folder}/link"]
        assert (link.kind, link.type, link.target) == ("added", "link", "/etc/passwd")
        assert (found[modified].kind, found[modified].type) == ("modified", "file")
        assert (found[deleted].kind, found[deleted].mode) == ("deleted", 0)
        assert (found[mode].kind, found[mode].mode) == ("modified", 0o751)
        assert touched not in found and f"{folder}/temporary" not in found

    @needs("changes", "snapshot")
    async def test_unchanged_box_has_no_changes(self, bench: Bench) -> None:
        box = await bench.start()
        changes = (await box.snapshot("kit-unchanged")).changes
        assert changes is not None
        assert len(changes) < 20, [c.path for c in changes][:50]
        assert not [c for c in changes if c.path.startswith(("/etc/", "/usr/", "/opt/"))]

    @needs("changes", "snapshot")
    async def test_reverted_paths_are_as_in_the_image(self, bench: Bench) -> None:
        box = await bench.start()
        modified, deleted, mode, kept = await _own_files(box)
        folder = await bench.scratch(box)
        paths = (modified, deleted, mode, kept)
        before = [await ok(box, 'ls -l "$1" | cut -c1-10; cksum <"$1"', p) for p in paths]
        await ok(box, 'echo x >>"$1"; rm "$2"; chmod 751 "$3"; echo kept >>"$4"; echo n >"$5/added"', *paths, folder)
        snapshot = await box.snapshot("kit-revert")
        revert = (modified, deleted, mode, f"{folder}/added")
        copy = await bench.start(snapshot.image, revert=revert)
        after = [await ok(copy, 'ls -l "$1" | cut -c1-10; cksum <"$1"', p) for p in paths]
        assert after[:3] == before[:3] and after[3] != before[3]
        assert (await sh(copy, '[ -e "$1/added" ]', folder)).exit_code != 0
        plain = await bench.start(snapshot.image)
        assert await ok(plain, 'cat "$1/added"', folder) == "n\n", "the snapshot itself keeps them"

    @needs("changes", "changes-carried", "snapshot")
    async def test_carried_changes_are_against_the_image_below(self, bench: Bench) -> None:
        """A box goes on from a snapshot of a snapshot: whatever was changed when, the image is what it is against.

        The image is itself a snapshot here, of a box that was set up.
        """
        first_box = await bench.start()
        first, second, third, untouched = paths = await _own_files(first_box)
        folder = await bench.scratch(first_box)
        await ok(first_box, 'echo 0 >>"$1"', first)
        box = await bench.start((await first_box.snapshot("kit-set-up")).image)
        look = '[ ! -L "$1" ] && ls -ld "$1" | cut -c1-10; cksum <"$1"'
        before = [await ok(box, look, p) for p in paths]
        await ok(
            box, 'echo 1 >>"$1"; rm "$2"; cd "$3"; echo 1 >early; mkdir -p deep/er; : >deep/er/file', *paths[:2], folder
        )
        parent = await box.snapshot("kit-parent")
        child = await bench.start(parent.image, carry_changes=True)
        same = {change.path for change in (await child.snapshot("kit-same")).changes or ()}
        assert {change.path for change in parent.changes or ()} <= same, "nothing is forgotten"
        assert not same & {third, untouched}
        await ok(
            child, 'echo 2 >>"$1"; mkdir "$2"; echo 2 >"$2/x"; chmod 751 "$3"; rm -r "$4/deep"', *paths[:3], folder
        )
        middle = await child.snapshot("kit-child")
        grandchild = await bench.start(middle.image, carry_changes=True)
        await ok(grandchild, 'echo 3 >"$1/late"', folder)
        last = await grandchild.snapshot("kit-grandchild")
        found = {c.path: (c.kind, c.type) for c in last.changes or ()}
        assert (found[first], found[second], found[third]) == (
            ("modified", "file"),
            ("modified", "dir"),
            ("modified", "file"),
        )
        assert found[f"{folder}/early"] == found[f"{folder}/late"] == ("added", "file")
        assert untouched not in found and f"{folder}/deep" not in found
        revert = (first, second, third, f"{folder}/early", f"{folder}/late")
        copy = await bench.start(last.image, revert=revert)
        assert [await ok(copy, look, p) for p in paths] == before
        assert await ok(copy, 'ls -A "$1"', folder) == ""
        plain = await bench.start(last.image)
        anew = {change.path for change in (await plain.snapshot("kit-plain")).changes or ()}
        assert not anew & found.keys(), "who does not ask for it starts anew"

    @needs("changes", "snapshot")
    async def test_hostile_changes_are_reported_and_reverted(self, bench: Bench) -> None:
        """A file became a folder, a folder a link: the paths of the image come back, and nothing is written through."""
        box = await bench.start()
        file, other, victim, _ = await _own_files(box)
        folder = await bench.scratch(box)
        before = [await ok(box, 'cksum <"$1"', p) for p in (file, other, victim)]
        await ok(
            box,
            'rm "$1" && mkdir "$1" && echo x >"$1/x"; rm "$2" && ln -s "$3" "$2"; : >"$4/y"',
            file,
            other,
            victim,
            folder,
        )
        snapshot = await box.snapshot("kit-hostile")
        assert {file, other} <= {change.path for change in snapshot.changes or ()}
        copy = await bench.start(snapshot.image, revert=(file, other))
        assert [await ok(copy, '[ ! -L "$1" ] && cksum <"$1"', p) for p in (file, other, victim)] == before


async def _own_files(box: Sandbox) -> tuple[str, str, str, str]:
    """Four small files that came with the image and can be changed."""
    script = f'{OWN_FILES} | while IFS= read -r f; do [ -r "$f" ] && [ -w "$f" ] && echo "$f"; done | head -n 30'
    files = [
        f for f in (await ok(box, script)).splitlines() if not f.endswith(("hosts", "hostname", "resolv.conf", "mtab"))
    ]
    assert len(files) >= 4, "the image has no four writable files below /etc"
    return files[0], files[1], files[2], files[3]
