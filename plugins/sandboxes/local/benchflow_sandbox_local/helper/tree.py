"""Whole directory trees on our own disk: copy, clone by hard links, delete. Links are never followed.

The trees were written by boxes, so their names, modes and nesting are whatever somebody liked.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FICLONE = 0x40049409
_DEEP = 200


def is_whiteout(info: os.stat_result) -> bool:
    """How an overlay says: what the layers below have here is deleted."""
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0


def is_opaque(path: str) -> bool:
    """How an overlay says: look no further down for this directory."""
    try:
        return os.getxattr(path, "user.overlay.opaque", follow_symlinks=False) == b"y"
    except OSError:
        return False


def copy(source: str, target: str) -> int:
    """An independent copy of the directory `source` at `target`, which must not exist. Returns its size in bytes."""
    return _copy(source, target, share=False)


def clone(source: str, target: str) -> None:
    """A tree of new directories that shares the files themselves: for layers, which nobody writes to.

    Files with several names are copied: who counts a file's names must not find those of the other tree.
    """
    _copy(source, target, share=True)


def _copy(source: str, target: str, *, share: bool) -> int:
    seen: dict[tuple[int, int], str] = {}
    total = 0

    def file(name: str, info: os.stat_result, source_fd: int, target_fd: int) -> None:
        nonlocal total
        if share and info.st_nlink == 1:
            os.link(name, name, src_dir_fd=source_fd, dst_dir_fd=target_fd, follow_symlinks=False)
            return
        first = seen.get((info.st_dev, info.st_ino))
        if first is not None:
            os.link(first, name, dst_dir_fd=target_fd, follow_symlinks=False)
            return
        total += info.st_size if stat.S_ISREG(info.st_mode) else 0
        copy_entry(name, info, source_fd, target_fd)
        if info.st_nlink > 1:
            seen[(info.st_dev, info.st_ino)] = f"{os.readlink(f'/proc/self/fd/{target_fd}')}/{name}"

    _walk(source, target, file)
    return total


def add_folders(source: str, target: str) -> None:
    """Make the directories of `source` in `target` where they are missing."""
    for folder, names, _ in os.walk(source):
        for name in names:
            path = os.path.join(target, os.path.relpath(os.path.join(folder, name), source))
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, 0o755)


def copy_one(source: str, target: str) -> None:
    """One entry that is not a directory."""
    parents = [os.open(os.path.dirname(path), _FOLDER) for path in (source, target)]
    try:
        name = os.path.basename(source)
        copy_entry(name, os.lstat(source), parents[0], parents[1])
    finally:
        for fd in parents:
            os.close(fd)


def _walk(source: str, target: str, file: Callable[[str, os.stat_result, int, int], None]) -> None:
    """Depth first, two descriptors a level, no recursion."""
    os.mkdir(target, 0o700)
    stack: list[tuple[int, int, list[str]]] = []

    def enter(source_fd: int, target_fd: int) -> None:
        stack.append((source_fd, target_fd, sorted(os.listdir(source_fd), reverse=True)))

    try:
        enter(os.open(source, _FOLDER), os.open(target, _FOLDER))
        while stack:
            source_fd, target_fd, names = stack[-1]
            if not names:
                copy_metadata(source_fd, target_fd)
                os.close(source_fd)
                os.close(target_fd)
                stack.pop()
                continue
            name = names.pop()
            info = os.stat(name, dir_fd=source_fd, follow_symlinks=False)
            if not stat.S_ISDIR(info.st_mode):
                file(name, info, source_fd, target_fd)
                continue
            os.mkdir(name, 0o700, dir_fd=target_fd)
            enter(os.open(name, _FOLDER, dir_fd=source_fd), os.open(name, _FOLDER, dir_fd=target_fd))
    finally:
        for source_fd, target_fd, _ in stack:
            os.close(source_fd)
            os.close(target_fd)


def copy_entry(name: str, info: os.stat_result, source_fd: int, target_fd: int, new_name: str = "") -> None:
    """One entry that is not a directory, into another, or into the same under another name."""
    new = new_name or name
    if stat.S_ISREG(info.st_mode):
        read = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source_fd)
        try:
            write = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=target_fd)
            try:
                copy_data(read, write)
                copy_metadata(read, write)
            finally:
                os.close(write)
        finally:
            os.close(read)
        return
    if stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(name, dir_fd=source_fd), new, dir_fd=target_fd)
    else:
        os.mknod(new, info.st_mode, info.st_rdev, dir_fd=target_fd)
        if not is_whiteout(info):
            os.chmod(new, stat.S_IMODE(info.st_mode), dir_fd=target_fd)
    if not is_whiteout(info):
        os.chown(new, info.st_uid, info.st_gid, dir_fd=target_fd, follow_symlinks=False)
        os.utime(new, ns=(info.st_atime_ns, info.st_mtime_ns), dir_fd=target_fd, follow_symlinks=False)


def copy_data(source: int, target: int) -> None:
    """Shared blocks where the file system can, else only the parts that hold data: holes stay holes."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
        return
    except OSError:
        pass
    size = os.fstat(source).st_size
    os.ftruncate(target, size)
    offset = 0
    while offset < size:
        try:
            offset = os.lseek(source, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        end = os.lseek(source, offset, os.SEEK_HOLE)
        while offset < end:
            try:
                done = os.copy_file_range(source, target, end - offset, offset, offset)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS):
                    raise
                done = os.pwrite(target, os.pread(source, min(end - offset, 1 << 20), offset), offset)
            if not done:
                return
            offset += done


def copy_metadata(source: int, target: int) -> None:
    info = os.fstat(source)
    os.fchown(target, info.st_uid, info.st_gid)
    os.fchmod(target, stat.S_IMODE(info.st_mode))
    for name in os.listxattr(source):
        with contextlib.suppress(OSError):
            os.setxattr(target, name, os.getxattr(source, name))
    os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))


def remove(path: str, parent: int | None = None) -> None:
    """Delete a tree or a file. A directory that lies too deep is first moved to the top. Others may help."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(path, dir_fd=parent, follow_symlinks=False).st_mode):
            _remove_tree(path, parent)
        else:
            os.unlink(path, dir_fd=parent)


def _remove_tree(path: str, parent: int | None) -> None:
    top = _open_for_removal(path, parent)
    stack = [(top, "", _remove_files(top))]
    lifted = 0
    try:
        while stack:
            fd, name, folders = stack[-1]
            if folders and len(stack) > _DEEP:
                lifted += 1
                os.rename(folders.pop(), f".deep-{lifted}", src_dir_fd=fd, dst_dir_fd=top)
                stack[0][2].append(f".deep-{lifted}")
            elif folders:
                child_name = folders.pop()
                if _removed_empty(child_name, fd):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    child = _open_for_removal(child_name, fd)
                    stack.append((child, child_name, _remove_files(child)))
            else:
                os.close(fd)
                stack.pop()
                if stack:
                    with contextlib.suppress(FileNotFoundError):
                        os.rmdir(name, dir_fd=stack[-1][0])
    finally:
        for fd, _, _ in stack:
            os.close(fd)
    os.rmdir(path, dir_fd=parent)


def _removed_empty(name: str, parent: int) -> bool:
    """Most folders of a box are empty: no look inside."""
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError:
        return False
    return True


def _open_for_removal(name: str, parent: int | None) -> int:
    try:
        fd = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=parent)  # an overlay's work directory, or what a box made unreadable
        fd = os.open(name, _FOLDER, dir_fd=parent)
    if os.fstat(fd).st_mode & 0o700 != 0o700:
        os.fchmod(fd, 0o700)
    return fd


def _remove_files(fd: int) -> list[str]:
    """Unlink everything but the directories, and return those."""
    folders = []
    with os.scandir(fd) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    for name, is_folder in entries:
        if is_folder:
            folders.append(name)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=fd)
    return folders
