"""Verification as its own, repeatable step: isolation policies, the captured state, the reward read once."""

from __future__ import annotations

from benchflow_core.verify.policy import policies
from benchflow_core.verify.request import Verdict, VerifyRequest
from benchflow_core.verify.verification import soft_verify, verify

__all__ = ["Verdict", "VerifyRequest", "policies", "soft_verify", "verify"]
