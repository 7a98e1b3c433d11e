"""Names of the image that no added file may stand in front of. They are read once, in a box of the image alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchflow_core.contracts import Change, IsolationRequest, NetworkPolicy
from benchflow_feature_isolation.origin import Places, name_of, parent_of

__all__ = ["ImageNames", "Shadows", "image_names"]

_LIST: Final = r"""
work=$1; shift
say() { while IFS= read -r name; do printf '%s\t%s\n' "$1" "$name"; done; }
for folder do [ -d "$folder" ] && ls -A "$folder" | say command; done
for folder in /lib /lib64 /usr/lib /usr/lib64 /usr/local/lib /lib/*-linux-* /usr/lib/*-linux-*; do
  [ -d "$folder" ] && ls -A "$folder" | grep -E '\.(so|a)(\.|$)' | say library
done
for folder do
  for lib in "$folder"/../lib/python3* "$folder"/../lib64/python3*; do
    for place in "$lib" "$lib/lib-dynload" "$lib/site-packages" "$lib/dist-packages"; do
      [ -d "$place" ] && ls -A "$place" | grep -vE '[.-](info|pth)$|^__pycache__$' | sed 's/\..*//' | say python
    done
  done
done
for folder in /usr/share/perl5 /usr/share/perl/5* /usr/lib/*/perl* /usr/lib/perl5 /usr/local/lib/perl5/5*; do
  [ -d "$folder" ] && (cd "$folder" && find . -name '*.pm') | sed 's#.*/\([^/]*/[^/]*\)$#\1#;s#^\./##' | say perl
done
[ -d "$work" ] && find "$work" -maxdepth 8 -name __init__.py | sed 's#/__init__.py$##' | say package
exit 0
"""
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SECONDS: Final = 60.0
_MOST_IMAGES: Final = 200
_MODULE = re.compile(r"\.(?:py|pyc|so|[a-z0-9_-]+\.so)$")
_LIBRARY = re.compile(r"\.(?:so|a)(?:\.[0-9.]+)?$")
_known: dict[str, ImageNames] = {}


@dataclass(frozen=True, slots=True)
class ImageNames:
    """What the image has: names of commands, libraries and modules, and the folders that are Python packages."""

    command: frozenset[str] = frozenset()
    library: frozenset[str] = frozenset()
    python: frozenset[str] = frozenset()
    perl: frozenset[str] = frozenset()
    package: frozenset[str] = frozenset()


async def image_names(request: IsolationRequest, places: Places) -> ImageNames:
    """Return the image's names; a box of the image is started for them once per image and process."""
    key = f"{request.image!r} {places.workdir} {places.path}"
    if key not in _known:
        if len(_known) >= _MOST_IMAGES:
            _known.clear()
        _known[key] = await _read_names(request, places)
    return _known[key]


async def _read_names(request: IsolationRequest, places: Places) -> ImageNames:
    start = replace(request.start, name=f"{request.start.name}-image", network=NetworkPolicy("none"), entrypoint=False)
    async with request.box(request.image, start) as box:
        argv = ("/bin/sh", "-c", _LIST, "sh", places.workdir, *places.path)
        done = await box.exec(argv, env={"PATH": _PATH, "LC_ALL": "C"}, user="root", cwd="/", timeout=_SECONDS)
    found: dict[str, set[str]] = {}
    for line in done.stdout.decode("utf-8", "surrogateescape").splitlines():
        what, _, name = line.partition("\t")
        found.setdefault(what, set()).add(name)
    return ImageNames(**{what: frozenset(found.get(what, ())) for what in ImageNames.__annotations__})


class Shadows:
    """Tells which additions have a name of the image's."""

    def __init__(self, changes: Sequence[Change], names: ImageNames) -> None:
        self._names = names
        there = [c for c in changes if c.kind != "deleted"]
        self._packages = names.package | {parent_of(c.path) for c in there if name_of(c.path) == "__init__.py"}
        self._folders = {c.path for c in there if c.kind == "added" and c.type == "dir"}

    def hidden(self, change: Change) -> tuple[str, str, str] | None:
        """Return kind, name and the path to undo, where an addition has a name of the image's."""
        if change.kind != "added" or change.type not in ("file", "link"):
            return None
        path, name = change.path, name_of(change.path)
        if name in self._names.command and (change.type == "link" or change.mode & 0o111):
            return "command", name, path
        if _LIBRARY.search(name) and name in self._names.library:
            return "library", name, path
        if name.endswith(".pm") and {name, "/".join(path.split("/")[-2:])} & self._names.perl:
            return "perl", name, path
        return self._module(path, name)

    def _module(self, path: str, name: str) -> tuple[str, str, str] | None:
        """A module counts by its top name: what lies inside a package hides nothing."""
        if not _MODULE.search(name) or "/__pycache__/" in path:
            return None
        place, module = parent_of(path), name.partition(".")[0]
        if module == "__init__":
            path, module, place = place, name_of(place), parent_of(place)
            path = path if path in self._folders else f"{path}/{name}"
        if module not in self._names.python or place in self._packages:
            return None
        return "python", module, path

    @staticmethod
    def possible(changes: Collection[Change]) -> bool:
        """Tell whether the image has to be asked at all."""
        return any(
            c.kind == "added"
            and (
                c.type == "link"
                or (c.type == "file" and (c.mode & 0o111 or _LIBRARY.search(c.path) or c.path.endswith((".pm", ".py"))))
            )
            for c in changes
        )
