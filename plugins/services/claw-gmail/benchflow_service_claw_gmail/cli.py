"""The console script `claw-gmail`."""

from __future__ import annotations

import sys


def main() -> None:
    from benchflow_claw_kit.cli import run

    from benchflow_service_claw_gmail.service import SERVICE

    sys.exit(run(SERVICE))
