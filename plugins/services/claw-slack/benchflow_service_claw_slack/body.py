"""The arguments of a call, wherever Slack allows them: query, form, multipart, JSON."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs

from benchflow_claw_kit.http import Request, decode_json
from benchflow_claw_kit.parts import boundary_of, head_and_body, split_parts

from benchflow_service_claw_slack.call import SlackError

__all__ = ["Arguments", "Files", "arguments"]

Arguments = dict[str, Any]
Files = dict[str, tuple[str, bytes]]


def arguments(request: Request) -> tuple[Arguments, Files]:
    found: Arguments = {name: values[-1] for name, values in request.query.items()}
    files: Files = {}
    kind = request.content_type
    if not request.body:
        return found, files
    if kind in ("application/json", "text/json"):
        found |= _json(request.body)
    elif kind == "multipart/form-data":
        fields, files = _multipart(request)
        found |= fields
    elif kind in ("application/x-www-form-urlencoded", ""):
        found |= _form(request.body)
    elif request.method == "POST":
        raise SlackError("invalid_post_type")
    return found, files


def _json(body: bytes) -> Arguments:
    try:
        value = decode_json(body)
    except ValueError:
        raise SlackError("invalid_json") from None
    if not isinstance(value, dict):
        raise SlackError("json_not_object")
    return value


def _form(body: bytes) -> Arguments:
    try:
        text = body.decode("ascii")
        values = parse_qs(text, keep_blank_values=True, max_num_fields=1000, errors="replace")
    except ValueError:
        raise SlackError("invalid_form_data") from None
    return {name: value[-1] for name, value in values.items()}


def _multipart(request: Request) -> tuple[Arguments, Files]:
    fields: Arguments = {}
    files: Files = {}
    try:
        parts = split_parts(request.body, boundary_of(request.header("content-type")))
    except Exception:
        raise SlackError("invalid_form_data") from None
    for part in parts:
        headers, content = head_and_body(part)
        disposition = headers.get("content-disposition", "")
        name = re.search(r'\bname="([^"]*)"', disposition)
        if not name:
            continue
        filename = re.search(r'\bfilename="([^"]*)"', disposition)
        if filename:
            files[name.group(1)] = (filename.group(1), content)
        else:
            fields[name.group(1)] = content.decode("utf-8", "replace")
    return fields, files
