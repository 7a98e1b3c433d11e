"""Rule four: a command or library that the agent added does not stand in for one of the same name.

Whether there is one of the same name only the box can tell; here is what to ask it and what its answer means.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.ground import Ground, name_of, parent_of

__all__ = [
    "DISTRIBUTION",
    "LIBRARY_FOLDERS",
    "brought_by_tests",
    "may_shadow_command",
    "may_shadow_library",
    "module_twins",
    "shadowing",
]

LIBRARY_FOLDERS: Final = tuple(
    f"{prefix}{folder}"
    for prefix in ("", "/usr", "/usr/local")
    for folder in ("/lib", "/lib64", "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu")
)
_LIBRARY = re.compile(r"^(?:ld-|lib)[^/]*\.so(?:\.[0-9.]+)?$|^ld-linux")
_STANDARD = re.compile(r"/lib(?:64)?/python\d\.\d+/")
_PERL_SITE = re.compile(r"^(/usr/local/(?:lib|share)).*/(5\.[\d.]+)/(?:[a-z0-9_]+-linux[^/]*/)?(.+\.p[ml])$")
_HEADERS: Final = "/usr/local/include/"
"""Where compilers look before the image's own headers."""
_MODULE = re.compile(r"\.(?:py|pyc|so)$")
DISTRIBUTION: Final = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
"""Where a distribution's package manager installs, over whatever lies there."""
_PYTHON = re.compile(r"python(3\.\d+)")
_BROUGHT = re.compile(r"curl|wget|git|uvx?|pip3?|pipx|pytest|python3?|node|npm|npx|jq|apt-get")
"""What test scripts commonly install for themselves where the image has none."""


def may_shadow_command(change: Change, ground: Ground) -> bool:
    """Added where commands are looked for, and could be run."""
    if change.kind != "added" or parent_of(change.path) not in ground.command_folders():
        return False
    return change.type == "link" or (change.type == "file" and bool(change.mode & 0o111))


def may_shadow_library(change: Change, ground: Ground, added_folders: Collection[str]) -> bool:
    """Added to a folder of the image's, where its programs look for libraries."""
    folder = parent_of(change.path)
    if change.kind != "added" or change.type == "dir" or not _LIBRARY.match(name_of(change.path)):
        return False
    if folder in ground.library_path:
        return True
    return folder not in added_folders and not ground.in_work(change.path) and "-packages/" not in change.path


def module_twins(change: Change) -> list[str]:
    """Where the modules would be that this addition hides from an interpreter or compiler; nothing if it cannot."""
    if change.kind != "added":
        return []
    if perl := _PERL_SITE.match(change.path):
        return _perl_twins(perl[1], perl[2], perl[3])
    if change.path.startswith(_HEADERS):
        rest = change.path.removeprefix(_HEADERS)
        return [f"/usr/include/{machine}{rest}" for machine in ("", "x86_64-linux-gnu/", "aarch64-linux-gnu/")]
    if not _STANDARD.search(change.path) or "-packages" in change.path:
        return []
    name = name_of(change.path)
    if "/__pycache__" in change.path or not (change.type in ("dir", "link") or _MODULE.search(name)):
        return []
    base = f"{parent_of(change.path).rstrip('/')}/{name.partition('.')[0]}"
    return [twin for twin in (f"{base}.py", f"{base}/__init__.py") if twin != change.path]


def _perl_twins(root: str, version: str, module: str) -> list[str]:
    """Perl looks into its site folders first."""
    short = ".".join(version.split(".")[:2])
    folders = ["/usr/share/perl5", f"/usr/share/perl/{version}", f"/usr/share/perl/{short}", f"{root}/perl5/{version}"]
    for machine in ("x86_64-linux-gnu", "aarch64-linux-gnu"):
        folders += [f"/usr/lib/{machine}/perl{kind}" for kind in (f"/{short}", f"5/{short}", "-base")]
    return [f"{folder}/{module}" for folder in folders]


def brought_by_tests(change: Change, ground: Ground) -> bool:
    """A tool that the task did not ask for and that its tests install: theirs is used, not the agent's."""
    name, author = name_of(change.path), ground.author
    if not may_shadow_command(change, ground):
        return False
    if version := _PYTHON.fullmatch(name):
        return (author.tests_use("uv") or author.tests_use("uvx")) and not author.instruction_names(version[1])
    if not _BROUGHT.fullmatch(name) or author.instruction_names(name):
        return False
    if parent_of(change.path) in DISTRIBUTION:
        looked_at = author.says("dpkg", "apt list", "apt-cache", "rpm -q", "apk info", "apk list")
        return author.tests_install(name) and not looked_at
    return author.tests_use(name)


def shadowing(
    candidates: Collection[str], found: Sequence[str], agents: Collection[str], *, ordered: bool
) -> dict[str, str]:
    """Candidate to what it would hide. `found`: every place of each name, in the order in which they are searched."""
    places: dict[str, list[str]] = {}
    for path in found:
        places.setdefault(name_of(path), []).append(path)
    hidden: dict[str, str] = {}
    for candidate in candidates:
        known = places.get(name_of(candidate), [])
        others = [p for p in known if p != candidate and p not in agents]
        if ordered and candidate in known:
            at = known.index(candidate)
            others = [] if any(known.index(p) < at for p in others) else others
        if others:
            hidden[candidate] = others[0]
    return hidden
