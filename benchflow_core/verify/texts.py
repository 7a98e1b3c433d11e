"""Files of which one half is configuration and the other half power: the first is kept, the second is taken out."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

__all__ = [
    "brings_distutils",
    "editable_modules",
    "editable_places",
    "harmless_accounts",
    "harmless_hosts",
    "path_lines",
]

_EDITABLE = re.compile(r"^import (__editable__\w+_finder)\s*;\s*\1\.install\(\)\s*$")
_PRIVATE_NAME = re.compile(
    r"[^.]+|.*\.(?:local|localhost|localdomain|test|example|invalid|internal|lan|home|corp|intranet|private)"
    r"|(?:.*\.)?example\.(?:com|net|org)"
)


# --- Python's .pth files ------------------------------------------------------------------------------------------


def path_lines(text: str) -> list[str]:
    """The lines of a `.pth` file that name folders."""
    lines = (line.strip().lstrip("\ufeff").strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]


def editable_modules(text: str) -> list[str]:
    """Modules that hold the places of an editable install, by the one line that setuptools writes for them."""
    return [found[1] for line in text.splitlines() if (found := _EDITABLE.match(line.strip()))]


def brings_distutils(text: str) -> bool:
    """The line of setuptools' by which Python 3.12 and later still find `distutils`."""
    return "__import__('_distutils_hack')" in text


def editable_places(source: str) -> dict[str, str]:
    """Top-level package to folder, out of such a module, read as data."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        if isinstance(target, ast.Name) and target.id == "MAPPING" and node.value is not None:
            return _places(node.value)
    return {}


def _places(node: ast.expr) -> dict[str, str]:
    try:
        found = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {k: v for k, v in pairs if isinstance(k, str) and isinstance(v, str) and v.startswith("/")}


# --- /etc/hosts ---------------------------------------------------------------------------------------------------


def harmless_hosts(agents: str, images: str, meant: Callable[[str], bool]) -> tuple[str, list[str]]:
    """The image's file with the agent's private names and those `meant`, and the public names that were left out."""
    known = {line.strip() for line in images.splitlines()}
    kept, left_out = [], []
    for line in agents.splitlines():
        words = line.partition("#")[0].split()
        if len(words) < 2 or line.strip() in known:
            continue
        public = [name for name in words[1:] if not _private(name.lower()) and not meant(name.lower())]
        left_out += public
        if own := [name for name in words[1:] if name not in public]:
            kept.append(" ".join((words[0], *own)))
    return images.rstrip("\n") + "\n" + "".join(f"{line}\n" for line in kept), left_out


def _private(name: str) -> bool:
    return _PRIVATE_NAME.fullmatch(name) is not None


# --- /etc/passwd --------------------------------------------------------------------------------------------------


def harmless_accounts(agents: str, images: str, own: Callable[[str], bool]) -> tuple[str, list[str]]:
    """The agent's accounts with the image's lines for its `own`, first, and which were different or are left out.

    An account that the agent added does not have root's rights: a program that the tests run as its user would, too.
    """
    kept = [line for line in images.splitlines() if own(line.partition(":")[0])]
    names = [line.partition(":")[0] for line in kept]
    theirs = agents.splitlines()
    changed = [name for name, line in zip(names, kept, strict=True) if line not in theirs]
    added = [line for line in theirs if line.partition(":")[0] not in names]
    images_own = {line.partition(":")[0] for line in images.splitlines()}
    rooted = [line for line in added if _is_root(line) and line.partition(":")[0] not in images_own]
    rooted = [line for line in rooted if own(line.partition(":")[0])]
    lines = [*kept, *(line for line in added if line not in rooted)]
    return "".join(f"{line}\n" for line in lines), [*changed, *(line.partition(":")[0] for line in rooted)]


def _is_root(line: str) -> bool:
    fields = line.split(":")
    return len(fields) > 2 and not fields[2].strip().lstrip("+-0")
