"""Google's own kinds of files: what they are imported from and exported to."""

from __future__ import annotations

import csv
import html
import io
import re

from benchflow_claw_kit.errors import ApiError

from benchflow_service_claw_gdrive.office import READERS, WRITERS, BadOffice, to_epub, to_zipped_html

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
    **{
        name: [PREFIX + ("document" if name.endswith((".document", ".text")) else "spreadsheet")]
        for name in READERS
        if name != "application/rtf"
    },
}
_TO_TEXT = {"text/plain", "text/markdown"}


def is_editor(mime_type: str) -> bool:
    return mime_type.startswith(PREFIX)


def import_text(media: bytes, mime_type: str) -> str:
    if mime_type in READERS and media:
        try:
            return READERS[mime_type](media)
        except (BadOffice, RecursionError):
            raise ApiError(400, "Bad Request", "badRequest") from None
    text = media.decode("utf-8-sig", "replace")
    if mime_type == "text/tab-separated-values":
        return _separated(text, "\t", ",", "\n")
    if mime_type == "text/html":
        text = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"(?i)<br\s*/?>|</p>|</h\d>|</li>", "\n", text)))
    return text


def _separated(text: str, old: str, new: str, end: str) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=new, lineterminator=end).writerows(csv.reader(io.StringIO(text), delimiter=old))
    return out.getvalue()


def _page(text: str, kind: str) -> str:
    """The body of a page of HTML."""
    if not kind.endswith("spreadsheet"):
        return "<body>" + "".join(f"<p>{html.escape(line)}</p>" for line in text.splitlines()) + "</body>"
    rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in csv.reader(io.StringIO(text)))
    return "<body><table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table></body>"


def export(text: str, kind: str, mime_type: str) -> bytes | None:
    """None for a format that would need the real editors: slides and pictures."""
    if mime_type not in EXPORTS.get(kind, []):
        return None
    if mime_type in _TO_TEXT:
        mark = "\ufeff" if mime_type == "text/plain" and kind.endswith("document") else ""
        return (mark + text).encode()
    if mime_type in WRITERS:
        return WRITERS[mime_type](text)
    if mime_type in ("text/html", "application/zip", "application/epub+zip"):
        page = _page(text, kind)
        whole = f'<html><head><meta charset="utf-8"></head>{page}</html>'
        if mime_type == "application/zip":
            return to_zipped_html(whole)
        return to_epub(page) if mime_type.endswith("epub+zip") else whole.encode()
    if mime_type == "text/csv":
        return text.encode()
    if mime_type == "text/tab-separated-values":
        return _separated(text, ",", "\t", "\r\n").encode()
    if mime_type == "application/pdf":
        return _pdf(text)
    return None


def _pdf(text: str) -> bytes:
    """Pages of Courier: enough that a reader opens it and finds the text."""
    lines = [line[at : at + 90] for line in text.splitlines() for at in range(0, max(1, len(line)), 90)]
    pages = [lines[at : at + 60] for at in range(0, max(1, len(lines)), 60)]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
    ]
    for page in pages:
        shown = "".join("(" + re.sub(r"([\\()])", r"\\\1", line) + ") Tj T*\n" for line in page)
        stream = b"BT /F1 10 Tf 50 780 Td 12 TL\n" + shown.encode("cp1252", "replace") + b"ET"
        contents = f"{len(objects) + 2} 0 R"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 842] /Contents {contents}"
            " /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return out + head + table + tail
