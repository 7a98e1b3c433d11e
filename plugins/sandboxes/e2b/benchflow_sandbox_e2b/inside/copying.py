"""Runs in boxes, on our own Python and nothing else: what a `COPY --from` takes along, and how it is laid down.

`pack` is run in a box of the stage, `lay` while the image that copies is built. Names, owners and places are those of
BuildKit: links named in the Dockerfile are followed and all others kept, a folder means what is in it, owners stay.
"""

from __future__ import annotations

import base64
import glob
import gzip
import hashlib
import json
import os
import shutil
import sys
import tarfile
from collections.abc import Iterator

_NAMES = "names"
_XATTR = "BENCHFLOW.xattr."


def pack(archive: str, skip: str, *sources: str) -> None:
    """Prints what became of it: the archive's digest and size, or the source that is not there."""
    found: list[str] = []
    for source in sources:
        paths = list(_matching(source))
        if paths == [""]:
            print(json.dumps({"missing": source}))
            return
        found += paths
    with (
        open(archive, "wb") as raw,
        gzip.GzipFile("", "wb", 1, raw, 0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        info = tarfile.TarInfo(_NAMES)
        info.pax_headers = {f"BENCHFLOW.{number}": os.path.basename(path) for number, path in enumerate(found)}
        tar.addfile(info)
        for number, path in enumerate(found):
            real = os.path.realpath(path)
            _add(tar, real, str(number), skip, os.lstat(real).st_dev)
    with open(archive, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    print(json.dumps({"sha256": digest, "size": os.path.getsize(archive)}))


def _matching(source: str) -> Iterator[str]:
    """An empty name for one that is not there. A pattern may match nothing."""
    path = os.path.normpath("/" + source.lstrip("/"))
    if any(mark in path for mark in "*?["):
        yield from sorted(glob.glob(path.replace("[^", "[!"), include_hidden=True))
    else:
        yield path if os.path.exists(path) else ""


def _add(tar: tarfile.TarFile, path: str, name: str, skip: str, device: int) -> None:
    info = tar.gettarinfo(path, name)
    if info is None:  # a socket
        return
    info.pax_headers = {
        _XATTR + name: base64.b64encode(os.getxattr(path, name, follow_symlinks=False)).decode()
        for name in os.listxattr(path, follow_symlinks=False)
        if name == "security.capability" or name.startswith("user.")
    }
    if info.isreg():
        with open(path, "rb") as file:
            tar.addfile(info, file)
    else:
        tar.addfile(info)
    if info.isdir() and os.lstat(path).st_dev == device:  # not what is only mounted there
        for entry in sorted(os.listdir(path)):
            if (child := os.path.join(path, entry)) != skip:
                _add(tar, child, f"{name}/{entry}", skip, device)


def lay(archive: str, target: str, owner: str, mode: str) -> None:
    laying = _Laying(target, _ids(owner) if owner else None, int(mode, 8) if mode else None)
    with tarfile.open(archive, "r|gz") as tar:
        for info in tar:
            if info.name == _NAMES:
                laying.names = {key.partition(".")[2]: name for key, name in info.pax_headers.items()}
            else:
                laying.put(tar, info)
    laying.end()


class _Laying:
    def __init__(self, target: str, ids: tuple[int, int] | None, mode: int | None) -> None:
        self._target, self._ids, self._mode = os.path.abspath(target), ids, mode
        self._into = target.endswith("/")
        self.names: dict[str, str] = {}
        self._times: list[tuple[str, float]] = []

    def put(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> None:
        place, top = self._place(info.name, info.isdir()), "/" not in info.name
        if top:
            self._parents(os.path.dirname(place))
        if info.isdir():
            known = os.path.isdir(place) and (top or not os.path.islink(place))
            if not known:
                os.mkdir(place)
            elif top:
                return
            self._times.append((place, info.mtime))
        else:
            self._replace(tar, info, place)
        self._describe(info, place)

    def _place(self, name: str, folder: bool = False) -> str:
        number, _, below = name.partition("/")
        if below:
            return os.path.join(self._target, below)
        into = not folder and (self._into or os.path.isdir(self._target))
        return os.path.join(self._target, self.names[number]) if into else self._target

    def _replace(self, tar: tarfile.TarFile, info: tarfile.TarInfo, place: str) -> None:
        if os.path.lexists(place):
            os.unlink(place)
        if info.issym():
            os.symlink(info.linkname, place)
        elif info.islnk():
            os.link(self._place(info.linkname), place, follow_symlinks=False)
        elif info.isreg():
            source = tar.extractfile(info)
            assert source is not None
            with open(place, "xb") as file:
                shutil.copyfileobj(source, file, 1 << 20)
        else:
            kind = {tarfile.FIFOTYPE: 0o010000, tarfile.CHRTYPE: 0o020000, tarfile.BLKTYPE: 0o060000}[info.type]
            os.mknod(place, kind | 0o600, os.makedev(info.devmajor, info.devminor))

    def _describe(self, info: tarfile.TarInfo, place: str) -> None:
        uid, gid = self._ids or (info.uid, info.gid)
        os.chown(place, uid, gid, follow_symlinks=False)
        if not info.issym():
            os.chmod(place, info.mode if self._mode is None else self._mode)
        for key, value in info.pax_headers.items():
            if key.startswith(_XATTR):
                os.setxattr(place, key.removeprefix(_XATTR), base64.b64decode(value), follow_symlinks=False)
        os.utime(place, (info.mtime, info.mtime), follow_symlinks=False)

    def _parents(self, folder: str) -> None:
        if os.path.isdir(folder):
            return
        self._parents(os.path.dirname(folder))
        os.mkdir(folder, 0o755)
        os.chown(folder, *(self._ids or (0, 0)))

    def end(self) -> None:
        """Times of folders, which their content has changed."""
        for place, time in reversed(self._times):
            os.utime(place, (time, time))


def _ids(owner: str) -> tuple[int, int]:
    """Of the image that is built. A number alone is the group's as well."""
    user, _, group = owner.partition(":")
    if user.isdigit():
        ids = int(user), int(user)
    else:
        row = _row("/etc/passwd", user)
        ids = int(row[2]), int(row[3])
    if group:
        return ids[0], int(group) if group.isdigit() else int(_row("/etc/group", group)[2])
    return ids


def _row(file: str, name: str) -> list[str]:
    with open(file, errors="replace") as lines:
        for line in lines:
            if (fields := line.rstrip("\n").split(":"))[0] == name:
                return fields
    raise LookupError(f"there is no {name} in {file}")


if __name__ == "__main__":
    if sys.argv[1] == "pack":
        pack(*sys.argv[2:])
    else:
        try:
            lay(*sys.argv[3:])
        except (OSError, LookupError) as error:
            sys.exit(f"{sys.argv[2]}: {error.args[0] if isinstance(error, LookupError) else error}")
