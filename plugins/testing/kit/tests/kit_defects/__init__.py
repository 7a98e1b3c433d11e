"""Sandboxes with one defect each: every conformance test must fail on at least one of them.

Used by `test_sandbox_defects.py` and by the module it writes for a pytest run of its own, never by the kit.
"""

from __future__ import annotations

import importlib

from kit_defects.wrap import ALL, Defect

for _module in ("commands", "endings", "transfers", "lifecycle", "walls"):
    importlib.import_module(f"kit_defects.{_module}")

DEFECTS: dict[str, Defect] = {defect.name: defect for defect in ALL}
