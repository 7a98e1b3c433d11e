"""The table of methods; the modules beside fill it."""

from __future__ import annotations

from pathlib import Path

from benchflow_claw_kit.api import Api
from benchflow_claw_kit.contract import load_contract

__all__ = ["api"]

api = Api(load_contract(Path(__file__).with_name("contract.json"), "legacy"))
