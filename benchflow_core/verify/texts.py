"""Files of which one half is configuration and the other half power: the first is kept, the second is taken out."""

from __future__ import annotations

import ast
import re

__all__ = ["editable_modules", "editable_places", "harmless_git_config", "harmless_hosts", "path_lines"]

_EDITABLE = re.compile(r"^import (__editable__\w+_finder)\s*;\s*\1\.install\(\)\s*$")
_PRIVATE_NAME = re.compile(
    r"[^.]+|.*\.(?:local|localhost|localdomain|test|example|invalid|internal|lan|home|corp|intranet|private)"
    r"|(?:.*\.)?example\.(?:com|net|org)"
)
_LFS = re.compile(r"\s*\w+\s*=\s*git-lfs (?:clean -- %f|smudge (?:--skip )?-- %f|filter-process(?: --skip)?)\s*")
_GIT_SECTION = re.compile(r'^\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_GIT_KEY = re.compile(r"^\s*([A-Za-z][\w-]*)\s*(?:=|$)")
_GIT_POWER = re.compile(
    r"^(?:include(?:if)?\..*|url\..*|filter\..*\.(?:clean|smudge|process)|diff\.external|diff\..*\.(?:command|textconv)"
    r"|merge\..*\.driver|credential\..*|http\..*|https\..*|protocol\..*|gpg\..*program|pager\..*|trailer\..*"
    r"|core\.(?:hookspath|fsmonitor|sshcommand|gitproxy|askpass|pager|attributesfile|worktree|alternaterefscommand)"
    r"|init\.templatedir|uploadpack\.packobjectshook|remote\..*\.(?:proxy|uploadpack|receivepack|vcs))$"
)


# --- Python's .pth files ------------------------------------------------------------------------------------------


def path_lines(text: str) -> list[str]:
    """The lines of a `.pth` file that name folders."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]


def editable_modules(text: str) -> list[str]:
    """Modules that hold the places of an editable install, by the one line that setuptools writes for them."""
    return [found[1] for line in text.splitlines() if (found := _EDITABLE.match(line.strip()))]


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


def harmless_hosts(agents: str, images: str) -> tuple[str, list[str]]:
    """The image's file with the agent's private names, and the public names that were left out."""
    known = {line.strip() for line in images.splitlines()}
    kept, left_out = [], []
    for line in agents.splitlines():
        words = line.partition("#")[0].split()
        if len(words) < 2 or line.strip() in known:
            continue
        public = [name for name in words[1:] if not _private(name.lower())]
        left_out += public
        if own := [name for name in words[1:] if name not in public]:
            kept.append(" ".join((words[0], *own)))
    return images.rstrip("\n") + "\n" + "".join(f"{line}\n" for line in kept), left_out


def _private(name: str) -> bool:
    return _PRIVATE_NAME.fullmatch(name) is not None


# --- git ----------------------------------------------------------------------------------------------------------


def harmless_git_config(text: str) -> tuple[str, list[str]]:
    """A git configuration without what runs programs or leads elsewhere, and the names of what was left out."""
    kept, left_out, section = [], [], ""
    skipping = False
    for line in text.splitlines():
        if skipping:
            skipping = line.endswith("\\")
            continue
        header = _GIT_SECTION.match(line)
        rest = line
        if header:
            section = header[1].lower() + (f".{header[2]}" if header[2] is not None else "")
            rest = line[header.end() :]
        key = _GIT_KEY.match(rest)
        name = f"{section}.{key[1].lower()}" if key else ""
        if name and _GIT_POWER.match(name) and not _well_known(rest):
            left_out.append(name)
            skipping = line.endswith("\\")
            if header:
                kept.append(line[: header.end()])
            continue
        kept.append(line)
    return "\n".join(kept) + "\n", left_out


def _well_known(setting: str) -> bool:
    """What `git lfs install` writes: everybody has it, and it runs an installed program by its name alone."""
    return _LFS.fullmatch(setting) is not None
