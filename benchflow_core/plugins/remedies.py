"""What to type to put a plugin right."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from benchflow_core.plugins.distributions import canonical

__all__ = ["guess_distribution", "install_command", "reinstall_command", "update_command"]


def _uv_tool() -> list[str] | None:
    """The requirements of the uv tool environment we run in, the tool first; `None` outside of one.

    What pip puts into such an environment is gone after the next `uv tool upgrade`.
    """
    receipt = Path(sys.prefix, "uv-receipt.toml")
    if not receipt.is_file():
        return None
    import tomllib

    try:
        listed = tomllib.loads(receipt.read_text(encoding="utf-8"))["tool"]["requirements"]
        return [item["name"] for item in listed] or ["benchflow"]
    except (OSError, ValueError, KeyError, TypeError):
        return ["benchflow"]


def install_command(distribution: str) -> str:
    """The command that adds a distribution to this environment and keeps what is there."""
    tool = _uv_tool()
    if tool is None:
        return f"pip install {distribution}"
    others = [name for name in tool[1:] if canonical(name) != canonical(distribution)]
    return " ".join([f"uv tool install {tool[0]}", *(f"--with {name}" for name in [*others, distribution])])


def update_command(*distributions: str) -> str:
    """The command that brings distributions up to date."""
    tool = _uv_tool()
    return f"pip install -U {' '.join(distributions)}" if tool is None else f"uv tool upgrade {tool[0]}"


def reinstall_command(distribution: str) -> str:
    """The command that brings back files or dependencies that are missing."""
    tool = _uv_tool()
    return f"pip install --force-reinstall {distribution}" if tool is None else f"uv tool upgrade --reinstall {tool[0]}"


def guess_distribution(kind: str, name: str) -> str | None:
    """By our naming convention; `None` where the name could not be part of one."""
    name = name.lower().replace("_", "-")
    return f"benchflow-{kind}-{name}" if re.fullmatch(r"[a-z0-9][a-z0-9.-]*[a-z0-9]|[a-z0-9]", name) else None
