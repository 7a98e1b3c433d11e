"""Its settings: keys of job files, options of `bench eval create` and keywords in Python."""

from __future__ import annotations

from typing import Annotated

from benchflow_core.contracts import Option, Settings


class TextSettings(Settings):
    """What agents are given to read."""

    {{identifier}}: Annotated[str | None, Option(metavar="FILE", path="any")] = None
    """A text that agents find in their box."""
