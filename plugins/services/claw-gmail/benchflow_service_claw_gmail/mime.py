"""RFC 822 in and out. Whatever bytes arrive, something sensible comes out: the parser mends, nothing raises."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, mktime_tz, parsedate_tz
from inspect import signature
from typing import Any

__all__ = ["MimePart", "addresses", "date_ms", "header", "parse", "part_json", "search_text", "snippet_of"]

MAX_DEPTH = 30
_LENIENT: Any = {"strict": False} if "strict" in signature(getaddresses).parameters else {}
"""Newer Pythons answer nothing at all for a list with one bad address, unless told."""


@dataclass
class MimePart:
    part_id: str
    mime_type: str
    filename: str
    headers: list[tuple[str, str]]
    content: bytes = b""
    """Decoded; text as UTF-8."""
    parts: list[MimePart] = field(default_factory=list)
    attached: bool = False
    """Fetched by its own call, not shown inline."""

    def walk(self) -> Iterator[MimePart]:
        yield self
        for part in self.parts:
            yield from part.walk()

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")


def parse(raw: bytes) -> MimePart:
    return _part(message_from_bytes(raw, policy=policy.compat32), "", 0)


def _part(message: Message, part_id: str, depth: int) -> MimePart:
    mime_type = message.get_content_type()
    headers = [(_clean(name), header(value)) for name, value in message.raw_items()]
    part = MimePart(part_id, mime_type, _filename(message), headers)
    payload = message.get_payload()
    if isinstance(payload, list) and depth < MAX_DEPTH:
        if mime_type == "message/rfc822":
            part.content = payload[0].as_bytes() if payload and isinstance(payload[0], Message) else b""
            part.attached = True
            if not part.filename:
                part.filename = "noname.eml"
        children = [one for one in payload if isinstance(one, Message)]
        part.parts = [_part(one, f"{part_id}.{i}" if part_id else str(i), depth + 1) for i, one in enumerate(children)]
        return part
    part.content = _content(message, mime_type)
    part.attached = bool(part.filename) or not mime_type.startswith(("text/", "multipart/"))
    return part


def _content(message: Message, mime_type: str) -> bytes:
    try:
        payload = message.get_payload(decode=True)
    except (ValueError, LookupError, AssertionError):
        payload = None
    data = payload if isinstance(payload, bytes) else str(message.get_payload() or "").encode("utf-8", "replace")
    if not mime_type.startswith("text/"):
        return data
    return _text(data, _charset(message)).encode("utf-8", "replace")


def _charset(message: Message) -> str:
    try:
        return str(message.get_content_charset() or "utf-8")
    except (ValueError, LookupError, TypeError):
        return "utf-8"


def _text(data: bytes, charset: str) -> str:
    for name in (charset, "utf-8"):
        try:
            return data.decode(name)
        except (LookupError, ValueError):
            continue
    return data.decode("latin-1")


def _filename(message: Message) -> str:
    try:
        return header(message.get_filename() or "")
    except (ValueError, LookupError, TypeError):
        return ""


def header(value: Any) -> str:
    """A header as people read it: unfolded, encoded words decoded."""
    text = re.sub(r"\r?\n[ \t]*", " ", str(value)).strip()
    if "\udc80" <= max(text, default="") <= "\udcff":
        text = text.encode("ascii", "surrogateescape").decode("utf-8", "replace")
    if "=?" not in text:
        return _clean(text)
    try:
        pieces = decode_header(text)
    except (HeaderParseError, ValueError, LookupError):
        return _clean(text)
    return _clean("".join(_text(p, c or "ascii") if isinstance(p, bytes) else p for p, c in pieces))


def _clean(text: str) -> str:
    return text.replace("\x00", "").replace("\r", " ").replace("\n", " ")


def addresses(*values: str) -> list[tuple[str, str]]:
    """(name, address in lower case) of each that has an @."""
    found = getaddresses([value for value in values if value], **_LENIENT)
    return [(name, address.strip().lower()) for name, address in found if "@" in address.strip("@ ")]


def date_ms(value: str) -> int | None:
    try:
        parsed = parsedate_tz(value)
        return int(mktime_tz(parsed) * 1000) if parsed else None
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def search_text(root: MimePart) -> str:
    """The words of a message's text parts; HTML only where there is no plain text."""
    plain = [p for p in root.walk() if p.mime_type == "text/plain" and not p.attached]
    chosen = plain or [p for p in root.walk() if p.mime_type == "text/html" and not p.attached]
    texts = [p.content.decode("utf-8", "replace") for p in chosen]
    return "\n".join(
        _stripped(text) if p.mime_type == "text/html" else text for p, text in zip(chosen, texts, strict=True)
    )


def _stripped(text: str) -> str:
    bare = re.sub(r"(?is)<(script|style)\b.*?</\1\s*>", " ", text)
    return html.unescape(re.sub(r"<[^<>]*>", " ", bare))


def snippet_of(text: str) -> str:
    """The beginning, on one line, with HTML's characters escaped as the real API does."""
    flat = " ".join(text[:2000].split())
    short = flat if len(flat) <= 200 else flat[:200].rsplit(" ", 1)[0]
    return html.escape(short, quote=True).replace("&#x27;", "&#39;")


def part_json(
    part: MimePart, attachment_id: Any, with_body: bool = True, names: frozenset[str] | None = None
) -> dict[str, Any]:
    """A MessagePart. `attachment_id(part)` names what has to be fetched; `names` limits the headers."""
    shown = [{"name": n, "value": v} for n, v in part.headers if names is None or n.lower() in names]
    if not with_body:
        return {"mimeType": part.mime_type, **({"headers": shown} if shown else {})}
    body: dict[str, Any] = {"size": len(part.content)}
    if part.parts and not part.attached:
        body = {"size": 0}
    elif part.attached:
        body["attachmentId"] = attachment_id(part)
    elif part.content:
        body["data"] = base64.urlsafe_b64encode(part.content).decode()
    value: dict[str, Any] = {
        "partId": part.part_id,
        "mimeType": part.mime_type,
        "filename": part.filename,
        "headers": shown,
        "body": body,
    }
    if part.parts:
        value["parts"] = [part_json(one, attachment_id) for one in part.parts]
    return value
