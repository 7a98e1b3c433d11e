"""Video conferences: a request becomes a Meet link, the same one for the same request."""

from __future__ import annotations

from typing import Any

from benchflow_claw_kit import ApiError, Store

__all__ = ["conference"]


def conference(store: Store, data: dict[str, Any]) -> dict[str, Any]:
    request = data["createRequest"]
    if not request.get("requestId"):
        raise ApiError(400, "Missing conference create request id.", "required")
    if data.get("conferenceId") and data.get("createRequest", {}).get("status"):
        return data
    kind = request.get("conferenceSolutionKey", {}).get("type", "hangoutsMeet")
    if kind != "hangoutsMeet":
        raise ApiError(400, "Invalid conference type value.", "invalid")
    letters = store.new_id("meet", 10, "abcdefghijklmnopqrstuvwxyz")
    code = f"{letters[:3]}-{letters[3:7]}-{letters[7:]}"
    return {
        "createRequest": {
            "requestId": request["requestId"],
            "conferenceSolutionKey": {"type": kind},
            "status": {"statusCode": "success"},
        },
        "entryPoints": [
            {"entryPointType": "video", "uri": f"https://meet.google.com/{code}", "label": f"meet.google.com/{code}"}
        ],
        "conferenceSolution": {"key": {"type": kind}, "name": "Google Meet"},
        "conferenceId": code,
    }
