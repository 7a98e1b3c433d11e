"""What the rules need to know about a box to tell whose a path is and what it can do to the verifier."""

from __future__ import annotations

import fnmatch
from functools import cached_property
from typing import Final

from benchflow_core.quick import dataclass
from benchflow_core.verify.author import AuthorText
from benchflow_core.verify.searchpath import HERE

__all__ = ["ACCOUNTS", "DEFAULT_PATH", "SYSTEM", "TOOLS", "Ground", "ancestors", "name_of", "parent_of", "under"]

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TOOLS: Final = frozenset(("rm", "mkdir", "chmod", "chown", "stat", "cp", "mv", "ldconfig", "id", "cat"))
"""What our own scripts in a box call by name, before anything that shadows has been set aside there."""
ACCOUNTS: Final = "/etc/passwd"
SYSTEM: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt", "/nix")
"""Where images keep programs and libraries."""
_HOME_COMMANDS: Final = (".local/bin", ".cargo/bin")
"""Below the home: the folders that installers put in front of PATH."""

_PROJECT_COMMANDS: Final = "node_modules/.bin"
"""Below the working directory: where npm and npx look before PATH."""


def under(path: str, folder: str) -> bool:
    """Is it the folder itself or below it?"""
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def name_of(path: str) -> str:
    return path.rpartition("/")[2]


def ancestors(path: str) -> list[str]:
    """Every folder above a path, nearest first, the root included."""
    found = []
    while path != "/":
        path = parent_of(path)
        found.append(path)
    return found


@dataclass(frozen=True)
class Ground:
    """The verifier's view of a box."""

    workdir: str
    home: str
    """Of the user the verifier runs as."""
    path: tuple[str, ...]
    """Where the verifier looks for commands, in order."""
    tests: str
    logs: str
    author: AuthorText
    keep: tuple[str, ...] = ()
    python_path: tuple[str, ...] = ()
    """The image's own PYTHONPATH."""
    library_path: tuple[str, ...] = ()
    """The image's own LD_LIBRARY_PATH."""
    user: str = "root"
    """The verifier's, by name."""
    provided: frozenset[str] = frozenset()
    """Files that the task itself laid into the box after it started: not the agent's."""

    def in_work(self, path: str) -> bool:
        """Below the task's working directory, where everything is the agent's to change."""
        if any(under(prefix, self.workdir) for prefix in SYSTEM):
            return False
        return under(path, self.workdir)

    def declared(self, path: str) -> bool:
        """Does the task say that the agent is meant to change it?"""
        return any(
            fnmatch.fnmatchcase(path, glob) or fnmatch.fnmatchcase(path, glob.rstrip("/") + "/*") for glob in self.keep
        )

    def _places(self, folders: tuple[str, ...]) -> list[str]:
        """With a home for `~`, and where the tests may stand for an entry that says no more."""
        absolute = [folder.replace("~", self.home, 1) for folder in folders if not folder.startswith(HERE)]
        here = [folder.removeprefix(HERE) for folder in folders if folder.startswith(HERE)]
        return [*absolute, *(f"{place}{rest}" for place in (self.workdir, *self.author.stood_in) for rest in here)]

    @cached_property
    def library_folders(self) -> tuple[str, ...]:
        """Where the tests let the loader look first."""
        return tuple(self._places(self.author.library_folders))

    @cached_property
    def command_folders(self) -> tuple[str, ...]:
        """In the order in which a command is found; what may come to stand in front is in front."""
        theirs = self._places(self.author.path_folders)
        local = (f"{self.workdir}/{_PROJECT_COMMANDS}",) if any(map(self.author.tests_use, ("npx", "npm"))) else ()
        own = (*theirs, *local, *(f"{self.home}/{folder}" for folder in _HOME_COMMANDS))
        return *(folder for folder in dict.fromkeys(own) if folder not in self.path), *self.path
