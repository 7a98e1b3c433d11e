"""Tables: insert, rows, columns, merge, style."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchflow_service_claw_gdoc.model import tables as model
from benchflow_service_claw_gdoc.model.draft import Draft, DraftPlace
from benchflow_service_claw_gdoc.model.edit import must_find, split_paragraph
from benchflow_service_claw_gdoc.model.tree import EditError, Element, Spot, width
from benchflow_service_claw_gdoc.requests.registry import Reply, handles

__all__: list[str] = []

Fields = dict[str, Any]


@handles("insertTable")
def insert_table(draft: Draft, request: Fields) -> Reply:
    """A newline comes before it, so that a table always follows a paragraph."""
    place = draft.insertion(request)
    if place.kind == "footnotes":
        raise EditError("A table cannot be inserted in a footnote.")
    table = model.new_table(request.get("rows", 0), request.get("columns", 0))
    must_find(place.content, place.index)
    content, at = split_paragraph(place.content, place.index)
    content.insert(at, table)
    place.grew(place.index, 1 + width(table))
    return None


def _at(draft: Draft, location: Fields | None) -> tuple[DraftPlace, Spot]:
    """The table that begins at a Location."""
    if location is None:
        raise EditError("The table start location is required.")
    tab = draft.tab(location.get("tabId"))
    place = DraftPlace(tab, location.get("segmentId") or "", location.get("index", 0), 0)
    return place, model.spot_at(place.content, place.low)


def _change(draft: Draft, request: Fields, change: Callable[[Element, int, int], bool | None]) -> None:
    """Rows or columns; names that point behind the table move with what follows it."""
    location = request.get("tableCellLocation")
    if location is None:
        raise EditError("The table cell location is required.")
    place, spot = _at(draft, location.get("tableStartLocation"))
    before = width(spot.block)
    emptied = change(spot.block["table"], location.get("rowIndex", 0), location.get("columnIndex", 0))
    if emptied:
        del spot.content[spot.at]
        place.tab.shrank(place.segment_id, spot.start, spot.start + before)
        return
    grown = width(spot.block) - before
    if grown > 0:
        place.tab.grew(place.segment_id, spot.start + before - 1, grown)
    else:
        place.tab.shrank(place.segment_id, spot.start + before - 1 + grown, spot.start + before - 1)


@handles("insertTableRow")
def insert_row(draft: Draft, request: Fields) -> Reply:
    _change(draft, request, lambda t, row, column: model.insert_row(t, row, column, bool(request.get("insertBelow"))))
    return None


@handles("insertTableColumn")
def insert_column(draft: Draft, request: Fields) -> Reply:
    _change(
        draft, request, lambda t, row, column: model.insert_column(t, row, column, bool(request.get("insertRight")))
    )
    return None


@handles("deleteTableRow")
def delete_row(draft: Draft, request: Fields) -> Reply:
    _change(draft, request, model.delete_row)
    return None


@handles("deleteTableColumn")
def delete_column(draft: Draft, request: Fields) -> Reply:
    _change(draft, request, model.delete_column)
    return None


def _ranged(draft: Draft, request: Fields) -> tuple[Element, Fields]:
    range_ = request.get("tableRange")
    if range_ is None:
        raise EditError("The table range is required.")
    location = range_.get("tableCellLocation", {}).get("tableStartLocation")
    return _at(draft, location)[1].block["table"], range_


@handles("mergeTableCells")
def merge(draft: Draft, request: Fields) -> Reply:
    model.merge(*_ranged(draft, request))
    return None


@handles("unmergeTableCells")
def unmerge(draft: Draft, request: Fields) -> Reply:
    model.unmerge(*_ranged(draft, request))
    return None


@handles("updateTableCellStyle")
def style_cells(draft: Draft, request: Fields) -> Reply:
    if ("tableRange" in request) == ("tableStartLocation" in request):
        raise EditError("Exactly one of tableRange and tableStartLocation must be set.")
    if "tableRange" in request:
        table, range_ = _ranged(draft, request)
    else:
        table, range_ = _at(draft, request["tableStartLocation"])[1].block["table"], None
    model.style_cells(table, range_, request.get("tableCellStyle", {}), request.get("fields"))
    return None


@handles("updateTableColumnProperties")
def style_columns(draft: Draft, request: Fields) -> Reply:
    table = _at(draft, request.get("tableStartLocation"))[1].block["table"]
    model.style_columns(
        table, request.get("columnIndices", []), request.get("tableColumnProperties", {}), request.get("fields")
    )
    return None


@handles("updateTableRowStyle")
def style_rows(draft: Draft, request: Fields) -> Reply:
    table = _at(draft, request.get("tableStartLocation"))[1].block["table"]
    model.style_rows(table, request.get("rowIndices", []), request.get("tableRowStyle", {}), request.get("fields"))
    return None


@handles("pinTableHeaderRows")
def pin_rows(draft: Draft, request: Fields) -> Reply:
    table = _at(draft, request.get("tableStartLocation"))[1].block["table"]
    model.pin_rows(table, request.get("pinnedHeaderRowsCount", 0))
    return None
