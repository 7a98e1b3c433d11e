"""Broken uploads and downloads. Paths in a `folder` box are paths of this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from kit_defects.wrap import Box, defect


class ChangesUploads(Box):
    """Uploads a changed copy."""

    symlinks = True

    def change(self, copy: Path) -> None: ...

    async def upload(self, source, target, **options):
        if not Path(source).exists():
            return await super().upload(source, target, **options)
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "copy")
            if source.is_dir():
                shutil.copytree(source, copy, symlinks=self.symlinks, ignore_dangling_symlinks=True)
            else:
                shutil.copy(source, copy)
            self.change(copy)
            await super().upload(copy, target, **options)


@defect("test_file_round_trip")
class CapsFiles(ChangesUploads):
    def change(self, copy):
        if copy.is_file() and copy.stat().st_size > 60_000:
            os.truncate(copy, 60_000)


@defect("test_two_thousand_files_round_trip")
class CountsToAThousand(ChangesUploads):
    def change(self, copy):
        for path in sorted(p for p in copy.rglob("*") if p.is_file())[1000:]:
            path.unlink()


@defect("test_odd_names_round_trip")
class KnowsOnlyAscii(ChangesUploads):
    def change(self, copy):
        for path in sorted(copy.rglob("*"), reverse=True):
            path.rename(path.with_name(path.name.encode("ascii", "replace").decode()))


@defect("test_empty_folders_round_trip")
class ForgetsEmptyFolders(ChangesUploads):
    def change(self, copy):
        for path in sorted(copy.rglob("*"), reverse=True):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()


@defect("test_links_in_an_upload_stay_links")
class FollowsLinksInUploads(ChangesUploads):
    symlinks = False


@defect("test_upload_keeps_or_sets_the_mode")
class ForgetsModes(ChangesUploads):
    def change(self, copy):
        if copy.is_file():
            copy.chmod(0o644)


@defect("test_upload_makes_parents_and_replaces")
class RefusesToReplace(Box):
    async def upload(self, source, target, **options):
        if Path(target).is_file():
            raise FileExistsError(target)
        await super().upload(source, target, **options)


@defect("test_upload_of_a_folder_is_laid_over")
class ClearsTheTarget(Box):
    async def upload(self, source, target, **options):
        shutil.rmtree(target, ignore_errors=True)
        await super().upload(source, target, **options)


@defect("test_upload_does_not_follow_a_planted_link")
class FollowsPlantedLinks(Box):
    async def upload(self, source, target, **options):
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target)


@defect("test_download_lands_exactly_at_the_target")
class DownloadsLikeCp(Box):
    async def download(self, source, target, **options):
        target = target / Path(source).name if Path(source).is_dir() else target
        await super().download(source, target, **options)


@defect("test_missing_source_is_said")
class SaysNothing(Box):
    async def download(self, source, target, **options):
        if Path(source).exists():
            await super().download(source, target, **options)


@defect("test_parallel_transfers")
class SharesATemporaryFile(Box):
    async def upload(self, source, target, **options):
        with tempfile.TemporaryDirectory() as folder:
            if source.is_dir():
                return await super().upload(source, target, **options)
            self.shared = Path(folder, "shared")
            shutil.copy(source, self.shared)
            await asyncio.sleep(0.05)
            await super().upload(self.shared, target, **options)


class CopiesBlindly(Box):
    """What a naive download does; files too large for this test are left out."""

    symlinks = True

    def special(self, path: Path) -> bool:
        return path.exists() and path.stat().st_size > 1 << 30

    async def download(self, source, target, **options):
        def ignore(folder, names):
            return [n for n in names if self.special(Path(folder, n))]

        target.parent.mkdir(parents=True, exist_ok=True)
        if not Path(source).exists():
            raise FileNotFoundError(source)
        if Path(source).is_dir():
            await asyncio.to_thread(
                shutil.copytree, source, target, symlinks=self.symlinks, ignore=ignore, ignore_dangling_symlinks=True
            )
        elif not self.special(Path(source)):
            await asyncio.to_thread(shutil.copy, source, target)


@defect(
    "test_links_are_left_out test_special_files_are_left_out test_powers_do_not_arrive "
    "test_unreadable_modes_do_not_block_the_host test_bytes_are_limited test_a_sparse_giant_is_refused_at_once "
    "test_entries_are_limited test_depth_is_limited test_a_link_as_the_source_brings_nothing_of_the_host"
)
class KeepsLinksInDownloads(CopiesBlindly): ...


@defect("test_a_file_replaced_while_it_is_read")
class FollowsLinksInDownloads(CopiesBlindly):
    symlinks = False

    async def download(self, source, target, **options):
        try:
            await super().download(source, target, **options)
        except OSError as error:
            raise FileNotFoundError(source) from error


@defect("test_hard_links_arrive_as_files_of_their_own")
class ForgetsHardLinks(Box):
    async def download(self, source, target, **options):
        await super().download(source, target, **options)
        seen = set()
        for path in sorted(Path(source).iterdir()) if Path(source).is_dir() else ():
            if path.stat().st_ino in seen:
                (target / path.name).unlink()
            seen.add(path.stat().st_ino)


@defect("test_two_hundred_thousand_entries_are_refused")
class DownloadsNothing(Box):
    async def download(self, source, target, **options): ...
