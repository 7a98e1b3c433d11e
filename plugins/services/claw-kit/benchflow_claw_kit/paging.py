"""Page and sync tokens: opaque to the client, checked when they come back."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import Any

__all__ = ["BadToken", "read_token", "write_token"]


class BadToken(ValueError):
    """Not a token of ours, or made for another question."""


def write_token(secret: str, value: dict[str, Any], question: Any = None) -> str:
    """`question` is what the token belongs to (the query of a list): another question refuses it."""
    payload = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    return base64.urlsafe_b64encode(_sign(secret, payload, question) + payload).decode().rstrip("=")


def read_token(secret: str, token: str, question: Any = None) -> dict[str, Any]:
    try:
        raw = base64.urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
    except (ValueError, binascii.Error):
        raise BadToken(token) from None
    mac, payload = raw[:8], raw[8:]
    if len(mac) < 8 or not hmac.compare_digest(mac, _sign(secret, payload, question)):
        raise BadToken(token)
    value: dict[str, Any] = json.loads(payload)
    return value


def _sign(secret: str, payload: bytes, question: Any) -> bytes:
    asked = json.dumps(question, sort_keys=True, default=str).encode()
    return hmac.new(secret.encode(), payload + b"\0" + asked, hashlib.sha256).digest()[:8]
