"""Verification as its own, repeatable step: isolation policies, the verifier's box, the reward read once."""

from __future__ import annotations

from benchflow_core.contracts.isolation import Verdict
from benchflow_core.verify.policy import choose, policies
from benchflow_core.verify.request import VerifyRequest
from benchflow_core.verify.verification import soft_verify, verify

__all__ = ["Verdict", "VerifyRequest", "choose", "policies", "soft_verify", "verify"]
