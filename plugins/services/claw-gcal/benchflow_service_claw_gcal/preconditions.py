"""If-Match: who changes what they have not seen is told so."""

from __future__ import annotations

from benchflow_claw_kit import ApiError, Call

__all__ = ["check_match"]


def check_match(call: Call, current: str) -> None:
    wanted = call.request.header("if-match").strip()
    if not wanted or wanted == "*" or current in [part.strip() for part in wanted.split(",")]:
        return
    raise ApiError(412, "Precondition Failed", "conditionNotMet", location="If-Match", location_type="header")
