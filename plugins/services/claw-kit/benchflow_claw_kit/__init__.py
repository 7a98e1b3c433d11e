"""What the claw services share. See README.md for how a service is made."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchflow_claw_kit.api import Api, Call, Method
    from benchflow_claw_kit.auth import Principal
    from benchflow_claw_kit.contract import Contract, decode_base64url, load_contract
    from benchflow_claw_kit.errors import ApiError, bad_request, forbidden, invalid, not_found, required
    from benchflow_claw_kit.http import Request, Response, json_response
    from benchflow_claw_kit.paging import BadToken, read_token, write_token
    from benchflow_claw_kit.service import Service, Tool, View
    from benchflow_claw_kit.store import Row, Store, StoreError

_NAMES = {
    "api": "Api Call Method",
    "auth": "Principal",
    "contract": "Contract decode_base64url load_contract",
    "errors": "ApiError bad_request forbidden invalid not_found required",
    "http": "Request Response json_response",
    "paging": "BadToken read_token write_token",
    "service": "Service Tool View",
    "store": "Row Store StoreError",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

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


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: a plugin that only describes its service loads no server."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
