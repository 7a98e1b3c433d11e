"""What cannot be told from honest work by its origin: it stays in effect, and is said.

Whoever reads a result sees here by which ways code of the agent's may have reached the verifier.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.findings import Finding
from benchflow_core.verify.ground import SYSTEM, Ground, ancestors, name_of, parent_of, under

__all__ = ["noted"]

_READ_ONLY_BY_PEOPLE = re.compile(r"^/usr/(?:local/)?share/(?:doc|doc-base|man|info|locale|lintian|licenses)(?:/|$)")
_SCRIPT: Final = (".py", ".sh", ".js", ".mjs", ".ts", ".pl", ".rb", ".php", ".lua", ".jar")
_FOLLOWED: Final = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "cmake": ("CMakeLists.txt",),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "jest", "mocha", "vitest"), ("package.json", "node_modules")),
    "node": ("node_modules",),
    "cargo": ("build.rs", ".cargo"),
    "mvn": ("pom.xml",),
    "gradle": ("build.gradle", "build.gradle.kts"),
    "tox": ("tox.ini",),
    "rake": ("Rakefile",),
    "just": ("justfile",),
}
"""Program to what it obeys in the folder where it is called."""
_CALLED_AFTER = re.compile(r"([a-z][\w-]+)(?:\.(?:cfg|ini|toml|ya?ml)|\.config\.[cm]?[jt]s)")
_SETTINGS = re.compile(r"(?:rc|init|\.config)?(?:\.(?:json|ya?ml|toml|cfg|ini|[cm]?js))?$")


def noted(changes: Sequence[Change], agents: Sequence[Change], added: Collection[str], ground: Ground) -> list[Finding]:
    """`agents`: what is the agent's in the verifier's box; `added`: folders that it made."""
    found = [*_parts(agents, added, ground), *_programs(agents, ground), *_obeyed(agents, ground)]
    return list(dict.fromkeys([*found, *_of_the_image(changes, ground)]))


def _parts(agents: Sequence[Change], added: Collection[str], ground: Ground) -> Iterator[Finding]:
    """Put where programs and libraries of the image look for their parts: modules, plugins, headers, commands."""
    why = "a program or library of the image that looks for it takes it up"
    for change in agents:
        path = change.path
        if change.kind != "added" or parent_of(path) in added or _READ_ONLY_BY_PEOPLE.match(path):
            continue
        if not ground.in_work(path) and any(under(path, folder) for folder in SYSTEM) and "__pycache__" not in path:
            yield Finding("part-added", path, "noted", why)


def _programs(agents: Sequence[Change], ground: Ground) -> Iterator[Finding]:
    why = "the tests name this program of the agent's: run by the verifier's user, it has the verifier's powers"
    for change in agents:
        runs = change.type == "file" and (change.mode & 0o111 or change.path.endswith(_SCRIPT))
        if runs and ground.author.tests_name(name_of(change.path)):
            yield Finding("agent-program", change.path, "noted", why)


def _obeyed(agents: Sequence[Change], ground: Ground) -> Iterator[Finding]:
    """Files of the working directory that tell a program of the tests what to do."""
    for change in agents:
        path, name = change.path, name_of(change.path)
        if not ground.in_work(path) or parent_of(path) not in (ground.workdir, *ancestors(path)[:2]):
            continue
        for tool in _tools(change, name):
            if ground.author.tests_run(tool):
                why = f"{tool}, which the tests run, does what it says when it is called there"
                yield Finding("agent-program", path, "noted", why)


def _tools(change: Change, name: str) -> list[str]:
    tools = [tool for tool, names in _FOLLOWED.items() if name in names]
    if found := _CALLED_AFTER.fullmatch(name):
        tools.append(found[1])
    if name.startswith(".") and change.type == "file" and len(own := _SETTINGS.sub("", name[1:].lower())) > 1:
        tools.append(own)
    return tools


def _of_the_image(changes: Sequence[Change], ground: Ground) -> Iterator[Finding]:
    """Changed or gone, used by the tests, and nothing that the agent was told of."""
    for change in changes:
        path, gone = change.path, change.kind == "deleted"
        if change.kind == "added" or change.type == "dir" or path in ground.provided:
            continue
        if any(under(path, folder) for folder in SYSTEM) and not ground.in_work(path):
            continue  # put back
        local = path.removeprefix(f"{ground.workdir}/")
        if ground.author.instruction_says(name_of(path).lower(), local.lower()):
            continue
        if any(map(ground.author.tests_name, _names(path, local, with_folders=gone))):
            why = f"it came with the image, the tests use it, and it is {'gone' if gone else 'changed'}"
            yield Finding("image-file-changed", path, "noted", why)


def _names(path: str, local: str, *, with_folders: bool) -> list[str]:
    """By which names tests speak of it; `local`: as seen from the working directory, if it is there."""
    names = [path, local]
    if with_folders and local != path:
        folders = [folder for folder in ancestors(f"/{local}") if folder != "/"]
        names += [f"{path.removesuffix(local)}{folder[1:]}" for folder in folders] + [folder[1:] for folder in folders]
    return names
