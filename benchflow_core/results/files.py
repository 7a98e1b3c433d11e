"""Atomic files: a killed process leaves either the old file or the new one."""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from json.encoder import encode_basestring as _text
from pathlib import Path
from typing import Any

from benchflow_core.errors import BenchflowError, ConfigurationError, InfrastructureError

__all__ = ["read_json", "read_jsonl", "to_json_text", "write_bytes", "write_json", "write_jsonl"]


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str).encode
_DEEP = 2


def to_json_text(value: Any) -> str:
    """Readable, stable, and valid JSON: a NaN is an error here rather than at every reader.

    Indented by hand and only so deep: the encoder that indents by itself is ten times slower, and this is most of what
    a rollout costs.
    """
    return _indented(value, _DEEP, "") + "\n"


def _indented(value: Any, depth: int, indent: str) -> str:
    kind = type(value)
    if kind is str:
        return _text(value)
    if value is None:
        return "null"
    inner = f"{indent}  "
    if kind is dict and depth and value and all(type(key) is str for key in value):
        rows = [f"{inner}{_text(key)}: {_indented(item, depth - 1, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if kind is list and depth and value and type(value[0]) is dict:
        return "[\n" + ",\n".join(f"{inner}{_encode(item)}" for item in value) + f"\n{indent}]"
    return _encode(value)


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` in one step. The name of a full disk or a forbidden folder reaches the user as one line."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{secrets.token_hex(4)}")  # noqa: PTH118  many per rollout
    try:
        try:
            _write_new(temporary, data)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_new(temporary, data)
        os.replace(temporary, path)  # noqa: PTH105
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise cannot_write(path, error) from error


def _write_new(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


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
