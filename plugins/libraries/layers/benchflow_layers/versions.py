"""What is installed is started once and asked for its version, before anybody relies on it."""

from __future__ import annotations

from typing import Final

__all__ = ["version_check"]

_SCRIPT: Final = """wanted=$1; shift
said=$("$@" 2>&1 </dev/null) || { echo "installed, but it does not start: $* ended with $?: $said" >&2; exit 1; }
case "$said" in *"$wanted"*) exit 0 ;; esac
echo "installed, but $* is not version $wanted: it says '$said'" >&2; exit 1"""


def version_check(version: str, *program: str) -> tuple[str, ...]:
    """Return a command of a layer that fails unless `program` (argv) starts and prints `version`.

    A package manager can succeed and leave a program that does not run: an optional package with the native part is
    skipped in silence where it cannot be had. Found here, that is a failed install; found later, a failing agent.
    """
    return ("sh", "-c", _SCRIPT, "sh", version, *program)
