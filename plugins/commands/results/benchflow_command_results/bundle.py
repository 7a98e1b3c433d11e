"""A job as one zip file for a colleague: redacted, every file hashed, the same bytes for the same job."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, Final

from benchflow_core.errors import ConfigurationError

__all__ = ["read_bundle", "write_bundle"]

_VERSION: Final = "1.0"
_MANIFEST: Final = "bundle.json"
_LEFT_OUT: Final = ("state.json", "job.lock", "workers.lock", "live.json")
"""They mean something on this machine only, or while a job runs."""
_MOST_BYTES: Final = 64 * 1024**3
_MOST_FILES: Final = 5_000_000
_LONGEST_MANIFEST: Final = 512 * 1024**2
_LONGEST_NAME: Final = 1024
_PLAIN: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


# --- writing ------------------------------------------------------------------------------------------------


def write_bundle(job: Path, target: Path, clean: Callable[[bytes], bytes]) -> dict[str, Any]:
    """Pack a job's files, each as `clean` gives it. The manifest says in which files something was taken out."""
    files, redacted = [], []
    for path, name in _files(job):
        data = path.read_bytes()
        after = clean(data)
        if after != data:
            redacted.append(name)
        files.append({"path": name, "size": len(after), "sha256": hashlib.sha256(after).hexdigest()})
    if not files:
        raise ConfigurationError(f"{job} holds no file.")
    manifest = {
        "schema_version": _VERSION,
        "job_name": job.resolve().name,
        "core_version": version("benchflow-core"),
        "files": files,
        "redacted": redacted,
    }
    making = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _pack(making, job, manifest, clean)
        making.replace(target)
    except OSError as error:
        raise ConfigurationError(f"cannot write {target}: {error.strerror or error}.") from error
    finally:
        making.unlink(missing_ok=True)
    return {**manifest, "digest": _digest(manifest)}


def _files(job: Path) -> Iterator[tuple[Path, str]]:
    """Regular files, sorted; no link is followed, nothing hidden or left over is taken."""
    for folder, folders, names in os.walk(job):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if name.startswith(".") or name in _LEFT_OUT or not stat.S_ISREG(path.lstat().st_mode):
                continue
            yield path, path.relative_to(job).as_posix()


def _pack(target: Path, job: Path, manifest: dict[str, Any], clean: Callable[[bytes], bytes]) -> None:
    with zipfile.ZipFile(target, "w") as archive:
        _add(archive, _MANIFEST, json.dumps(manifest, indent=1, sort_keys=True).encode())
        for entry in manifest["files"]:
            data = clean((job / entry["path"]).read_bytes())
            if hashlib.sha256(data).hexdigest() != entry["sha256"]:
                raise ConfigurationError(
                    f"{entry['path']} changed while it was packed.", remedy="Wait until the job has ended."
                )
            _add(archive, f"files/{entry['path']}", data)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Without a date, an owner or anything else that is not the job's."""
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.create_system, member.external_attr = 3, 0o644 << 16
    archive.writestr(member, data, zipfile.ZIP_DEFLATED, 6)


def _digest(manifest: dict[str, Any]) -> str:
    """Of the contents: the same for the same job, however it was compressed."""
    rows = "".join(f"{entry['sha256']}  {entry['path']}\n" for entry in manifest["files"])
    return f"sha256:{hashlib.sha256(rows.encode()).hexdigest()}"


# --- reading ------------------------------------------------------------------------------------------------


def read_bundle(file: Path, jobs_dir: Path, name: str | None = None) -> tuple[Path, dict[str, Any]]:
    """Unpack below `jobs_dir`, into a folder that does not exist yet. Every hash is checked before it appears there.

    The archive is untrusted: only files that its manifest lists, at plain relative paths, each of the stated size.
    """
    try:
        jobs_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".import-", dir=jobs_dir) as staged, zipfile.ZipFile(file) as archive:
            manifest = _unpack(archive, Path(staged, "job"))
            target = jobs_dir / _plain_name(name or str(manifest["job_name"]))
            if target.exists():
                raise ConfigurationError(f"{target} already exists.", remedy="Give another --job-name.")
            shutil.move(Path(staged, "job"), target)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is not a bundle, or damaged: {error}.") from error
    except OSError as error:
        where = file if error.filename in (str(file), file) else jobs_dir
        raise ConfigurationError(f"{where}: {error.strerror or error}.") from error
    return target, {**manifest, "digest": _digest(manifest)}


def _unpack(archive: zipfile.ZipFile, root: Path) -> dict[str, Any]:
    members = {member.filename: member for member in archive.infolist()}
    if len(members) < len(archive.infolist()):
        raise _broken("it holds a file twice")
    manifest = _manifest(archive, members.pop(_MANIFEST, None))
    root.mkdir()
    for entry in manifest["files"]:
        member = members.pop(f"files/{entry['path']}", None)
        if member is None:
            raise _broken(f"'{entry['path']}' is missing")
        if member.file_size != entry["size"] or member.compress_type not in _PLAIN:
            raise _broken(f"'{entry['path']}' is not packed as its manifest says")
        _write(archive, member, root / entry["path"], entry)
    if members:
        raise _broken(f"it holds '{next(iter(members))[:80]}', which its manifest does not list")
    return manifest


def _manifest(archive: zipfile.ZipFile, member: zipfile.ZipInfo | None) -> dict[str, Any]:
    if member is None or member.file_size > _LONGEST_MANIFEST or member.compress_type not in _PLAIN:
        raise _broken(f"it has no {_MANIFEST}")
    try:
        value = json.loads(archive.read(member))
        files = value["files"]
        sizes = [int(entry["size"]) for entry in files]
        for entry in files:
            if PurePosixPath(_plain_path(entry["path"])).name in _LEFT_OUT:
                raise _broken(f"it holds '{entry['path'][:80]}', which means nothing on another machine")
        version, job = value["schema_version"], value["job_name"]
    except (ValueError, KeyError, TypeError) as error:
        raise _broken(f"its {_MANIFEST} cannot be read: {error}") from error
    if version != _VERSION or not isinstance(job, str):
        raise _broken(f"its schema version is {version}, this program reads {_VERSION}")
    if sum(sizes) > _MOST_BYTES or len(files) > _MOST_FILES or min(sizes, default=0) < 0:
        raise _broken("it claims to be too large")
    return dict(value)


def _plain_path(path: Any) -> str:
    """Relative, without `..`, empty parts, or anything a file system could take for something else."""
    parts = PurePosixPath(path).parts if isinstance(path, str) else ()
    odd = any(part in ("..", ".", "/") or "\\" in part or not part.isprintable() for part in parts)
    if not parts or odd or len(path) > _LONGEST_NAME or "/".join(parts) != path:
        raise _broken(f"'{str(path)[:80]}' is no plain path")
    return str(path)


def _plain_name(name: str) -> str:
    if len(PurePosixPath(name).parts) != 1 or name.startswith(".") or _plain_path(name) != name:
        raise ConfigurationError(f"'{name}' is no name for a job.", remedy="Give another --job-name.")
    return name


def _write(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, entry: dict[str, Any]) -> None:
    total = hashlib.sha256()
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as stream, path.open("xb") as out:
        while chunk := stream.read(1 << 20):
            total.update(chunk)
            out.write(chunk)
    if total.hexdigest() != entry["sha256"]:
        raise _broken(f"'{entry['path']}' does not have the hash its manifest says")


def _broken(why: str) -> ConfigurationError:
    return ConfigurationError(f"the bundle cannot be trusted: {why}.", remedy="Ask for it again.")
