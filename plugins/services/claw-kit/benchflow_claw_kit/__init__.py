"""What the claw services share. See README.md for how a service is made."""

from __future__ import annotations

from benchflow_claw_kit.api import Api, Call, Method
from benchflow_claw_kit.auth import Principal
from benchflow_claw_kit.contract import Contract, decode_base64url, load_contract
from benchflow_claw_kit.errors import ApiError, bad_request, forbidden, invalid, not_found, required
from benchflow_claw_kit.http import Request, Response, json_response
from benchflow_claw_kit.paging import BadToken, read_token, write_token
from benchflow_claw_kit.service import Service, Tool, View
from benchflow_claw_kit.store import Row, Store, StoreError

__all__ = [
    "Api",
    "ApiError",
    "BadToken",
    "Call",
    "Contract",
    "Method",
    "Principal",
    "Request",
    "Response",
    "Row",
    "Service",
    "Store",
    "StoreError",
    "Tool",
    "View",
    "bad_request",
    "decode_base64url",
    "forbidden",
    "invalid",
    "json_response",
    "load_contract",
    "not_found",
    "read_token",
    "required",
    "write_token",
]
