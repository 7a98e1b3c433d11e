"""What every image of a vendor's gets added: the supervisor, and a Python that runs it."""

from __future__ import annotations

import io
import secrets
import shutil
import tarfile
from pathlib import Path
from typing import Final

from benchflow_boxkit.inside.supervisor import HOME
from benchflow_boxkit.interpreter import Interpreter

__all__ = ["ATTACH", "CLEAN", "HOME", "INSTALL", "PYTHON", "RECORD", "identity", "tree"]

_INTERPRETER: Final = Interpreter(HOME, ("benchflow_boxkit",))
PYTHON: Final = _INTERPRETER.python
ATTACH: Final = _INTERPRETER.command("benchflow_boxkit.inside.attach")
"""The command that a plugin has the vendor run in the box for a connection: its standard streams are the connection."""
RECORD: Final = _INTERPRETER.command("benchflow_boxkit.inside.record")
"""Run while an image is built, as the image's user: writes down its variables, directory and user."""
CLEAN: Final = (*RECORD, "clean")
"""Run while an image is built, as whoever: removes our own folder of the context from wherever it was copied to."""
INSTALL: Final = _INTERPRETER.command("benchflow_boxkit.inside.install")
"""Run while an image is built, as root, with the description of a layer."""


def identity() -> str:
    return _INTERPRETER.identity()


def tree(cache: Path) -> Path:
    """A folder with everything that goes below `HOME`; made once per host."""
    folder = cache / f"boxkit-{identity()}"
    if not folder.is_dir():
        other = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
        other.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(_INTERPRETER.archive())) as tar:
            # Python before 3.11.4 knows no filters; this archive is our own.
            tar.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)
            tar.extractall(other)
        try:
            other.rename(folder)
        except OSError:  # another process was first
            shutil.rmtree(other)
    return folder
