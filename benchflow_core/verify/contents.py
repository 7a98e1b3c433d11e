"""Small files out of a box, as text. What a box says is untrusted: limits apply, and nothing is followed."""

from __future__ import annotations

from typing import Final

from benchflow_core.contracts.common import private_folder
from benchflow_core.contracts.sandboxes import DownloadLimits, Sandbox
from benchflow_core.errors import InfrastructureError, SandboxLost

__all__ = ["read_bytes", "read_text"]

_LIMIT: Final = 1024 * 1024


async def read_bytes(box: Sandbox, path: str, limit: int = _LIMIT) -> bytes | None:
    """A regular file's content; nothing where there is none, or more than the limit."""
    with private_folder() as folder:
        target = folder / "file"
        try:
            await box.download(path, target, limits=DownloadLimits(max_bytes=limit, max_entries=1, max_depth=1))
        except SandboxLost:
            raise
        except (FileNotFoundError, NotADirectoryError, InfrastructureError):
            return None
        return target.read_bytes() if target.is_file() and not target.is_symlink() else None


async def read_text(box: Sandbox, path: str) -> str | None:
    data = await read_bytes(box, path)
    return None if data is None else data.decode("utf-8", "replace")
