"""files.listLabels and files.modifyLabels. Which labels there are is the Drive Labels API's: a scenario names them."""

from __future__ import annotations

import json
import re
from typing import Any

from benchflow_claw_kit.api import Call
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.paging import BadToken, read_token, write_token
from benchflow_claw_kit.store import Row

from benchflow_service_claw_gdrive.access import current_user, find_file, not_found, show_user
from benchflow_service_claw_gdrive.api import api
from benchflow_service_claw_gdrive.state import touch

__all__ = ["FIELD_TYPES"]

Answer = dict[str, Any]
FIELD_TYPES = ("dateString", "integer", "selection", "text", "user")
_SETTERS = {
    "setDateValues": "dateString",
    "setIntegerValues": "integer",
    "setSelectionValues": "selection",
    "setTextValues": "text",
    "setUserValues": "user",
}


def _show(call: Call, row: Row) -> Answer:
    kinds, fields = json.loads(row["kinds"]), json.loads(row["fields"])
    shown = {}
    for field, values in fields.items():
        kind = kinds[field]["type"]
        given = [show_user(call, one) for one in values] if kind == "user" else values
        shown[field] = {"kind": "drive#labelField", "id": field, "valueType": kind, kind: given}
    return {"kind": "drive#label", "id": row["label"], "revisionId": row["revision"], "fields": shown}


def _labels(call: Call, file: str, label: str | None = None) -> list[Row]:
    sql = (
        "SELECT f.label, f.fields, l.revision, l.fields AS kinds FROM drive_file_labels f"
        " JOIN drive_labels l ON l.id = f.label WHERE f.file = ? AND (? IS NULL OR f.label = ?) ORDER BY f.label"
    )
    return call.store.all(sql, file, label, label)


@api.method("drive.files.listLabels")
def list_labels(call: Call) -> Answer:
    file = find_file(call)["id"]
    rows, size, start, asked = _labels(call, file), call.get("maxResults", 100), 0, [call.method.id, file]
    if call.get("pageToken"):
        try:
            start = int(read_token(call.store.secret, call.get("pageToken"), asked)["at"])
        except (BadToken, KeyError):
            raise ApiError(400, "Invalid Value", "invalid", location="pageToken") from None
    answer: Answer = {"kind": "drive#labelList", "labels": [_show(call, row) for row in rows[start : start + size]]}
    if start + size < len(rows):
        answer["nextPageToken"] = write_token(call.store.secret, {"at": start + size}, asked)
    return answer


def _bad(text: str, where: str = "labelModifications") -> ApiError:
    return ApiError(400, text, "invalid", location=where)


def _values(kind: str, values: list[Any], choices: list[str] | None) -> list[Any]:
    if kind == "text" and (len(values) > 1 or any(len(one) > 100 for one in values)):
        raise _bad("A text field has one value of at most 100 characters.")
    if kind == "dateString" and any(not re.fullmatch(r"\d{4}-\d\d-\d\d", one) for one in values):
        raise _bad("A date is written YYYY-MM-DD.")
    if kind == "user" and any("@" not in one for one in values):
        raise _bad("A user is given by an email address.")
    if kind == "selection" and choices is not None and (wrong := [one for one in values if one not in choices]):
        raise _bad(f"Unknown choice: {wrong[0]}")
    return values


def _field(kinds: Answer, fields: Answer, change: Answer) -> None:
    field = change.get("fieldId", "")
    if field not in kinds:
        raise _bad(f"The label has no field {field!r}.", "fieldId")
    kind = kinds[field]["type"]
    given = [name for name in _SETTERS if change.get(name) is not None]
    if change.get("unsetValues"):
        fields.pop(field, None)
    elif len(given) != 1 or _SETTERS[given[0]] != kind:
        raise _bad(f"The field {field!r} takes values of type {kind}.", "fieldId")
    else:
        fields[field] = _values(kind, change[given[0]], kinds[field].get("choices"))


@api.method("drive.files.modifyLabels")
def modify_labels(call: Call) -> Answer:
    file = find_file(call, role="writer")["id"]
    modified = []
    for change in call.body.get("labelModifications") or []:
        label = change.get("labelId", "")
        known = call.store.one("SELECT * FROM drive_labels WHERE id = ?", label)
        if known is None:
            raise not_found(label, "Label", "labelId")
        if change.get("removeLabel"):
            call.store.delete("drive_file_labels", file=file, label=label)
            continue
        old = _labels(call, file, label)
        fields = json.loads(old[0]["fields"]) if old else {}
        for one in change.get("fieldModifications") or []:
            _field(json.loads(known["fields"]), fields, one)
        call.store.insert("drive_file_labels", replace=True, file=file, label=label, fields=fields)
        modified.append(label)
    touch(call.store, file, current_user(call), content=False)
    shown = [
        _show(call, _labels(call, file, label)[0]) for label in dict.fromkeys(modified) if _labels(call, file, label)
    ]
    return {"kind": "drive#modifyLabelsResponse", "modifiedLabels": shown}
