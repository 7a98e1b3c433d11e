"""Who asks, and with which scopes. Any bearer token is a user; what a token says about itself is believed."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass

from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.http import Request
from benchflow_claw_kit.store import Store

__all__ = ["Principal", "bearer", "check_scopes", "identify"]

PREFIX = "https://www.googleapis.com/auth/"
_LOGIN = "See https://developers.google.com/identity/sign-in/web/devconsole-project."


@dataclass(frozen=True, slots=True)
class Principal:
    """`user` is None for a token that names nobody, and for none: the service's primary user is meant."""

    user: str | None = None
    scopes: frozenset[str] | None = None
    """None: not said, so everything is allowed."""
    anonymous: bool = True


def bearer(request: Request) -> str | None:
    kind, _, token = request.header("authorization").partition(" ")
    if kind.lower() == "bearer" and token.strip():
        return token.strip()
    return request.first("access_token") or request.first("oauth_token")


def identify(request: Request, store: Store, require: bool = False) -> Principal:
    """A token: made by `claw-X token`, a JWT with `email` and `scope`, `EMAIL`, `EMAIL;scope scope`, or opaque."""
    token = bearer(request)
    if token is None:
        if require or request.header("authorization"):
            raise unauthenticated(missing=not request.header("authorization"))
        return Principal()
    row = store.one("SELECT user, scopes, expires FROM _tokens WHERE token = ?", token)
    if row:
        if row["expires"] is not None and row["expires"] < time.time():
            raise unauthenticated()
        return Principal(row["user"], _scopes(row["scopes"]), False)
    return _described(token)


def _described(token: str) -> Principal:
    claims = _claims(token)
    if claims is not None:
        expires = claims.get("exp")
        if isinstance(expires, int | float) and expires < time.time():
            raise unauthenticated()
        scope = claims.get("scope")
        user = claims.get("email") or claims.get("sub")
        return Principal(str(user) if user else None, _scopes(scope if isinstance(scope, str) else None), False)
    user, mark, scope = token.partition(";")
    if "@" in user and not user.startswith("@"):
        return Principal(user, _scopes(scope) if mark else None, False)
    return Principal(None, None, False)


def _claims(token: str) -> dict[str, object] | None:
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        value = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _scopes(text: str | None) -> frozenset[str] | None:
    if text is None:
        return None
    return frozenset(name if "://" in name else PREFIX + name for name in text.replace(",", " ").split() if name)


def check_scopes(principal: Principal, wanted: Iterable[str]) -> None:
    """403 as the real one words it, when the token says which scopes it has and none of them will do."""
    if principal.scopes is None:
        return
    names = [name if "://" in name else PREFIX + name for name in wanted]
    if not names or principal.scopes.intersection(names):
        return
    raise ApiError(
        403,
        "Request had insufficient authentication scopes.",
        "insufficientPermissions",
        details=[
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
                "domain": "googleapis.com",
            }
        ],
        headers={
            "WWW-Authenticate": 'Bearer realm="https://accounts.google.com/", error="insufficient_scope", '
            f'scope="{" ".join(names)}"'
        },
    )


def unauthenticated(missing: bool = False) -> ApiError:
    what = (
        "Request is missing required authentication credential. "
        if missing
        else "Request had invalid authentication credentials. "
    )
    return ApiError(
        401,
        f"{what}Expected OAuth 2 access token, login cookie or other valid authentication credential. {_LOGIN}",
        "required" if missing else "authError",
        location="Authorization",
        location_type="header",
        headers={"WWW-Authenticate": 'Bearer realm="https://accounts.google.com/"'},
    )
