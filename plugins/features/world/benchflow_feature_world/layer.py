"""An installed distribution and everything it requires, as a layer of a box. Nothing is downloaded.

The files come from this host's own installation, so what runs in the box is what is installed here; the box brings the
Python. That works for pure Python only, and a distribution with compiled parts is refused by name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchflow_core.contracts import Layer, Runtime
from benchflow_core.errors import ConfigurationError

__all__ = ["distribution_layer"]

_OURS: Final = "benchflow-core"
"""Every plugin requires it, and no service needs it in the box."""
_COMPILED: Final = (".so", ".pyd", ".dylib")
_SKIPPED: Final = (".pyc", ".pyo", ".pth")
_MINIMUM: Final = Runtime("python", "3.11")
_SHELL: Final = """#!/bin/sh
exec "${{BENCHFLOW_PYTHON:-python3}}" -I {prefix}/bin/{script}.py "$@"
"""
_START: Final = """import sys
sys.path.insert(0, {site!r})
from {module} import {first}
sys.argv[0] = {script!r}
sys.exit({call}())
"""


@cache
def distribution_layer(name: str) -> Layer:
    """`bin/` with its console scripts and `site/` with the packages, at a path that its contents decide."""
    try:
        root = distribution(name)
    except PackageNotFoundError:
        raise ConfigurationError(f"the service's distribution '{name}' is not installed.") from None
    files: dict[str, bytes] = {}
    for one in _closure(root):
        for relative, path in _files(one):
            if path.suffix in _COMPILED:
                raise ConfigurationError(
                    f"service distribution '{name}' cannot be shown in a box: {one.metadata['Name']} has compiled "
                    f"parts ({path.name}).",
                    remedy="Install the service in the task's image instead.",
                )
            files[f"site/{relative}"] = path.read_bytes()
    digest = hashlib.sha256()
    for relative, content in sorted(files.items()):
        digest.update(f"{relative}\0{len(content)}\0".encode() + content)
    prefix = f"/opt/benchflow/services/{canonicalize_name(name)}"
    return Layer(
        key=f"{canonicalize_name(name)}@{root.version}-{digest.hexdigest()[:16]}",
        prefix=prefix,
        files={**files, **_scripts(root, prefix)},
        install=(("python3", "-m", "compileall", "-q", "-j", "1", "{prefix}/site"),),
        runtimes=(_MINIMUM,),
    )


def _scripts(root: Distribution, prefix: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for point in root.entry_points:
        if point.group != "console_scripts":
            continue
        first = point.attr.partition(".")[0]
        start = _START.format(
            site=f"{prefix}/site", module=point.module, first=first, call=point.attr, script=point.name
        )
        found[f"bin/{point.name}.py"] = start.encode()
        found[f"bin/{point.name}"] = _SHELL.format(prefix=prefix, script=point.name).encode()
    return found


def _closure(root: Distribution) -> list[Distribution]:
    """It and what it requires, extras only where a requirement names them."""
    env = {key: str(value) for key, value in default_environment().items()}
    seen: dict[tuple[str, str], Distribution] = {}
    todo: list[tuple[Distribution, str]] = [(root, "")]
    while todo:
        one, extra = todo.pop()
        key = (canonicalize_name(one.metadata["Name"]), extra)
        if key in seen:
            continue
        seen[key] = one
        for text in one.requires or ():
            wanted = Requirement(text)
            if wanted.marker is not None and not wanted.marker.evaluate({**env, "extra": extra}):
                continue
            if canonicalize_name(wanted.name) == _OURS:
                continue
            try:
                found = distribution(wanted.name)
            except PackageNotFoundError:
                raise ConfigurationError(
                    f"'{one.metadata['Name']}' requires '{wanted.name}', which is not installed.",
                    remedy=f"pip install '{wanted}'",
                ) from None
            todo += [(found, ""), *((found, also) for also in wanted.extras)]
    return list({name: one for (name, _), one in sorted(seen.items())}.values())


def _files(one: Distribution) -> Iterator[tuple[str, Path]]:
    source = _editable(one)
    if source is not None:
        yield from _source_files(one, source)
        return
    for file in one.files or ():
        path = Path(str(one.locate_file(file)))
        outside = file.parts[0] == ".." or file.suffix in _SKIPPED or "__pycache__" in file.parts
        if not outside and path.is_file():
            yield file.as_posix(), path


def _editable(one: Distribution) -> Path | None:
    """Where an editable installation has its source."""
    text = one.read_text("direct_url.json")
    data = json.loads(text) if text else {}
    if not data.get("dir_info", {}).get("editable"):
        return None
    return Path(unquote(urlparse(data["url"]).path))


def _source_files(one: Distribution, source: Path) -> Iterator[tuple[str, Path]]:
    """The packages below the folders that its `.pth` files name; by name, for a folder holds its tests as well."""
    stem = canonicalize_name(one.metadata["Name"]).replace("-", "_")
    roots = [source, source / "src"]
    for file in one.files or ():
        if file.suffix == ".pth":
            lines = Path(str(one.locate_file(file))).read_text(encoding="utf-8").splitlines()
            roots += [Path(line) for line in lines if line and not line.startswith("import")]
    modules = {point.module.partition(".")[0] for point in one.entry_points} | {stem}
    done = set()
    for root in roots:
        for package in sorted(modules):
            folder = root / package
            if package in done or not (folder / "__init__.py").is_file():
                continue
            done.add(package)
            for path in sorted(folder.rglob("*")):
                if path.is_file() and path.suffix not in _SKIPPED and "__pycache__" not in path.parts:
                    yield path.relative_to(root).as_posix(), path
