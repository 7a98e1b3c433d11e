"""What a Dockerfile asks of BuildKit, which the builder of an engine's API does not have."""

from __future__ import annotations

import re
from typing import Final

from benchflow_boxkit.dockerfile import Recipe

__all__ = ["needs"]

_HEREDOC: Final = re.compile(r"^\s*(RUN|COPY|ADD)\b.*<<-?\s*[\"']?[A-Za-z_]", re.I)
_BUILDKIT: Final = (
    (re.compile(r"^\s*RUN\s+.*--mount=", re.I), "RUN --mount"),
    (re.compile(r"^\s*(COPY|ADD)\s+.*--(chmod|link|parents|exclude)\b", re.I), "COPY --chmod or --link"),
    (re.compile(r"^\s*RUN\s+.*--(network|security)=", re.I), "RUN --network or --security"),
    (_HEREDOC, "a heredoc (<<EOF)"),
)


def needs(recipe: Recipe) -> list[str]:
    """Line and what it is. A syntax line alone is only a wish: builders that do not know it go on without."""
    rows = enumerate(recipe.text.splitlines(), 1)
    return [f"{recipe.path}:{n}: {what}" for n, row in rows for pattern, what in _BUILDKIT if pattern.match(row)]
