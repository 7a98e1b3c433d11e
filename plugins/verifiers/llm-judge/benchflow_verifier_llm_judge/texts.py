"""What a file says, for a judge that reads text. Office files are archives of XML; nothing in them is run."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

__all__ = ["Unreadable", "read_text"]

_MOST_BYTES: Final = 32 * 1024 * 1024
"""Unpacked: a small archive can hold a great deal."""
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, ElementTree.ParseError)
Element = ElementTree.Element


class Unreadable(Exception):
    """The file holds no text that we could find."""


def read_text(file: Path) -> str:
    """Raises `Unreadable`."""
    reader = {".docx": _document, ".xlsx": _sheets, ".pptx": _slides}.get(file.suffix.lower())
    if reader is None:
        return _plain(file)
    try:
        with zipfile.ZipFile(file) as archive:
            return reader(_Parts(archive))
    except (*_BROKEN, LookupError, ValueError, OSError, EOFError, RuntimeError) as error:
        raise Unreadable(f"not a readable {file.suffix.lower()} file") from error


def _plain(file: Path) -> str:
    data = file.read_bytes()[:_MOST_BYTES]
    if b"\0" in data:
        raise Unreadable("not a text file")
    return data.decode("utf-8", "replace")


class _Parts:
    """The XML parts of an archive, all of them together within a limit."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive, self._left = archive, _MOST_BYTES

    def names(self, pattern: str) -> list[str]:
        """In the order of their numbers."""
        found = [name for name in self._archive.namelist() if re.fullmatch(pattern, name)]
        return sorted(found, key=lambda name: int(re.sub(r"\D", "", name.rsplit("/", 1)[1]) or 0))

    def read(self, name: str) -> Element:
        with self._archive.open(name) as part:
            data = part.read(self._left + 1)
        self._left -= len(data)
        if self._left < 0 or b"<!DOCTYPE" in data:
            raise ValueError("too large, or with definitions of its own")
        return ElementTree.fromstring(data)


def _tag(node: Element) -> str:
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def _named(node: Element, name: str) -> Iterator[Element]:
    return (one for one in node.iter() if _tag(one) == name)


def _document(parts: _Parts) -> str:
    """As it reads with its changes accepted, the notes behind it."""
    notes = parts.names(r"word/(footnotes|endnotes)\.xml")
    return "\n\n".join("\n".join(_blocks(parts.read(name))) for name in ("word/document.xml", *notes))


def _blocks(node: Element) -> Iterator[str]:
    for child in node:
        match _tag(child):
            case "p":
                yield _line(child)
            case "tr":
                yield " | ".join(" ".join(_blocks(cell)) for cell in child if _tag(cell) == "tc")
            case _:
                yield from _blocks(child)


def _line(paragraph: Element) -> str:
    marks = {"tab": "\t", "br": "\n", "cr": "\n"}
    return "".join(one.text or "" if _tag(one) == "t" else marks.get(_tag(one), "") for one in _inside(paragraph))


def _inside(node: Element) -> Iterator[Element]:
    """Without the definitions of tab stops, what was deleted or moved away, and what is there a second time."""
    for child in node:
        if _tag(child) not in ("pPr", "rPr", "moveFrom", "del", "Fallback"):
            yield child
            yield from _inside(child)


def _slides(parts: _Parts) -> str:
    said = []
    for number, name in enumerate(parts.names(r"ppt/slides/slide\d+\.xml"), 1):
        lines = [_line(paragraph) for paragraph in _named(parts.read(name), "p")]
        said.append("\n".join([f"Slide {number}", *filter(None, lines)]))
    return "\n\n".join(said)


def _sheets(parts: _Parts) -> str:
    """In the workbook's order, empty cells left out."""
    places = {one.get("Id"): one.get("Target", "") for one in parts.read("xl/_rels/workbook.xml.rels")}
    shared: list[str] = []
    for name in parts.names(r"xl/sharedStrings\.xml"):
        shared = [_joined(item) for item in _named(parts.read(name), "si")]
    said = []
    for sheet in _named(parts.read("xl/workbook.xml"), "sheet"):
        number = next(value for key, value in sheet.items() if key.endswith("}id"))
        page = parts.read("xl/" + places[number].removeprefix("/xl/"))
        rows = ["\t".join(_cell(cell, shared) for cell in _named(row, "c")) for row in _named(page, "row")]
        said.append("\n".join([f"Sheet {sheet.get('name')}", *rows]))
    return "\n\n".join(said)


def _cell(cell: Element, shared: list[str]) -> str:
    if cell.get("t") == "inlineStr":
        return _joined(cell)
    value = next((one.text or "" for one in _named(cell, "v")), "")
    return shared[int(value)] if cell.get("t") == "s" else value


def _joined(node: Element) -> str:
    return "".join(one.text or "" for one in _named(node, "t"))
