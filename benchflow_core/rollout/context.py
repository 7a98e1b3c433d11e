"""What a task's image is built from."""

from __future__ import annotations

from pathlib import Path

from benchflow_core.contracts.tasks import TaskEnvironment
from benchflow_core.errors import ConfigurationError

__all__ = ["context_of"]


def context_of(env: TaskEnvironment, root: str | None) -> Path | None:
    """What the Dockerfile copies from. A root of the user's own must hold the task."""
    if root is None or env.dockerfile is None:
        return env.context
    folder = Path(root).expanduser()
    if not env.dockerfile.resolve().is_relative_to(folder.resolve()):
        raise ConfigurationError(
            f"context root {root} does not hold {env.dockerfile}.",
            remedy="Name a folder above the task with --context-root.",
        )
    return folder
