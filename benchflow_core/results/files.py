"""Atomic files: a killed process leaves either the old file or the new one."""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchflow_core.errors import BenchflowError, ConfigurationError, InfrastructureError

__all__ = ["read_json", "read_jsonl", "to_json_text", "write_bytes", "write_json", "write_jsonl"]


def to_json_text(value: Any) -> str:
    """Readable, stable, and valid JSON: a NaN is an error here rather than at every reader."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=str) + "\n"


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` in one step. The name of a full disk or a forbidden folder reaches the user as one line."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> BenchflowError:
    """One clear line for every way a write can fail. A full disk is nobody's mistake; a forbidden folder is."""
    blocked = isinstance(error, FileExistsError | NotADirectoryError)
    message = f"cannot write {path}: {'its folder is a file' if blocked else error.strerror or error}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        return InfrastructureError(message, remedy="Free some space, or choose another --jobs-dir.", retryable=False)
    return ConfigurationError(message, remedy="Choose another folder with --jobs-dir.")


def write_json(path: Path, value: Any) -> None:
    write_bytes(path, to_json_text(value).encode("utf-8", "replace"))


def write_jsonl(path: Path, rows: Iterable[Any]) -> None:
    lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows)
    write_bytes(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def read_jsonl(path: Path) -> Iterable[dict[str, Any]]:
    """Rows one by one. A last line cut short by a kill is left out; any other broken line is an error."""
    if not path.exists():
        return
    with path.open("rb") as stream:
        for line in stream:
            try:
                yield json.loads(line)
            except ValueError:
                if line.endswith(b"\n"):
                    raise
                return
