"""Multipart bodies, cut by hand: the standard parser would touch line ends, and what is inside may be anything."""

from __future__ import annotations

import re

from benchflow_claw_kit.errors import ApiError

__all__ = ["boundary_of", "head_and_body", "split_parts"]


def boundary_of(content_type: str) -> bytes:
    found = re.search(r'boundary="([^"]{1,200})"|boundary=([^;\s]{1,200})', content_type, re.IGNORECASE)
    if not found:
        raise ApiError(400, "Missing multipart boundary", "badContent")
    return (found.group(1) or found.group(2)).encode()


def split_parts(body: bytes, boundary: bytes) -> list[bytes]:
    """The bodies between the boundaries, without the line end that belongs to the next boundary."""
    mark = b"--" + boundary
    pieces = (b"\n" + body).split(b"\n" + mark)
    if len(pieces) < 2:
        raise ApiError(400, "Malformed multipart body.", "badRequest")
    parts: list[bytes] = []
    for piece in pieces[1:]:
        if piece.startswith(b"--"):
            return parts
        _, _, content = piece.partition(b"\n")
        parts.append(content.removesuffix(b"\r"))
    raise ApiError(400, "Malformed multipart body.", "badRequest")


def head_and_body(part: bytes) -> tuple[dict[str, str], bytes]:
    """Header lines up to the first empty line (names in lower case), and what follows."""
    if part.startswith(b"\r\n") or part.startswith(b"\n"):
        return {}, part.split(b"\n", 1)[1]
    found = re.search(rb"\r?\n\r?\n", part)
    head, body = (part[: found.start()], part[found.end() :]) if found else (part, b"")
    headers: dict[str, str] = {}
    unfolded = re.sub(r"\n[ \t]+", " ", head.decode("latin-1").replace("\r\n", "\n"))
    for line in unfolded.split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return headers, body
