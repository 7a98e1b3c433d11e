"""Files that a killed process leaves either old or new."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from benchflow_core.errors import BenchflowError, ConfigurationError, InfrastructureError

__all__ = ["cannot_write", "replace_file"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_REMEDY = "Choose another folder with --jobs-dir."


def replace_file(path: Path, data: bytes) -> None:
    """Write a file in one step. Raises one clear line where that is not possible."""
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        staged.write_bytes(data)
        staged.replace(path)
    except OSError as error:
        staged.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> BenchflowError:
    """Return the error for a write that failed. A full disk is nobody's mistake; a forbidden folder is."""
    blocked = isinstance(error, FileExistsError | NotADirectoryError)
    message = f"cannot write {path}: {'its folder is a file' if blocked else error.strerror or error}."
    if error.errno in _FULL:
        return InfrastructureError(message, remedy=f"Free some space. {_REMEDY}", retryable=False)
    return ConfigurationError(message, remedy=_REMEDY)
