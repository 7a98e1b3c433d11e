"""Git repositories among the agent's files, told by what lies in them: they may be anywhere and have any name."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.ground import SYSTEM, Ground, name_of, parent_of, under

__all__ = ["SYSTEM_CONFIG", "Repositories", "user_configs"]

SYSTEM_CONFIG: Final = "/etc/gitconfig"
_PARTS: Final = ("HEAD", "objects", "refs", "commondir")
_CONFIGS: Final = ("config", "config.worktree")
_HOOK = re.compile(
    r"^(.*)/hooks/(?:(?:pre|post)-[a-z-]+|update|applypatch-msg|(?:prepare-)?commit-msg|reference-transaction"
    r"|push-to-checkout|proc-receive|sendemail-validate|fsmonitor-watchman|p4-[a-z-]+)$"
)


def user_configs(home: str) -> tuple[str, ...]:
    return f"{home}/.gitconfig", f"{home}/.config/git/config"


class Repositories:
    """Which files steer git, and whose the repository is."""

    def __init__(self, changes: Sequence[Change], ground: Ground, added_folders: Collection[str]) -> None:
        there = [c for c in changes if c.kind != "deleted"]
        self._ground, self._added = ground, added_folders
        self._folders = {parent_of(c.path) for c in there if name_of(c.path) in _PARTS}
        gone = any(c.kind == "deleted" and name_of(c.path) == ".git" for c in changes)
        self._redirected = gone or any(self._leads_elsewhere(c) for c in there)

    def is_config(self, change: Change) -> bool:
        """Git reads it. A changed file of that name may lie in a repository of the image's that is not called so."""
        path, name = change.path, name_of(change.path)
        if change.type != "file" or change.kind == "deleted":
            return False
        if path == SYSTEM_CONFIG or path in user_configs(self._ground.home):
            return True
        if name not in _CONFIGS:
            return False
        known = ".git/" in path or parent_of(path) in self._folders
        return known or name == "config.worktree" or change.kind == "modified"

    def is_foreign_hook(self, change: Change) -> bool:
        """Git would run it in a repository that is not the agent's, or that stands for one; nor is it the task."""
        found = _HOOK.match(change.path) if change.kind != "deleted" else None
        if found is None or self._ground.author.says("hook"):
            return False
        repository = found[1]
        if any(under(repository, prefix) for prefix in SYSTEM) and repository not in self._added:
            return True  # the templates of new repositories
        if repository in self._added and not self._redirected:
            return False
        return repository.endswith(".git") or "/.git/" in repository or repository in self._folders

    def _leads_elsewhere(self, change: Change) -> bool:
        """Where the image has a folder there is a link or a file now; or a repository keeps its parts elsewhere."""
        if change.type != "dir" and change.was == "dir":
            return True
        return name_of(change.path) == "commondir" and parent_of(change.path) not in self._added
