"""What a Dockerfile asks of BuildKit, which the builder of an engine's API does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchflow_boxkit.dockerfile import Dockerfile

__all__ = ["needs"]

_FLAGS: Final = {
    "RUN": {"mount": "RUN --mount"} | dict.fromkeys(("network", "security"), "RUN --network or --security"),
    "COPY": dict.fromkeys(("chmod", "link", "parents", "exclude"), "COPY --chmod or --link"),
}


def needs(dockerfile: Dockerfile) -> list[str]:
    """Name lines that need BuildKit. A syntax line alone is only a wish: other builders go on without it."""
    return [f"{dockerfile.path}:{line}: {what}" for line, what in _needs(dockerfile)]


def _needs(dockerfile: Dockerfile) -> Iterator[tuple[int, str]]:
    for one in dockerfile.instructions:
        known = _FLAGS.get("COPY" if one.name == "ADD" else one.name, {})
        for flag, _ in one.flags:
            if flag in known:
                yield one.line, known[flag]
        if one.heredocs:
            yield one.line, "a heredoc (<<EOF)"
