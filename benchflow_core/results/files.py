"""Atomic files: a killed process leaves either the old file or the new one."""

from __future__ import annotations

import errno
import json
import json.encoder
import os
import re
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from json.encoder import encode_basestring as _text
from pathlib import Path
from typing import Any

from benchflow_core.errors import BenchflowError, ConfigurationError, InfrastructureError

__all__ = [
    "encoder",
    "host_exhausted",
    "out_of_files",
    "read_json",
    "read_jsonl",
    "to_json_text",
    "write_bytes",
    "write_json",
    "write_jsonl",
]


def encoder(*, compact: bool = False, allow_nan: bool = True) -> Callable[[Any], str]:
    """Return what `json.JSONEncoder(ensure_ascii=False, default=str).encode` does, several times as fast.

    That one makes a new encoder in C for every call, which costs more than most of our values do.
    """
    item, key = (",", ":") if compact else (", ", ": ")
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(ensure_ascii=False, allow_nan=allow_nan, default=str, separators=(item, key)).encode
    pieces = make(None, str, _text, None, key, item, False, False, allow_nan)
    return lambda value: "".join(pieces(value, 0))


_encode = encoder(allow_nan=False)
_encode_row = encoder()
_decode = json.JSONDecoder().decode
_DEEP = 2
_STRINGS = frozenset({str})
_PLAIN: dict[type, Callable[[Any], str]] = {
    str: _text,
    type(None): lambda value: "null",
    bool: lambda value: "true" if value else "false",
    int: int.__repr__,
}


def to_json_text(value: Any) -> str:
    """Readable, stable, and valid JSON: a NaN is an error here rather than at every reader.

    Indented by hand and only so deep: the encoder that indents by itself is ten times slower, and this is most of what
    a rollout costs.
    """
    return _indented(value, _DEEP, "") + "\n"


def _indented(value: Any, depth: int, indent: str) -> str:
    kind = type(value)
    if kind in _PLAIN:
        return _PLAIN[kind](value)
    inner = f"{indent}  "
    if kind is dict and depth and value and _STRINGS.issuperset(map(type, value)):
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


_ELSEWHERE = "Choose another folder with --jobs-dir."


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_NO_FILES = (errno.EMFILE, errno.ENFILE)
_FEWER = "Raise the limit of open files (ulimit -n 4096), or run fewer rollouts at a time with --concurrency."


def host_exhausted(error: OSError, what: str) -> InfrastructureError | None:
    """The host ran out of something, and it is nobody's mistake: an error for `what` failed; else `None`."""
    said = f"{what}: {error.strerror or error}."
    if error.errno in _NO_FILES:
        return InfrastructureError(said, remedy=_FEWER)
    if error.errno in _FULL:
        return InfrastructureError(said, remedy="Free some space on this host's disk.", retryable=False)
    return None


def out_of_files(error: BaseException) -> InfrastructureError | None:
    """The same for an error that came of another one: no box and no task can use up this process's files."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:  # an error that is raised twice can be the cause of its own cause
        if isinstance(cause, OSError) and cause.errno in _NO_FILES:
            return host_exhausted(cause, "this host has no file descriptor left")
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return None


def cannot_write(path: Path, error: OSError, *, elsewhere: str = _ELSEWHERE) -> BenchflowError:
    """One clear line for every way a write can fail. A full disk is nobody's mistake; a forbidden folder is."""
    blocked = isinstance(error, FileExistsError | NotADirectoryError)
    message = f"cannot write {path}: {'its folder is a file' if blocked else error.strerror or error}."
    if error.errno in _NO_FILES:
        return InfrastructureError(message, remedy=_FEWER)
    if error.errno in _FULL:
        return InfrastructureError(message, remedy=f"Free some space. {elsewhere}", retryable=False)
    return ConfigurationError(message, remedy=elsewhere)


def write_json(path: Path, value: Any) -> None:
    write_bytes(path, to_json_text(value).encode("utf-8", "replace"))


def write_jsonl(path: Path, rows: Iterable[Any]) -> None:
    write_bytes(path, "".join(f"{_encode_row(row)}\n" for row in rows).encode("utf-8", "replace"))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def read_jsonl(path: Path, only: re.Pattern[bytes] | None = None) -> Iterable[dict[str, Any]]:
    """Rows one by one. A last line cut short by a kill is left out; any other broken line is an error.

    `only`: lines without it are passed over unread.
    """
    if not path.exists():
        return
    with path.open("rb") as stream:
        for line in stream:
            if only is not None and only.search(line) is None:
                continue
            try:
                yield _decode(str(line, "utf-8"))
            except ValueError:
                if line.endswith(b"\n"):
                    raise
                return
