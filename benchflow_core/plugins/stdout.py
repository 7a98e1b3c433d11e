"""Keeps plugins from printing into a command's result."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

__all__ = ["quiet_stdout"]


@contextlib.contextmanager
def quiet_stdout() -> Iterator[io.StringIO]:
    """Catches what Python code prints; what is written to the file descriptor itself lands on stderr."""
    caught = io.StringIO()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    kept = None
    with contextlib.suppress(OSError):
        kept = os.dup(1)
        os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(caught):
            yield caught
    finally:
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)
