"""Google's own kinds of files: what they are imported from and exported to."""

from __future__ import annotations

import csv
import html
import io
import re

__all__ = ["EXPORTS", "IMPORTS", "PREFIX", "export", "import_text", "is_editor"]

PREFIX = "application/vnd.google-apps."
_OFFICE = "application/vnd.openxmlformats-officedocument."
_TEXTS = ["text/plain", "text/html", "text/markdown", "application/rtf", "application/pdf"]
EXPORTS: dict[str, list[str]] = {
    PREFIX + "document": [
        *_TEXTS,
        "application/epub+zip",
        "application/zip",
        "application/vnd.oasis.opendocument.text",
        _OFFICE + "wordprocessingml.document",
    ],
    PREFIX + "spreadsheet": [
        "text/csv",
        "text/tab-separated-values",
        "application/pdf",
        "application/zip",
        "application/vnd.oasis.opendocument.spreadsheet",
        _OFFICE + "spreadsheetml.sheet",
    ],
    PREFIX + "presentation": [
        "text/plain",
        "application/pdf",
        "application/vnd.oasis.opendocument.presentation",
        _OFFICE + "presentationml.presentation",
    ],
    PREFIX + "drawing": ["image/png", "image/jpeg", "image/svg+xml", "application/pdf"],
    PREFIX + "script": [PREFIX + "script+json"],
    PREFIX + "form": ["application/zip"],
}
IMPORTS: dict[str, list[str]] = {
    "text/plain": [PREFIX + "document"],
    "text/html": [PREFIX + "document"],
    "text/markdown": [PREFIX + "document"],
    "application/rtf": [PREFIX + "document"],
    "text/csv": [PREFIX + "spreadsheet"],
    "text/tab-separated-values": [PREFIX + "spreadsheet"],
    "application/json": [PREFIX + "document"],
}
_TO_TEXT = {"text/plain", "text/markdown", "application/rtf"}


def is_editor(mime_type: str) -> bool:
    return mime_type.startswith(PREFIX)


def import_text(media: bytes, mime_type: str) -> str:
    text = media.decode("utf-8-sig", "replace")
    if mime_type == "text/html":
        text = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"(?i)<br\s*/?>|</p>|</h\d>|</li>", "\n", text)))
    return text


def export(text: str, kind: str, mime_type: str) -> bytes | None:
    """None for a format that would need the real editors (Office, OpenDocument, images)."""
    if mime_type not in EXPORTS.get(kind, []):
        return None
    if mime_type in _TO_TEXT:
        mark = "\ufeff" if mime_type == "text/plain" and kind.endswith("document") else ""
        return (mark + text).encode()
    if mime_type == "text/html":
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in text.splitlines())
        return f'<html><head><meta charset="utf-8"></head><body>{lines}</body></html>'.encode()
    if mime_type == "text/csv":
        return text.encode()
    if mime_type == "text/tab-separated-values":
        out = io.StringIO()
        csv.writer(out, delimiter="\t", lineterminator="\r\n").writerows(csv.reader(io.StringIO(text)))
        return out.getvalue().encode()
    if mime_type == "application/pdf":
        return _pdf(text)
    return None


def _pdf(text: str) -> bytes:
    """One page of Courier: enough that a reader opens it and finds the text."""
    lines = [line[:90] for line in text.splitlines()[:60]]
    latin = [line.encode("latin-1", "replace").decode("latin-1") for line in lines]
    shown = "".join("(" + re.sub(r"([\\()])", r"\\\1", line) + ") Tj T*\n" for line in latin)
    stream = f"BT /F1 10 Tf 50 780 Td 12 TL\n{shown}ET".encode("latin-1")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return out + head + table + tail
