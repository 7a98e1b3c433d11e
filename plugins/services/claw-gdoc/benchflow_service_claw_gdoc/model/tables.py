"""Tables: making one, adding and removing rows and columns, merging, styling."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from benchflow_service_claw_gdoc.model.fields import named, update
from benchflow_service_claw_gdoc.model.tree import Content, EditError, Element, Spot, new_paragraph, tables

__all__ = [
    "CELL_FIELDS",
    "COLUMN_FIELDS",
    "ROW_FIELDS",
    "at_location",
    "delete_column",
    "delete_row",
    "insert_column",
    "insert_row",
    "merge",
    "new_table",
    "pin_rows",
    "style_cells",
    "style_columns",
    "style_rows",
    "unmerge",
]

MAX_COLUMNS, MAX_CELLS = 20, 10_000
_CELL_STYLE: Element = {"rowSpan": 1, "columnSpan": 1, "backgroundColor": {}, "contentAlignment": "TOP"}
CELL_FIELDS = (
    "backgroundColor",
    "borderLeft",
    "borderRight",
    "borderTop",
    "borderBottom",
    "paddingLeft",
    "paddingRight",
    "paddingTop",
    "paddingBottom",
    "contentAlignment",
    "rowSpan",
    "columnSpan",
)
COLUMN_FIELDS = ("widthType", "width")
ROW_FIELDS = ("minRowHeight", "tableHeader", "preventOverflow")


def _new_cell() -> Element:
    padding = {f"padding{side}": {"magnitude": 5, "unit": "PT"} for side in ("Left", "Right", "Top", "Bottom")}
    return {"content": [new_paragraph()], "tableCellStyle": {**deepcopy(_CELL_STYLE), **padding}}


def _new_row(columns: int) -> Element:
    return {"tableCells": [_new_cell() for _ in range(columns)], "tableRowStyle": {"minRowHeight": {"unit": "PT"}}}


def new_table(rows: int, columns: int) -> Element:
    if rows < 1 or columns < 1:
        raise EditError("The number of rows and columns must be at least 1.")
    if columns > MAX_COLUMNS or rows * columns > MAX_CELLS:
        raise EditError(f"The table is too large: at most {MAX_COLUMNS} columns and {MAX_CELLS} cells.")
    even = [{"widthType": "EVENLY_DISTRIBUTED"} for _ in range(columns)]
    return {
        "table": {
            "rows": rows,
            "columns": columns,
            "tableRows": [_new_row(columns) for _ in range(rows)],
            "tableStyle": {"tableColumnProperties": even},
        }
    }


def at_location(content: Content, start: int) -> Element:
    for spot in tables(content):
        if spot.start == start:
            found: Element = spot.block["table"]
            return found
    raise EditError(f"The provided table start location is invalid: no table starts at index {start}.")


def spot_at(content: Content, start: int) -> Spot:
    at_location(content, start)
    return next(spot for spot in tables(content) if spot.start == start)


def _cell(table: Element, row: int, column: int) -> Element:
    if not 0 <= row < table["rows"]:
        raise EditError(f"The row index {row} is out of bounds: the table has {table['rows']} rows.")
    if not 0 <= column < table["columns"]:
        raise EditError(f"The column index {column} is out of bounds: the table has {table['columns']} columns.")
    found: Element = table["tableRows"][row]["tableCells"][column]
    return found


def insert_row(table: Element, row: int, column: int, below: bool) -> None:
    _cell(table, row, column)
    if (table["rows"] + 1) * table["columns"] > MAX_CELLS:
        raise EditError(f"The table is too large: at most {MAX_CELLS} cells.")
    table["tableRows"].insert(row + 1 if below else row, _new_row(table["columns"]))
    table["rows"] += 1


def insert_column(table: Element, row: int, column: int, right: bool) -> None:
    _cell(table, row, column)
    if table["columns"] >= MAX_COLUMNS:
        raise EditError(f"The table is too large: at most {MAX_COLUMNS} columns.")
    at = column + 1 if right else column
    for each in table["tableRows"]:
        each["tableCells"].insert(at, _new_cell())
    table["tableStyle"]["tableColumnProperties"].insert(at, {"widthType": "EVENLY_DISTRIBUTED"})
    table["columns"] += 1


def delete_row(table: Element, row: int, column: int) -> bool:
    """True when that was the last row: the table goes with it."""
    span = _cell(table, row, column)["tableCellStyle"].get("rowSpan", 1)
    del table["tableRows"][row : row + span]
    table["rows"] = len(table["tableRows"])
    return not table["rows"]


def delete_column(table: Element, row: int, column: int) -> bool:
    span = _cell(table, row, column)["tableCellStyle"].get("columnSpan", 1)
    for each in table["tableRows"]:
        del each["tableCells"][column : column + span]
    del table["tableStyle"]["tableColumnProperties"][column : column + span]
    table["columns"] -= span
    return bool(table["columns"] <= 0)


def _range(table: Element, range_: Element) -> Iterator[tuple[int, int, Element]]:
    location = range_.get("tableCellLocation", {})
    row, column = location.get("rowIndex", 0), location.get("columnIndex", 0)
    height, across = range_.get("rowSpan", 0), range_.get("columnSpan", 0)
    if height < 1 or across < 1:
        raise EditError("The row span and column span of the table range must be at least 1.")
    _cell(table, row, column)
    _cell(table, row + height - 1, column + across - 1)
    for r in range(row, row + height):
        for c in range(column, column + across):
            yield r, c, _cell(table, r, c)


def merge(table: Element, range_: Element) -> None:
    """The text of all of them ends up in the upper left one; the others stay, empty and covered."""
    chosen = list(_range(table, range_))
    (_, _, head), *others = chosen
    for _, _, cell in others:
        texts = [b for b in cell["content"] if "paragraph" not in b or not _blank(b)]
        if texts:
            if len(head["content"]) == 1 and _blank(head["content"][0]):
                head["content"].clear()
            head["content"].extend(texts)
        if "paragraph" not in head["content"][-1]:
            head["content"].append(new_paragraph())
        cell["content"] = [new_paragraph()]
        cell["tableCellStyle"] |= {"rowSpan": 1, "columnSpan": 1}
    head["tableCellStyle"] |= {"rowSpan": range_["rowSpan"], "columnSpan": range_["columnSpan"]}


def _blank(block: Element) -> bool:
    elements = block.get("paragraph", {}).get("elements", [])
    return len(elements) == 1 and elements[0].get("textRun", {}).get("content") == "\n"


def unmerge(table: Element, range_: Element) -> None:
    for _, _, cell in _range(table, range_):
        cell["tableCellStyle"] |= {"rowSpan": 1, "columnSpan": 1}


def style_cells(table: Element, range_: Element | None, style: Element, fields: Any) -> None:
    paths = named(fields, CELL_FIELDS, refused=("rowSpan", "columnSpan"))
    everything = {"rowSpan": table["rows"], "columnSpan": table["columns"]}
    for _, _, cell in _range(table, range_ or everything):
        update(cell["tableCellStyle"], style, paths)


def style_columns(table: Element, indices: list[int], properties: Element, fields: Any) -> None:
    paths = named(fields, COLUMN_FIELDS)
    width = properties.get("width", {}).get("magnitude")
    if width is not None and width < 5:
        raise EditError("The width of a column must be at least 5 points.")
    for column in indices or range(table["columns"]):
        _cell(table, 0, column)
        update(table["tableStyle"]["tableColumnProperties"][column], properties, paths)


def style_rows(table: Element, indices: list[int], style: Element, fields: Any) -> None:
    paths = named(fields, ROW_FIELDS)
    for row in indices or range(table["rows"]):
        _cell(table, row, 0)
        update(table["tableRows"][row]["tableRowStyle"], style, paths)


def pin_rows(table: Element, count: int) -> None:
    if not 0 <= count <= table["rows"]:
        raise EditError(f"The number of pinned header rows must be between 0 and {table['rows']}.")
    for number, row in enumerate(table["tableRows"]):
        row["tableRowStyle"].pop("tableHeader", None)
        if number < count:
            row["tableRowStyle"]["tableHeader"] = True
