"""The end of a verification: every process dies, then the output is brought out and the reward is read, once."""

from __future__ import annotations

import secrets
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchflow_core.contracts.sandboxes import DownloadLimits, Sandbox
from benchflow_core.contracts.tasks import RewardFiles
from benchflow_core.errors import TransferRefused
from benchflow_core.quick import dataclass

__all__ = ["Output", "read_rewards"]

REWARD_BYTES: Final = 1024 * 1024
_LOGS: Final = DownloadLimits(max_bytes=256 * 1024 * 1024, max_entries=20_000, max_depth=32)
_ONE: Final = DownloadLimits(max_bytes=REWARD_BYTES, max_entries=1, max_depth=1)


@dataclass(frozen=True, slots=True)
class Output:
    """The verifier's log folder in its box."""

    box: Sandbox
    folder: str
    service: str = "main"

    async def bring(self, wants: tuple[str, ...], target: Path) -> dict[str, str]:
        """Its contents, laid into `target`. Returns which of the wanted files could not be had, and why."""
        target.mkdir(parents=True, exist_ok=True)
        incoming = target.with_name(f".incoming-{secrets.token_hex(4)}")
        if not any(target.iterdir()):
            target.rename(incoming)  # filled there and renamed back: to make a folder and delete another costs far more
        try:
            return await self._bring(wants, incoming, target)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
            if not target.exists():
                target.mkdir()

    async def _bring(self, wants: tuple[str, ...], incoming: Path, target: Path) -> dict[str, str]:
        refused = ""
        try:
            await self.box.download(self.folder, incoming, limits=_LOGS, service=self.service)
        except FileNotFoundError:
            return {}
        except TransferRefused as error:
            refused = error.message
            shutil.rmtree(incoming, ignore_errors=True)
            if not await self._is_folder():
                return dict.fromkeys(wants, f"{self.folder} is not a folder")
        missing = [name for name in wants if not (incoming / name).exists()]
        found = {name: await self._one(name, incoming, keep=bool(refused)) for name in missing}
        if refused:
            note = target / "verifier-output-left-behind.txt"
            note.write_text(f"{self.folder}: {refused}\n", encoding="utf-8")
        _lay_over(incoming, target)
        return {name: why for name, why in found.items() if why}

    async def _is_folder(self) -> bool:
        """A file below a link would be read through the link."""
        argv = ("/bin/sh", "-c", '[ -d "$1" ] && [ ! -h "$1" ]', "sh", self.folder)
        return (await self.box.exec(argv, user="root", cwd="/", timeout=60, service=self.service)).exit_code == 0

    async def _one(self, name: str, incoming: Path, *, keep: bool) -> str:
        """A single wanted file: brought if the whole folder was too much, else only asked why it did not come along."""
        target = incoming / name if keep else incoming.with_name(f"{incoming.name}-alone")
        try:
            await self.box.download(f"{self.folder}/{name}", target, limits=_ONE, service=self.service)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except TransferRefused as error:
            return error.message
        finally:
            if not keep:
                _remove(target)
        return "" if keep and target.is_file() else "not a regular file"


def read_rewards(folder: Path, wants: Sequence[str], exit_code: int, reasons: Mapping[str, str]) -> RewardFiles:
    """What the task's dialect asked for, out of what was brought."""
    files: dict[str, bytes] = {}
    unreadable = dict(reasons)
    for name in wants:
        path = folder / name
        try:
            found = path.lstat()
        except OSError:
            continue
        if not stat.S_ISREG(found.st_mode):
            unreadable[name] = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        elif found.st_size > REWARD_BYTES:
            unreadable[name] = f"larger than {REWARD_BYTES} bytes"
        else:
            files[name] = path.read_bytes()
    return RewardFiles(files=files, exit_code=exit_code, unreadable=unreadable)


def _lay_over(source: Path, target: Path) -> None:
    """Move what came into a folder that may already hold files of ours; a name of theirs replaces one of ours."""
    if not target.exists() and source.exists():
        source.rename(target)
        return
    target.mkdir(exist_ok=True)
    for path in sorted(source.iterdir()) if source.is_dir() else ():
        place = target / path.name
        _remove(place)
        path.rename(place)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
