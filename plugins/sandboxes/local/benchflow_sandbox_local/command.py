"""How the helper is called: the same interpreter, no site packages, nothing of the user's environment."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import benchflow_boxkit

__all__ = ["ENVIRONMENT", "HELPER", "helper_command"]

HELPER: Final = Path(__file__).parent / "helper"
_KIT: Final = Path(benchflow_boxkit.__file__).parents[1]
ENVIRONMENT: Final = {"LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"}


def helper_command(*arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(HELPER / "__main__.py"), str(_KIT), *arguments]
