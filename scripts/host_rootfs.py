"""A Debian root file system from packages this host has installed, as a tar stream: no registry, no download.

Takes the Essential packages, apt, the named ones and what they depend on; copies exactly the files dpkg lists for them,
and writes a matching dpkg database, so that `apt-get install` works in the result.
"""

# Paths of another root are text here: compared and joined, not opened.
# ruff: noqa: PTH114, PTH115, PTH118

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

INFO = "/var/lib/dpkg/info"
DPKG = "/var/lib/dpkg"
LINKED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ALWAYS = ("apt", "base-files", "base-passwd", "netbase")
NOT_NEEDED = re.compile(r"^/usr/share/(doc|man|locale|info|lintian|bug|doc-base)/.")
MADE_AT_CONFIGURE = (
    "/etc/nsswitch.conf",
    "/etc/ld.so.cache",
    "/etc/debian_version",
    "/etc/ssl",
    "/etc/ssl/certs",
    "/etc/ca-certificates.conf",
    "/etc/alternatives",
    "/etc/shells",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/environment",
    f"{DPKG}/triggers",
    f"{DPKG}/alternatives",
    f"{DPKG}/info/format",
)
WRITTEN = {"/etc/passwd", "/etc/group", "/etc/shadow", f"{DPKG}/status", f"{DPKG}/diversions", f"{DPKG}/statoverride"}
"""Not the host's: a copied statoverride, for one, makes dpkg abort over groups that the image lacks."""


def chosen(wanted: Iterable[str]) -> set[str]:
    """The named packages, the Essential ones and their dependencies, as far as the host has them."""
    form = "${Package}\\t${Essential}\\t${db:Status-Abbrev}\\t${Pre-Depends},${Depends}\\t${Provides}\\n"
    rows = subprocess.run(["dpkg-query", "-W", "-f", form], capture_output=True, text=True, check=True).stdout
    depends: dict[str, str] = {}
    provider: dict[str, str] = {}
    todo = [*ALWAYS, *wanted]
    for name, essential, status, needs, provides in (row.split("\t") for row in rows.splitlines()):
        if status.startswith("ii"):
            depends[name] = needs
            provider.update({p.split()[0]: name for p in provides.split(",") if p.strip()})
            todo += [name] if essential == "yes" else []
    found: set[str] = set()
    while todo:
        name = todo.pop()
        name = name if name in depends else provider.get(name, "")
        if name and name not in found:
            found.add(name)
            groups = (
                [a.strip().split()[0].split(":")[0] for a in g.split("|") if a.strip()]
                for g in depends[name].split(",")
            )
            todo += [next((a for a in group if a in depends or a in provider), "") for group in groups]
    return found


def unlinked(path: str) -> str:
    """/bin/x is /usr/bin/x where /bin is a link."""
    folder, name = os.path.split(path)
    return path if path in LINKED else os.path.join(os.path.realpath(folder), name)


def listed(packages: set[str]) -> tuple[set[str], set[str]]:
    """(files of the packages, their entries in the dpkg database)."""
    files: set[str] = set()
    database: set[str] = set()
    for entry in os.scandir(INFO):
        if entry.name.rsplit(".", 1)[0].split(":")[0] in packages:
            database.add(entry.path)
            if entry.name.endswith(".list"):
                lines = Path(entry.path).read_text(errors="surrogateescape").splitlines()
                files.update(unlinked(line) for line in lines if line != "/." and not NOT_NEEDED.match(line))
    return files, database


def generated() -> set[str]:
    """What maintainer scripts made, owned by no package."""
    files = {unlinked(path) for path in MADE_AT_CONFIGURE} | {link for link in LINKED if os.path.islink(link)}
    for top in ("/etc/alternatives", "/etc/ssl/certs", "/usr/local/share/ca-certificates", "/var/lib/pam"):
        files.update(os.path.join(root, name) for root, folders, names in os.walk(top) for name in folders + names)
    files.update(str(path) for path in Path("/etc/pam.d").glob("common-*"))
    for folder in ("/usr/bin", "/usr/sbin"):
        links = (e.path for e in os.scandir(folder) if e.is_symlink())
        files.update(link for link in links if os.readlink(link).startswith("/etc/alternatives/"))
    return files


def without_dangling(files: set[str]) -> set[str]:
    """Links of the alternatives system lead to programs that were not chosen."""

    def leads(path: str) -> str:
        return unlinked(os.readlink(path)) if os.path.islink(path) else path

    there = {f for f in files if os.path.lexists(f)}
    kept = {f for f in there if not f.startswith("/etc/alternatives/") or leads(f) in there}
    return {f for f in kept if not leads(f).startswith("/etc/alternatives/") or leads(f) in kept}


def parents(files: set[str]) -> set[str]:
    above = {str(folder) for f in files for folder in Path(f).parents} - {"/"}
    return {folder for folder in above if not os.path.islink(folder)}


class Tree:
    """A tar that takes each path once: `docker import` refuses a path that comes twice."""

    def __init__(self, out: IO[bytes]) -> None:
        self.tar = tarfile.open(fileobj=out, mode="w|", format=tarfile.GNU_FORMAT)  # noqa: SIM115
        self.seen: set[str] = set()

    def new(self, path: str) -> bool:
        name = path.strip("/")
        fresh = name not in self.seen
        self.seen.add(name)
        return fresh

    def copy(self, path: str, at: str | None = None) -> None:
        if self.new(at or path):
            # What only root may read is no part of an image; what is gone since it was listed, neither.
            with contextlib.suppress(PermissionError, FileNotFoundError):
                self.tar.add(path, arcname=(at or path).strip("/"), recursive=False)

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        if self.new(path):
            entry = tarfile.TarInfo(path.strip("/"))
            entry.size, entry.mode = len(content), mode
            self.tar.addfile(entry, io.BytesIO(content))

    def folder(self, path: str, mode: int = 0o755) -> None:
        if self.new(path):
            entry = tarfile.TarInfo(path.strip("/"))
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            self.tar.addfile(entry)

    def link(self, path: str, to: str) -> None:
        if self.new(path):
            entry = tarfile.TarInfo(path.strip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, to
            self.tar.addfile(entry)


def dpkg_database(tree: Tree, packages: set[str], files: set[str]) -> None:
    """As if just these packages had been installed."""
    stanzas = Path(DPKG, "status").read_text(errors="surrogateescape").split("\n\n")
    ours = [s for s in stanzas if (m := re.match(r"Package: (\S+)", s)) and m[1] in packages]
    tree.write(f"{DPKG}/status", ("\n\n".join(ours) + "\n\n").encode("utf-8", "surrogateescape"))
    for path in Path(DPKG, "triggers").iterdir():
        if path.name in ("Lock", "Unincorp"):
            tree.write(str(path), b"")
            continue
        lines = path.read_text().splitlines(keepends=True)
        if kept := [line for line in lines if line.split()[-1].split("/")[0].split(":")[0] in packages]:
            tree.write(str(path), "".join(kept).encode())
    for path in Path(DPKG, "alternatives").iterdir():
        if f"/etc/alternatives/{path.name}" in files:
            tree.write(str(path), path.read_bytes())
    lines = Path(DPKG, "diversions").read_text().splitlines()
    triples = [lines[i : i + 3] for i in range(0, len(lines) - 2, 3)]
    tree.write(f"{DPKG}/diversions", "".join(f"{x}\n" for t in triples if t[2] in {*packages, ":"} for x in t).encode())


def write_rootfs(out: IO[bytes], packages: Iterable[str], more: Callable[[Tree], None] = lambda tree: None) -> None:
    """`more` adds what no package has."""
    names = chosen(packages)
    files, database = listed(names)
    files = without_dangling(files | generated())
    tree = Tree(out)
    for path in sorted(files | parents(files) | database):
        if path not in WRITTEN and not path.startswith((f"{DPKG}/triggers/", f"{DPKG}/alternatives/")):
            tree.copy(path)
    for path in ("/proc", "/sys", "/dev", "/run", "/mnt", "/media", "/srv", "/opt", "/home", "/boot"):
        tree.folder(path)
    for path in (f"{DPKG}/updates", "/var/lib/apt/lists/partial", "/var/cache/apt/archives/partial", "/var/log/apt"):
        tree.folder(path)
    for path, mode in (("/root", 0o700), ("/tmp", 0o1777), ("/var/tmp", 0o1777)):
        tree.folder(path, mode)
    dpkg_database(tree, names, files)
    for name in ("passwd", "group"):
        tree.write(f"/etc/{name}", Path(f"/usr/share/base-passwd/{name}.master").read_bytes().replace(b":*:", b":x:"))
    tree.write("/etc/shadow", b"root:*:19000:0:99999:7:::\n", 0o640)
    for source in (Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("debian*")):
        if source.is_file():
            tree.copy(str(source))
    more(tree)
    tree.tar.close()


if __name__ == "__main__":
    write_rootfs(sys.stdout.buffer, sys.argv[1:])
