"""A program that a box is asked to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import ConfigurationError

__all__ = ["Command", "unknown_user"]


@dataclass(frozen=True, slots=True)
class Command:
    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    user: str | None = None
    view: Mapping[str, Any] | None = None
    """What the program sees of the box, as a supervisor that can limit it is told."""

    def check(self) -> None:
        if not self.argv or not self.argv[0]:
            raise ConfigurationError("A command needs at least the name of a program.")
        texts = [*self.argv, self.cwd, *(f"{name}{value}" for name, value in self.env.items())]
        if any("\0" in text for text in texts) or any("=" in name or not name for name in self.env):
            raise ConfigurationError("A command cannot hold a NUL character, nor a variable's name '=' or nothing.")
        if not self.cwd.startswith("/"):
            raise ConfigurationError(f"The working directory {self.cwd!r} is not an absolute path.")


def unknown_user(user: str | None) -> ConfigurationError:
    return ConfigurationError(f"There is no user {user!r} in the box.", remedy="Name one of its users, or a number.")
