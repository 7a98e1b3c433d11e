"""Rule one: programs, libraries and interpreters that came with the image and that the agent changed are put back.

Where the line runs. The task's working directory is the agent's work, and so are homes and data folders. System folders
hold programs, their documentation and data excepted. Folders that package managers fill (`site-packages`,
`node_modules`, a Python's own library) hold libraries, wherever they are.
"""

from __future__ import annotations

import re
from typing import Final

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.author import AuthorText
from benchflow_core.verify.ground import SYSTEM, Ground, ancestors, name_of, parent_of, under

__all__ = ["Package", "package_of", "program", "system_folder"]

_LIBRARY = re.compile(
    r"/(?:site-packages|dist-packages|node_modules)/|/lib(?:64)?/python\d\.\d+(?:/|$)|/(?:gems|bundle)/ruby/"
    r"|/(?:\.?venv|\.?virtualenv)/bin/|/pkg/mod/|/\.cargo/registry/|/\.m2/repository/|/\.gradle/caches/|/\.nuget/|/pyvenv\.cfg$"
)
_PACKAGE = re.compile(r"^(.*/(?:site-packages|dist-packages|node_modules))/((?:@[^/]+/)?[^/]+)")
_CODE: Final = (".py", ".pyc", ".pm", ".pl", ".rb", ".sh", ".jar", ".lua", ".tcl", ".awk", ".class", ".ko", ".a", ".o")
_SHARED_OBJECT = re.compile(r"\.so(?:\.[0-9.]+)?$")
_MERGED: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Links to folders of /usr on most images; a folder in their place is a replacement."""
_DATA = re.compile(
    r"^/usr/(?:local/)?(?:share|etc|games/data|src)/|^/(?:usr/)?lib/(?:systemd|tmpfiles\.d|sysctl\.d|udev|locale)/|^/opt/"
)
"""Below the system folders, but data or configuration unless a file is code by itself."""
_SHARED = re.compile(r"^/usr/(?:local/)?share/(?!doc/|man/|info/|locale/|lintian/)|^/usr/lib/locale/")
_MAINTAINER = re.compile(r"^/var/lib/dpkg/info/[^/]+\.(?:preinst|postinst|prerm|postrm|config)$")

Package = tuple[str, str]
"""A folder that a package manager fills, and the name of one package in it."""


def program(change: Change, ground: Ground) -> str | None:
    """Why this change is undone, or nothing. Only for what the image had."""
    if change.kind == "added" or not _replaced_or_file(change):
        return None
    path = change.path
    if _LIBRARY.search(path):
        return "a library that came with the image"
    if _MAINTAINER.match(path):
        return "a package's own script that came with the image"
    if _tool_in_home(change, ground):
        return "a tool that came with the image"
    if path == "/etc" or (change.type == "link" and change.was == "dir" and parent_of(path) == "/"):
        return "a folder of the system that came with the image"
    if ground.in_work(path):
        return None
    if parent_of(path) in ground.path or path in ground.path:
        return "a command that came with the image"
    if path.startswith("/etc/") and path.endswith((".py", ".pm", ".pl")):
        return "code of an interpreter that came with the image"
    if any(under(path, prefix) for prefix in SYSTEM) and (not _DATA.match(path) or _is_code(change)):
        return "a program or library that came with the image"
    if _SHARED.match(path) and not _spoken_of(path, ground.author):
        return "data of the image's programs, of which nobody speaks"
    return None


def _spoken_of(path: str, author: AuthorText) -> bool:
    """By itself, by a folder above it, or by the program that it belongs to."""
    folders = [folder for folder in ancestors(path) if folder.count("/") > 2]
    owner = path.removeprefix("/usr/local").removeprefix("/usr").split("/")[2]
    return author.says(path, *folders) or author.instruction_names(name_of(path)) or author.instruction_says(owner)


def system_folder(change: Change, ground: Ground) -> bool:
    """A folder of the image's, still one, in which only root has something to write."""
    path = change.path
    if change.kind != "modified" or change.type != "dir" or change.was not in (None, "dir") or change.mode & 0o1000:
        return False
    if ground.in_work(path) or ground.author.instruction_names(path):
        return False
    own = {"/", "/etc", ground.home, *ancestors(ground.tests), *ancestors(ground.logs)}
    if path in own:
        return path != ground.home or ground.user in ("root", "0")
    return path in ground.path or (any(under(path, prefix) for prefix in SYSTEM) and not _DATA.match(f"{path}/"))


def package_of(path: str) -> Package | None:
    """The installed package a path belongs to."""
    found = _PACKAGE.match(path)
    return (found[1], found[2]) if found else None


def _replaced_or_file(change: Change) -> bool:
    """A folder that is still one has only another mode or owner: putting it back would take what is in it along."""
    if change.kind == "deleted" or change.type != "dir":
        return True
    return change.path in _MERGED or change.was not in (None, "dir")


def _tool_in_home(change: Change, ground: Ground) -> bool:
    """Version managers and installers put toolchains into dot-folders of a home."""
    rest = change.path.removeprefix(ground.home + "/")
    if rest == change.path or not rest.startswith(".") or "/" not in rest or rest.startswith((".config/", ".ssh/")):
        return False
    return _is_code(change)


def _is_code(change: Change) -> bool:
    if change.type == "file" and change.mode & 0o111:
        return True
    if change.path.endswith(_CODE) or _SHARED_OBJECT.search(change.path):
        return True
    return name_of(parent_of(change.path)) in ("bin", "sbin", "libexec")
