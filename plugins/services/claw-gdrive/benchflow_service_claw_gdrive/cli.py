"""The console script `claw-gdrive`."""

from __future__ import annotations

import sys

from benchflow_claw_kit.cli import run

from benchflow_service_claw_gdrive.service import SERVICE

__all__ = ["main"]


def main() -> None:
    sys.exit(run(SERVICE))
