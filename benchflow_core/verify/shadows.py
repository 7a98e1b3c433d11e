"""Rule four: a command or library that the agent added does not stand in for one of the same name.

Whether there is one of the same name only the box can tell; here is what to ask it and what its answer means.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Collection, Sequence
from typing import Final

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.ground import DEFAULT_PATH, TOOLS, Ground, name_of, parent_of

__all__ = [
    "DISTRIBUTION",
    "LIBRARY_FOLDERS",
    "brought_by_tests",
    "hides_from_bare_python",
    "hides_own_makefile",
    "is_our_tool",
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
_LIBRARY = re.compile(r"^(?:ld-|lib)[^/]*\.(?:so(?:\.[0-9.]+)?|a)$|^ld-linux|^[a-zA-Z]*crt[^/]*\.o$")
_PREFERRED: Final = "/glibc-hwcaps/"
"""Below any folder of libraries: the loader looks there first."""
_STANDARD = re.compile(r"/lib(?:64)?/python\d\.\d+/")
_PERL = re.compile(
    r"^/usr/(?:local/(?:lib|share)/.*5\.[\d.]+/(?:[a-z0-9_]+-linux[^/]*/)?|share/perl5/|lib/[^/]+/perl5/5\.[\d.]+/)(.+\.p[ml])$"
)
"""Where Perl looks before the folders of its own library."""
_RUBY = re.compile(r"^/(?:usr|var)/.*(?:site|vendor)_ruby/(?:[\d.]+/)?(.+\.(?:rb|so))$")
"""Where Ruby looks before its own library."""
_RUBY_VERSIONS: Final = tuple(f"{major}.{minor}.0" for major in (2, 3, 4) for minor in range(8))
_PERL_VERSIONS: Final = tuple(f"5.{minor}" for minor in range(20, 48, 2))
_MACHINES: Final = ("x86_64-linux-gnu", "aarch64-linux-gnu")
_OWN_MACHINE: Final = f"{platform.machine()}-linux-gnu"
"""Compilers for other machines keep theirs in folders that look alike."""
_COMPILER_LIBRARIES = re.compile(rf"^/usr/{_OWN_MACHINE}/lib(?:64)?/|^/(?:usr/)?lib/{_OWN_MACHINE}/\d[\d.]*/")
"""Where compilers look for libraries before the image's own folders."""
_HEADER = re.compile(
    rf"^/usr/(?:local/include|lib/gcc/[^/]+/[^/]+/include(?:-fixed)?|{_OWN_MACHINE}/include|include/(?:c\+\+/[^/]+|[a-z0-9_]+-linux-gnu(?:/c\+\+/[^/]+)?))/(.+)$"
)
"""Where compilers look before the image's own headers."""
_DESCRIBED = re.compile(r"^/usr/(?:local/)?(?:lib(?:64)?(?:/[^/]+)?|share)/pkgconfig/(.+)\.pc$")
_DESCRIPTIONS: Final = tuple(
    f"/usr/{folder}/pkgconfig" for folder in ("share", "lib", "lib64", *(f"lib/{machine}" for machine in _MACHINES))
)
"""Where pkg-config looks for the image's libraries."""
_COMPILER = re.compile(r"^/usr/(?:local/)?lib(?:exec)?/gcc/[^/]+/[^/]+$|^/usr/[^/]+-linux-gnu/bin$")
"""Where compilers look for their tools before PATH."""
_MODULE = re.compile(r"\.(?:py|pyc|so)$")
DISTRIBUTION: Final = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
"""Where a distribution's package manager installs, over whatever lies there."""
_PYTHON = re.compile(r"python(3\.\d+)")
_BROUGHT = re.compile(r"curl|wget|git|uvx?|pip3?|pipx|pytest|python3?|node|npm|npx|jq|apt-get")
"""What test scripts commonly install for themselves where the image has none."""


def may_shadow_command(change: Change, ground: Ground) -> bool:
    """Added where commands are looked for, and could be run."""
    folder = parent_of(change.path)
    if change.kind != "added" or not (folder in ground.command_folders or _COMPILER.match(folder)):
        return False
    if ground.in_work(change.path) and ground.author.instruction_names(name_of(change.path)):
        return False
    return change.type == "link" or (change.type == "file" and bool(change.mode & 0o111))


def is_our_tool(change: Change) -> bool:
    """Would our own scripts in the box run it? They look in these folders before anything is set aside."""
    if change.kind != "added" or change.type == "dir" or name_of(change.path) not in TOOLS:
        return False
    return parent_of(change.path) in DEFAULT_PATH.split(":")


def may_shadow_library(change: Change, ground: Ground, added_folders: Collection[str]) -> bool:
    """Added to a folder of the image's, where its programs look for libraries."""
    folder = parent_of(change.path)
    if change.kind != "added" or change.type == "dir" or not _LIBRARY.match(name_of(change.path)):
        return False
    if folder in ground.library_folders and not ground.author.instruction_says(folder.lower()):
        return True
    if folder in ground.library_path or _PREFERRED in change.path or _COMPILER_LIBRARIES.match(change.path):
        return True
    return folder not in added_folders and not ground.in_work(change.path) and "-packages/" not in change.path


def module_twins(change: Change, ground: Ground) -> list[str]:
    """Where the modules would be that this addition hides from an interpreter or compiler; nothing if it cannot."""
    if change.kind != "added":
        return []
    if perl := _PERL.match(change.path):
        return [twin for twin in _perl_twins(perl[1]) if twin != change.path]
    if ruby := _RUBY.match(change.path):
        return [f"/usr{local}/lib/ruby/{version}/{ruby[1]}" for local in ("", "/local") for version in _RUBY_VERSIONS]
    if header := _HEADER.match(change.path):
        twins = [f"/usr/include/{header[1]}", *(f"/usr/include/{machine}/{header[1]}" for machine in _MACHINES)]
        return [twin for twin in twins if twin != change.path]
    if described := _DESCRIBED.match(change.path):
        twins = [f"{folder}/{described[1]}.pc" for folder in _DESCRIPTIONS]
        return [] if ground.author.instruction_says(described[1].lower()) else [t for t in twins if t != change.path]
    if not _STANDARD.search(change.path) or "-packages" in change.path:
        return []
    name = name_of(change.path)
    if "/__pycache__" in change.path or not (change.type in ("dir", "link") or _MODULE.search(name)):
        return []
    base = f"{parent_of(change.path).rstrip('/')}/{name.partition('.')[0]}"
    return [twin for twin in (f"{base}.py", f"{base}/__init__.py") if twin != change.path]


def _perl_twins(module: str) -> list[str]:
    """Perl's own library comes last; what a distribution adds to it, just before."""
    folders = ["/usr/share/perl5", *(f"/usr/lib/{machine}/perl-base" for machine in _MACHINES)]
    for version in _PERL_VERSIONS:
        folders += [f"/usr/share/perl/{version}", f"/usr/local/lib/perl5/{version}"]
        folders += [f"/usr/lib/{machine}/perl{kind}/{version}" for machine in _MACHINES for kind in ("", "5")]
    return [f"{folder}/{module}" for folder in folders]


def brought_by_tests(change: Change, ground: Ground) -> bool:
    """A tool that the task did not ask for and that its tests install: theirs is used, not the agent's."""
    name, author = name_of(change.path), ground.author
    if _is_sourced(change, ground):
        return True
    if not may_shadow_command(change, ground):
        return False
    if version := _PYTHON.fullmatch(name):
        return (author.tests_use("uv") or author.tests_use("uvx")) and not author.instruction_names(version[1])
    if not _BROUGHT.fullmatch(name) or author.instruction_names(name):
        return False
    if parent_of(change.path) in DISTRIBUTION:
        looked_at = author.says("dpkg", "apt list", "apt-cache", "rpm -q", "apk info", "apk list")
        return author.tests_install(name) and not looked_at
    return author.tests_use(name) and author.tests_bring(name)


def hides_own_makefile(change: Change, ground: Ground) -> bool:
    """Would make read it in place of the `Makefile` that the tests lay beside it?"""
    name, author = name_of(change.path), ground.author
    if change.kind != "added" or name not in ("GNUmakefile", "makefile"):
        return False
    return author.brings("Makefile") and not author.instruction_says(name.lower())


def hides_from_bare_python(change: Change, ground: Ground) -> bool:
    """A module called like one of the standard library's, where the tests start a Python that has no guard."""
    name = name_of(change.path).partition(".")[0]
    if change.kind != "added" or name not in sys.stdlib_module_names or not ground.in_work(change.path):
        return False
    return ground.author.starts_bare_python and not ground.author.instruction_says(name_of(change.path).lower())


def _is_sourced(change: Change, ground: Ground) -> bool:
    """In a folder of commands, and the tests take it into their shell: it is what their own installer leaves there."""
    if change.kind != "added" or parent_of(change.path) not in ground.command_folders:
        return False
    author, path = ground.author, change.path
    return path in {p.replace("~", ground.home, 1) for p in author.sourced} and not author.instruction_names(path)


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
