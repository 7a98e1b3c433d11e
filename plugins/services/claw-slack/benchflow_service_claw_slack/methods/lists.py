"""slackLists.*: rows with typed columns."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

from benchflow_claw_kit.store import Row

from benchflow_service_claw_slack.call import SlackCall, SlackError, bad_arguments
from benchflow_service_claw_slack.methods.registry import method
from benchflow_service_claw_slack.objects.sharing import give, must_have, take_away
from benchflow_service_claw_slack.paging import by_cursor

__all__ = ["as_csv"]

Answer = dict[str, Any]
_LETTERS = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
TYPES = {
    **dict.fromkeys(("text", "rich_text"), "rich_text"),
    **{name: name for name in ("checkbox", "date", "user", "select", "number", "email", "phone", "rating", "link")},
    **{name: name for name in ("attachment", "message", "timestamp", "channel", "vote", "multi_select")},
    **dict.fromkeys(("todo_completed",), "checkbox"),
    **dict.fromkeys(("todo_assignee", "assignee"), "user"),
    **dict.fromkeys(("todo_due_date", "due_date"), "date"),
}
"""A column's type to the name of its value in a cell."""
_TODO = (("Completed", "todo_completed"), ("Assignee", "todo_assignee"), ("Due date", "todo_due_date"))


def _columns(call: SlackCall, given: Any) -> list[Answer]:
    given = given or [{"key": "name", "name": "Name", "type": "text", "is_primary_column": True}]
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise bad_arguments("schema must be a list of columns")
    columns: list[Answer] = []
    for one in given:
        name, kind = str(one.get("name") or ""), one.get("type")
        if not name or kind not in TYPES:
            raise bad_arguments(f"a column needs a name and a type: {', '.join(sorted(TYPES))}")
        key = str(one.get("key") or re.sub(r"\W+", "_", name.lower()))
        if key in {column["key"] for column in columns}:
            raise bad_arguments(f"two columns have the key {key}")
        columns.append(_column(call, name, str(kind), key, one))
    if sum(column["is_primary_column"] for column in columns) > 1:
        raise bad_arguments("only one column can be the primary one")
    if not any(column["is_primary_column"] for column in columns):
        columns[0]["is_primary_column"] = True
    return columns


def _column(call: SlackCall, name: str, kind: str, key: str, given: Answer) -> Answer:
    column: Answer = {
        "id": "Col0" + call.store.new_id("list column", 8, _LETTERS),
        "key": key,
        "name": name,
        "type": kind,
    }
    column["is_primary_column"] = bool(given.get("is_primary_column"))
    return column | ({"options": given["options"]} if isinstance(given.get("options"), dict) else {})


def _find(call: SlackCall, level: str = "read", name: str = "list_id") -> Row:
    row = call.store.one("SELECT * FROM lists WHERE id = ?", call.need(name))
    if row is None:
        raise SlackError("list_not_found")
    return must_have(call, row, level, "list_not_found")


def _metadata(row: Row) -> Answer:
    return {"schema": json.loads(row["columns"]), "subtask_schema": [], "todo_mode": bool(row["todo_mode"])}


@method("slackLists.create", "lists:write")
def create(call: SlackCall) -> Answer:
    name = call.need("name")
    source = _find(call, name="copy_from_list_id") if call.has("copy_from_list_id") else None
    columns = json.loads(source["columns"]) if source else _columns(call, call.structure("schema", "invalid_arguments"))
    todo = call.flag("todo_mode")
    if todo and not any(column["type"].startswith("todo_") for column in columns):
        columns += [_column(call, title, kind, kind, {}) for title, kind in _TODO]
    new = "F0" + call.store.new_id("file", 9, _LETTERS)
    blocks = call.structure("description_blocks", "invalid_blocks") or []
    facts: Answer = {
        "name": name,
        "description": blocks,
        "columns": columns,
        "todo_mode": int(todo),
        "created": call.now,
    }
    call.store.insert("lists", id=new, user=call.user, updated=call.now, **facts)
    if source and call.flag("include_copied_list_records"):
        for item in call.store.all("SELECT * FROM list_items WHERE list = ? ORDER BY seq", source["id"]):
            _add(call, new, json.loads(item["cells"]), None)
    row = call.store.one("SELECT * FROM lists WHERE id = ?", new)
    assert row is not None
    return {"list_id": new, "list_metadata": _metadata(row)}


@method("slackLists.update", "lists:write")
def update(call: SlackCall) -> Answer:
    row = _find(call, "write", "id")
    columns: Answer = {}
    if call.has("name"):
        columns["name"] = call.text("name")
    if call.has("description_blocks"):
        columns["description"] = call.structure("description_blocks", "invalid_blocks")
    if call.has("todo_mode"):
        columns["todo_mode"] = int(call.flag("todo_mode"))
    if not columns:
        raise bad_arguments("nothing to change was given")
    call.store.update("lists", {"id": row["id"]}, updated=call.now, **columns)
    return {}


# -- items


def _cell(columns: list[Answer], given: Any) -> tuple[str, Any]:
    """The column's id and the value, which a cell has under the name of its kind."""
    given = given if isinstance(given, dict) else {}
    wanted = given.get("column_id") or given.get("key")
    column = next((one for one in columns if wanted in (one["id"], one["key"])), None)
    if column is None:
        raise SlackError("invalid_column_id", column_id=str(wanted)[:100])
    name = TYPES[column["type"]]
    if name not in given and not (name == "rich_text" and isinstance(given.get("text"), str)):
        raise bad_arguments(f"the cell of column {column['id']} needs a value under '{name}'")
    value = given.get(name, given.get("text"))
    choices = [one.get("value") for one in column.get("options", {}).get("choices", [])]
    if column["type"] in ("select", "multi_select") and choices and any(one not in choices for one in _listed(value)):
        raise SlackError("invalid_option", column_id=column["id"])
    return column["id"], value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _add(call: SlackCall, target: str, cells: Answer, parent: str | None) -> str:
    item = "Rec0" + call.store.new_id("list item", 9, _LETTERS)
    facts: Answer = {"user": call.user, "updated_by": call.user, "created": call.now, "updated": call.now}
    seq = call.store.count("list item seq")
    call.store.insert("list_items", id=item, list=target, seq=seq, parent=parent, cells=cells, **facts)
    return item


def _item(call: SlackCall, row: Row, item: str) -> Row:
    found = call.store.one("SELECT * FROM list_items WHERE id = ? AND list = ?", item, row["id"])
    if found is None:
        raise SlackError("item_not_found")
    return found


def _plain(value: Any) -> str:
    """The words of a value, whatever it is made of."""
    if isinstance(value, list):
        return " ".join(filter(None, (_plain(one) for one in value)))
    if isinstance(value, dict):
        own = value.get("text") if isinstance(value.get("text"), str) else ""
        return own or _plain(value.get("elements") or value.get("value") or "")
    return "" if value is None else str(value)


def _show(columns: list[Answer], item: Row) -> Answer:
    cells = json.loads(item["cells"])
    fields = []
    for column in columns:
        if column["id"] in cells:
            value = cells[column["id"]]
            shown = {"key": column["key"], "column_id": column["id"], "value": value, "text": _plain(value)}
            fields.append({**shown, TYPES[column["type"]]: value})
    return {
        "id": item["id"],
        "list_id": item["list"],
        "date_created": item["created"],
        "created_by": item["user"],
        "updated_by": item["updated_by"],
        "updated_timestamp": str(item["updated"]),
        "is_subtask": bool(item["parent"]),
        **({"parent_record_id": item["parent"]} if item["parent"] else {}),
        "fields": fields,
    }


@method("slackLists.items.create", "lists:write")
def create_item(call: SlackCall) -> Answer:
    row = _find(call, "write")
    columns, cells = json.loads(row["columns"]), {}
    if call.has("duplicated_item_id"):
        cells = json.loads(_item(call, row, call.text("duplicated_item_id"))["cells"])
    given = call.structure("initial_fields", "invalid_arguments") or []
    if not isinstance(given, list):
        raise bad_arguments("initial_fields must be a list")
    cells |= dict(_cell(columns, one) for one in given)
    parent = _item(call, row, call.text("parent_item_id"))["id"] if call.has("parent_item_id") else None
    return {"item": _show(columns, _item(call, row, _add(call, row["id"], cells, parent)))}


@method("slackLists.items.update", "lists:write")
def update_items(call: SlackCall) -> Answer:
    row = _find(call, "write")
    columns, given = json.loads(row["columns"]), call.structure("cells", "invalid_arguments")
    if not isinstance(given, list) or not given or not all(isinstance(one, dict) for one in given):
        raise bad_arguments("cells must be a list of cells")
    for one in given:
        target = _add(call, row["id"], {}, None) if one.get("row_id_to_create") else str(one.get("row_id") or "")
        item = _item(call, row, target)
        column, value = _cell(columns, one)
        cells = json.loads(item["cells"]) | {column: value}
        call.store.update("list_items", {"id": item["id"]}, cells=cells, updated=call.now, updated_by=call.user)
    return {}


@method("slackLists.items.list", "lists:read")
def list_items(call: SlackCall) -> Answer:
    row = _find(call)
    rows = call.store.all("SELECT * FROM list_items WHERE list = ? ORDER BY seq", row["id"])
    if call.flag("archived"):
        rows = []
    page, metadata = by_cursor(call, rows, "list item")
    columns = json.loads(row["columns"])
    return {"items": [_show(columns, item) for item in page], **metadata}


@method("slackLists.items.info", "lists:read")
def item_info(call: SlackCall) -> Answer:
    row = _find(call)
    item = _item(call, row, call.need("id"))
    shown = {"id": row["id"], "name": row["name"], "title": row["name"], "user": row["user"], "created": row["created"]}
    shown |= {"description_blocks": json.loads(row["description"]), "list_metadata": _metadata(row)}
    record = _show(json.loads(row["columns"]), item)
    return {"list": shown, "record": record | ({"is_subscribed": False} if call.flag("include_is_subscribed") else {})}


def _delete(call: SlackCall, row: Row, item: str) -> None:
    call.store.run("DELETE FROM list_items WHERE list = ? AND (id = ? OR parent = ?)", row["id"], item, item)


@method("slackLists.items.delete", "lists:write")
def delete_item(call: SlackCall) -> Answer:
    row = _find(call, "write")
    _delete(call, row, _item(call, row, call.need("id"))["id"])
    return {}


@method("slackLists.items.deleteMultiple", "lists:write")
def delete_items(call: SlackCall) -> Answer:
    row, ids = _find(call, "write"), call.listed("ids")
    if not ids:
        raise bad_arguments("missing required field: ids")
    for item in [_item(call, row, one) for one in ids]:
        _delete(call, row, item["id"])
    return {}


# -- who may open it, and taking it along


@method("slackLists.access.set", "lists:write")
def set_access(call: SlackCall) -> Answer:
    give(call, _find(call, "owner")["id"])
    return {}


@method("slackLists.access.delete", "lists:write")
def delete_access(call: SlackCall) -> Answer:
    take_away(call, _find(call, "owner")["id"])
    return {}


@method("slackLists.download.start", "lists:read")
def start_download(call: SlackCall) -> Answer:
    row = _find(call)
    job = "LeF0" + call.store.new_id("list download", 9, _LETTERS)
    call.store.insert("list_downloads", id=job, list=row["id"], user=call.user, content=as_csv(call, row))
    return {"job_id": job}


@method("slackLists.download.get", "lists:read")
def get_download(call: SlackCall) -> Answer:
    row = _find(call)
    sql = "SELECT * FROM list_downloads WHERE id = ? AND list = ? AND user = ?"
    job = call.store.one(sql, call.need("job_id"), row["id"], call.user)
    if job is None:
        raise SlackError("job_not_found")
    return {"status": "COMPLETED", "download_url": f"{call.base_url}/lists-export/{job['id']}/{row['id']}.csv"}


def as_csv(call: SlackCall, row: Row) -> str:
    columns, out = json.loads(row["columns"]), io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column["name"] for column in columns])
    for item in call.store.all("SELECT * FROM list_items WHERE list = ? ORDER BY seq", row["id"]):
        cells = json.loads(item["cells"])
        writer.writerow([_plain(cells.get(column["id"])) for column in columns])
    return out.getvalue()
