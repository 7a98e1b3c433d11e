"""Office and OpenDocument files: as much of them as text and cells need, written so that real readers open them."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Mapping
from html import escape
from xml.etree import ElementTree

__all__ = ["READERS", "WRITERS", "BadOffice", "to_epub", "to_zipped_html"]

OFFICE = "application/vnd.openxmlformats-officedocument."
ODF = "application/vnd.oasis.opendocument."
DOCX, XLSX = OFFICE + "wordprocessingml.document", OFFICE + "spreadsheetml.sheet"
ODT, ODS = ODF + "text", ODF + "spreadsheet"
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_NAMES = {
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "x": "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
}
_LARGEST = 32 * 1024 * 1024
"""Bytes that one part of a file may unpack to."""
_MOST_CELLS = 200_000
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class BadOffice(ValueError):
    """What was uploaded is not what it says it is."""


def _shown(text: str) -> str:
    return escape(_NOT_XML.sub("", text), quote=False)


def _zip(parts: Mapping[str, str], first: str = "") -> bytes:
    """`first`: a media type that stands unpacked before everything else, as OpenDocument wants it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        if first:
            archive.writestr(zipfile.ZipInfo("mimetype"), first)
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name), text.encode(), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _part(media: bytes, name: str) -> ElementTree.Element:
    try:
        with zipfile.ZipFile(io.BytesIO(media)) as archive:
            if archive.getinfo(name).file_size > _LARGEST:
                raise BadOffice(f"{name} is too large")
            data = archive.read(name)
        if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
            raise BadOffice(f"{name} declares entities")
        return ElementTree.fromstring(data)
    except (KeyError, zipfile.BadZipFile, ElementTree.ParseError, RuntimeError, EOFError, NotImplementedError) as error:
        raise BadOffice(str(error)) from None


def _tag(name: str) -> str:
    space, _, local = name.partition(":")
    return f"{{{_NAMES[space]}}}{local}"


# -- Office


def _office(kind: str, main: str, parts: Mapping[str, str]) -> bytes:
    types = "".join(f'<Override PartName="/{name}" ContentType="{what}+xml"/>' for name, what in _types(kind).items())
    usual = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    usual += '<Default Extension="xml" ContentType="application/xml"/>'
    return _zip(
        {
            "[Content_Types].xml": f'{_XML}<Types xmlns="{_PACKAGE}/content-types">{usual}{types}</Types>',
            "_rels/.rels": _relations({"rId1": ("officeDocument", main)}),
            **parts,
        }
    )


def _types(kind: str) -> dict[str, str]:
    if kind == DOCX:
        return {"word/document.xml": f"{OFFICE}wordprocessingml.document.main"}
    sheet = f"{OFFICE}spreadsheetml"
    return {"xl/workbook.xml": f"{sheet}.sheet.main", "xl/worksheets/sheet1.xml": f"{sheet}.worksheet"}


def _relations(targets: Mapping[str, tuple[str, str]]) -> str:
    rows = "".join(
        f'<Relationship Id="{id}" Type="{_RELATION}/{kind}" Target="{target}"/>'
        for id, (kind, target) in targets.items()
    )
    return f'{_XML}<Relationships xmlns="{_PACKAGE}/relationships">{rows}</Relationships>'


def to_docx(text: str) -> bytes:
    lines = "".join(f"<w:p>{_runs(line)}</w:p>" for line in text.split("\n"))
    page = '<w:sectPr><w:pgSz w:w="12240" w:h="15840"/></w:sectPr>'
    body = f'{_XML}<w:document xmlns:w="{_NAMES["w"]}"><w:body>{lines}{page}</w:body></w:document>'
    return _office(DOCX, "word/document.xml", {"word/document.xml": body})


def _runs(line: str) -> str:
    pieces = [f'<w:t xml:space="preserve">{_shown(piece)}</w:t>' for piece in line.split("\t")]
    return f"<w:r>{'<w:tab/>'.join(pieces)}</w:r>" if line else ""


def from_docx(media: bytes) -> str:
    lines = []
    for paragraph in _part(media, "word/document.xml").iter(_tag("w:p")):
        words = {_tag("w:tab"): "\t", _tag("w:br"): "\n", _tag("w:cr"): "\n"}
        inside = (node.text or "" if node.tag == _tag("w:t") else words.get(node.tag, "") for node in _own(paragraph))
        lines.append("".join(inside))
    return "\n".join(lines)


def _own(paragraph: ElementTree.Element) -> list[ElementTree.Element]:
    """What is in a paragraph, but not the tabulators of its style."""
    style = {id(node) for part in paragraph.iter(_tag("w:pPr")) for node in part.iter()}
    return [node for node in paragraph.iter() if id(node) not in style]


def to_xlsx(text: str) -> bytes:
    rows = []
    for row, cells in enumerate(csv.reader(io.StringIO(text)), 1):
        rows.append(f'<row r="{row}">{"".join(_cell(row, at, value) for at, value in enumerate(cells))}</row>')
    space = f'xmlns="{_NAMES["x"]}"'
    sheet = f"{_XML}<worksheet {space}><sheetData>{''.join(rows)}</sheetData></worksheet>"
    named = '<sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets>'
    book = f'{_XML}<workbook {space} xmlns:r="{_RELATION}">{named}</workbook>'
    relations = _relations({"rId1": ("worksheet", "worksheets/sheet1.xml")})
    parts = {"xl/workbook.xml": book, "xl/_rels/workbook.xml.rels": relations, "xl/worksheets/sheet1.xml": sheet}
    return _office(XLSX, "xl/workbook.xml", parts)


def _cell(row: int, at: int, value: str) -> str:
    place = f"{_column(at)}{row}"
    if re.fullmatch(r"-?(0|[1-9]\d{0,14})(\.\d{1,12})?", value):
        return f'<c r="{place}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{_shown(value)}</t></is></c>' if value else ""


def _column(at: int) -> str:
    name = ""
    while at >= 0:
        at, last = divmod(at, 26)
        name, at = chr(65 + last) + name, at - 1
    return name


def _number(place: str) -> int:
    """Of a column: A is 0."""
    found = 0
    for letter in re.match("[A-Z]{0,3}", place).group():  # type: ignore[union-attr]
        found = found * 26 + ord(letter) - 64
    return found - 1


def from_xlsx(media: bytes) -> str:
    """The first sheet, as values."""
    try:
        shared = ["".join(t.text or "" for t in si.iter(_tag("x:t"))) for si in _part(media, "xl/sharedStrings.xml")]
    except BadOffice:
        shared = []
    rows: list[list[str]] = []
    for row in _part(media, "xl/worksheets/sheet1.xml").iter(_tag("x:row")):
        cells: dict[int, str] = {}
        for cell in row.iter(_tag("x:c")):
            at = _number(cell.get("r", ""))
            cells[at if at >= 0 else len(cells)] = _value(cell, shared)
        rows.append([cells.get(at, "") for at in range(max(cells, default=-1) + 1)])
    return _csv(rows)


def _value(cell: ElementTree.Element, shared: list[str]) -> str:
    if cell.get("t") == "inlineStr":
        return "".join(node.text or "" for node in cell.iter(_tag("x:t")))
    value = cell.findtext(_tag("x:v")) or ""
    if cell.get("t") == "s" and value.isdigit():
        return shared[int(value)] if int(value) < len(shared) else ""
    return {"0": "FALSE", "1": "TRUE"}.get(value, value) if cell.get("t") == "b" else value


def _csv(rows: list[list[str]]) -> str:
    if sum(map(len, rows)) > _MOST_CELLS:
        raise BadOffice("too many cells")
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


# -- OpenDocument


def _open_document(kind: str, body: str) -> bytes:
    spaces = " ".join(f'xmlns:{name}="{_NAMES[name]}"' for name in ("office", "text", "table"))
    content = f'{_XML}<office:document-content {spaces} office:version="1.3"><office:body>{body}</office:body>'
    listed = "".join(
        f'<manifest:file-entry manifest:full-path="{path}" manifest:media-type="{what}"/>'
        for path, what in (("/", kind), ("content.xml", "text/xml"))
    )
    space = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    manifest = f'{_XML}<manifest:manifest xmlns:manifest="{space}" manifest:version="1.3">{listed}</manifest:manifest>'
    parts = {"content.xml": content + "</office:document-content>", "META-INF/manifest.xml": manifest}
    return _zip(parts, kind)


def to_odt(text: str) -> bytes:
    lines = "".join(f"<text:p>{_shown(line).replace(chr(9), '<text:tab/>')}</text:p>" for line in text.split("\n"))
    return _open_document(ODT, f"<office:text>{lines}</office:text>")


def from_odt(media: bytes) -> str:
    kinds = (_tag("text:p"), _tag("text:h"))
    return "\n".join(_flat(node) for node in _part(media, "content.xml").iter() if node.tag in kinds)


def _flat(node: ElementTree.Element) -> str:
    words = {_tag("text:tab"): "\t", _tag("text:line-break"): "\n", _tag("text:s"): " "}
    return (node.text or "") + "".join(words.get(c.tag, "") + _flat(c) + (c.tail or "") for c in node)


def to_ods(text: str) -> bytes:
    rows = ""
    for cells in csv.reader(io.StringIO(text)):
        shown = "".join(
            f'<table:table-cell office:value-type="string"><text:p>{_shown(value)}</text:p></table:table-cell>'
            for value in cells
        )
        rows += f"<table:table-row>{shown or '<table:table-cell/>'}</table:table-row>"
    table = f'<table:table table:name="Sheet1"><table:table-column/>{rows}</table:table>'
    return _open_document(ODS, f"<office:spreadsheet>{table}</office:spreadsheet>")


def from_ods(media: bytes) -> str:
    rows: list[list[str]] = []
    table = next(_part(media, "content.xml").iter(_tag("table:table")), None)
    for row in table.iter(_tag("table:table-row")) if table is not None else ():
        cells: list[str] = []
        for cell in row.iter(_tag("table:table-cell")):
            text = "\n".join(_flat(line) for line in cell.iter(_tag("text:p")))
            times = cell.get(_tag("table:number-columns-repeated"), "1")
            cells += [text] * (min(int(times), 1024) if times.isdigit() and text else 1)
        rows.append(cells)
    while rows and not any(rows[-1]):
        rows.pop()
    return _csv(rows)


# -- Rich Text, books, zipped pages


def to_rtf(text: str) -> bytes:
    out = []
    for letter in text:
        code = ord(letter)
        if letter in "\\{}":
            out.append("\\" + letter)
        elif letter in "\n\t":
            out.append("\\par\n" if letter == "\n" else "\\tab ")
        elif code < 128:
            out.append(letter)
        else:
            units = letter.encode("utf-16-le")
            pairs = [int.from_bytes(units[n : n + 2], "little", signed=True) for n in range(0, len(units), 2)]
            out.append("".join(f"\\u{unit}?" for unit in pairs))
    return ("{\\rtf1\\ansi\\deff0{\\fonttbl{\\f0 Arial;}}\\f0 " + "".join(out) + "}").encode("ascii", "replace")


def from_rtf(media: bytes) -> str:
    """Its text: tables of fonts, colours and the like are left out."""
    text = media.decode("latin-1")
    out: list[str] = []
    hidden: list[bool] = [False]
    for found in re.finditer(r"\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-z])|([{}])|[\r\n]+|(.)", text):
        word, number, byte, symbol, brace, plain = found.groups()
        if brace:
            hidden = [*hidden, hidden[-1]] if brace == "{" else (hidden[:-1] or [False])
        elif symbol == "*" or word in ("fonttbl", "colortbl", "stylesheet", "info", "pict", "listtable"):
            hidden[-1] = True
        elif not hidden[-1]:
            out.append(_rtf_piece(word, number, byte, symbol, plain))
    units = "".join(out).replace("\ue000?", "").replace("\ue000", "").encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "replace")


def _rtf_piece(word: str | None, number: str | None, byte: str | None, symbol: str | None, plain: str | None) -> str:
    if word == "u" and number:
        return chr(int(number) % 65536) + "\ue000"  # a letter for readers without Unicode may follow
    if word:
        return {"par": "\n", "line": "\n", "tab": "\t"}.get(word, "")
    if byte:
        return bytes.fromhex(byte).decode("cp1252", "replace")
    return plain or (symbol if symbol and symbol in "\\{}" else "")


def to_zipped_html(page: str) -> bytes:
    return _zip({"index.html": page})


def to_epub(page: str) -> bytes:
    """`page`: its one chapter, as XHTML."""
    xhtml = 'media-type="application/xhtml+xml"'
    item = f'<item id="text" href="text.xhtml" {xhtml}/><item id="nav" href="nav.xhtml" {xhtml} properties="nav"/>'
    facts = '<dc:identifier id="id">document</dc:identifier><dc:title>Document</dc:title><dc:language>en</dc:language>'
    package = (
        f'{_XML}<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">{facts}</metadata>'
        f'<manifest>{item}</manifest><spine><itemref idref="text"/></spine></package>'
    )
    root = '<rootfile full-path="content.opf" media-type="application/oebps-package+xml"/>'
    space = "urn:oasis:names:tc:opendocument:xmlns:container"
    container = f'{_XML}<container version="1.0" xmlns="{space}"><rootfiles>{root}</rootfiles></container>'
    entries = '<nav epub:type="toc"><ol><li><a href="text.xhtml">Document</a></li></ol></nav>'
    parts = {"META-INF/container.xml": container, "content.opf": package}
    for name, body in (("text", page), ("nav", f"<body>{entries}</body>")):
        spaces = 'xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"'
        parts[f"{name}.xhtml"] = f"{_XML}<html {spaces}><head><title>Document</title></head>{body}</html>"
    return _zip(parts, "application/epub+zip")


WRITERS: dict[str, Callable[[str], bytes]] = {
    DOCX: to_docx,
    XLSX: to_xlsx,
    ODT: to_odt,
    ODS: to_ods,
    "application/rtf": to_rtf,
}
READERS: dict[str, Callable[[bytes], str]] = {
    DOCX: from_docx,
    XLSX: from_xlsx,
    ODT: from_odt,
    ODS: from_ods,
    "application/rtf": from_rtf,
}
