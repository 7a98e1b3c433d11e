"""A Python that runs in any Linux image: this host's interpreter with its libraries and its own loader.

It runs what is `inside` a box, so that nothing of the image is needed, and serves as the `python` runtime as well. The
loader is told where its libraries are, and neither its cache nor its preload list is one that a box could write.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import marshal
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Final

from benchflow_core.contracts import private_folder
from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import CapabilityMissing

__all__ = ["Interpreter", "machine"]

_VERSION: Final = f"python{sys.version_info[0]}.{sys.version_info[1]}"
_UNUSED: Final = frozenset(
    {"test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "pydoc_data"}
    | {"__pycache__", "site-packages", "dist-packages"}
)
_PATCHES: Final = (
    (b"/etc/ld.so.preload\0", b"/proc/self/no/such\0"),
    (b"/etc/ld.so.cache\0", b"/proc/self/no/so\0"),
)
_LARGE: Final = 200_000
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def machine() -> str:
    """This host's processor, as engines call it."""
    return _MACHINES.get(platform.machine(), platform.machine())


@dataclass(frozen=True)
class Interpreter:
    """Below `home` in a box, with the folder `inside` of these packages."""

    home: str
    packages: tuple[str, ...]

    @property
    def python(self) -> str:
        return f"{self.home}/python/bin/python3"

    @property
    def _loaded(self) -> tuple[str, ...]:
        """The interpreter by its own loader, as the beginning of a command."""
        library = f"{self.home}/python/lib"
        return f"{library}/ld.so", "--library-path", library, f"{self.home}/python/bin/{_VERSION}"

    def command(self, module: str) -> tuple[str, ...]:
        """What runs `main` of this module, away from the image's files and variables."""
        start = f"import sys; sys.path.insert(0, '{self.home}/code'); from {module} import main; main()"
        return *self._loaded, "-I", "-S", "-X", "utf8", "-c", start

    @cache  # noqa: B019 - there is one of each kind, for ever
    def identity(self) -> str:
        """Changes when the interpreter or the code that runs in boxes does."""
        binary = Path(sys.executable).resolve()
        found = hashlib.sha256(f"6 {sys.version} {binary} {binary.stat().st_size} {self.home}".encode())
        for name, data in self._code():
            found.update(name.encode() + data)
        return found.hexdigest()[:16]

    def _code(self) -> Iterator[tuple[str, bytes]]:
        for package in self.packages:
            yield f"{package}/__init__.py", b""
            inside = resources.files(package) / "inside"
            for file in sorted(inside.iterdir(), key=lambda entry: entry.name):
                if file.name.endswith(".py"):
                    yield f"{package}/inside/{file.name}", file.read_bytes()

    def archive(self) -> bytes:
        """A tar of everything below `home`."""
        if sys.platform != "linux":
            raise CapabilityMissing(
                "Boxes get this host's own Python, which takes a Linux host.",
                remedy="Run bench on Linux, in a container for instance, or use another sandbox.",
            )
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, data in self._code():
                _add(tar, f"code/{name}", data)
                _add(tar, f"code/{importlib.util.cache_from_source(name)}", _compiled(name, data))
            loader, *rest = self._loaded
            wrapper = f'#!/bin/sh\nexec {loader} --argv0 "$0" {" ".join(rest)} "$@"\n'
            _add(tar, "python/bin/python3", wrapper.encode(), 0o755)
            _add(tar, f"python/bin/{_VERSION}", Path(sys.executable).resolve().read_bytes(), 0o755)
            libraries = _add_library(tar, Path(sysconfig.get_path("stdlib")))
            _add_pip(tar)
            for name, path in libraries.items():
                _add(tar, f"python/lib/{name}", _patched(path) if name == "ld.so" else _without_symbols(path), 0o755)
            end = tar.offset
        # Two empty blocks end an archive. Podman stops reading there, and fails where more of them follow.
        return out.getvalue()[: end + 2 * tarfile.BLOCKSIZE]


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644, time: int = 0) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), mode, time
    tar.addfile(info, io.BytesIO(data))


def _add_source(tar: tarfile.TarFile, name: str, path: Path) -> None:
    """A file with its time, so that what Python compiled from it here holds there as well."""
    data = _without_symbols(path) if path.suffix == ".so" else path.read_bytes()
    _add(tar, name, data, time=int(path.stat().st_mtime))
    compiled = Path(importlib.util.cache_from_source(str(path))) if path.suffix == ".py" else path
    if compiled != path and compiled.is_file():
        _add(tar, f"{PurePosixPath(name).parent}/__pycache__/{compiled.name}", compiled.read_bytes())


def _add_library(tar: tarfile.TarFile, stdlib: Path) -> dict[str, Path]:
    """The standard library, compiled; returns the shared libraries that it and the interpreter need."""
    binary = Path(sys.executable).resolve()
    needed = _dependencies(binary) or {}
    if "ld.so" not in needed:
        raise CapabilityMissing(f"{binary} cannot be taken apart: ldd names no loader for it.")
    for folder, folders, files in os.walk(stdlib):
        folders[:] = sorted(name for name in folders if name not in _UNUSED and not name.startswith("config-"))
        for name in sorted(files):
            path = Path(folder, name)
            relative = path.relative_to(stdlib)
            if name.startswith("_tkinter"):
                continue
            if name.endswith(".so"):
                found = _dependencies(path)
                if found is None:  # a module whose own library this host lacks
                    continue
                needed |= found
            if name.endswith((".so", ".py", ".whl", ".pem")):
                _add_source(tar, f"python/lib/{_VERSION}/{relative}", path)
    for pattern in ("libnss_dns.so*", "libnss_files.so*", "libresolv.so*"):
        for path in needed["libc.so.6"].parent.glob(pattern):
            needed.setdefault(path.name, path)
    return needed


def _add_pip(tar: tarfile.TarFile) -> None:
    """Beside the standard library: where else an interpreter looks is its distributor's choice."""
    own, base, place = sysconfig.get_path("purelib"), Path(sys.base_prefix, "lib"), f"python/lib/{_VERSION}"
    for site in (Path(own), base / _VERSION / "site-packages", base / "python3/dist-packages"):
        if (site / "pip").is_dir():
            for path in sorted((site / "pip").rglob("*")):
                if path.is_file() and path.suffix != ".pyc":
                    _add(tar, f"{place}/{path.relative_to(site)}", path.read_bytes())
            return
    bundled = Path(sysconfig.get_path("stdlib"), "ensurepip/_bundled")
    for wheel in (path for folder in (bundled, Path("/usr/share/python-wheels")) for path in folder.glob("pip-*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for name in sorted(n for n in archive.namelist() if n.startswith("pip/") and not n.endswith("/")):
                _add(tar, f"{place}/{name}", archive.read(name))
        return


def _dependencies(path: Path) -> dict[str, Path] | None:
    """Names to files, `ld.so` for the loader; nothing at all where one is missing."""
    done = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False)
    found: dict[str, Path] = {}
    for line in done.stdout.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if "not found" in line:
            return None
        if arrow:
            found[name] = Path(rest.split(" (")[0]).resolve()
        elif name.startswith("/"):
            found["ld.so"] = Path(name.split(" (")[0]).resolve()
    return found


def _without_symbols(library: Path) -> bytes:
    """A large one as small as it runs, where this host has the tool: what debuggers read is a third of everything."""
    if library.stat().st_size > _LARGE and shutil.which("strip"):
        with private_folder() as folder:
            smaller = folder / library.name
            command = ["strip", "--strip-unneeded", "-o", str(smaller), str(library)]
            if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                return smaller.read_bytes()
    return library.read_bytes()


def _compiled(name: str, source: bytes) -> bytes:
    """A .pyc that is never checked against its source."""
    return importlib.util.MAGIC_NUMBER + bytes([1, 0, 0, 0]) + bytes(8) + marshal.dumps(compile(source, name, "exec"))


def _patched(loader: Path) -> bytes:
    data = loader.read_bytes()
    for old, new in _PATCHES:
        if data.count(old) != 1:
            raise CapabilityMissing(f"{loader} is not a loader that is known here: it has no {old[:-1].decode()}.")
        data = data.replace(old, new)
    return data
