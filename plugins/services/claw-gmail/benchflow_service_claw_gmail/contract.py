"""The API's facts and the table its methods register in."""

from __future__ import annotations

from pathlib import Path

from benchflow_claw_kit import Api, load_contract

__all__ = ["api"]

api = Api(load_contract(Path(__file__).with_name("contract.json"), "modern"))
