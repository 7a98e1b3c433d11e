"""users.settings: vacation, forwarding, IMAP, POP, language, filters, send-as, forwarding addresses, delegates."""

from __future__ import annotations

import json
import re
from typing import Any

from benchflow_claw_kit import ApiError, Call, not_found

from benchflow_service_claw_gmail.contract import api
from benchflow_service_claw_gmail.delivery import setting
from benchflow_service_claw_gmail.mailbox import Mailbox, invalid_argument, listed, mailbox_of

_ADDRESS = re.compile(r"[^@\s<>]+@[^@\s<>]+\.[^@\s<>]+")
DEFAULTS: dict[str, dict[str, Any]] = {
    "autoForwarding": {"enabled": False},
    "imap": {"enabled": True, "autoExpunge": True, "expungeBehavior": "archive", "maxFolderSize": 0},
    "language": {"displayLanguage": "en"},
    "pop": {"accessWindow": "disabled", "disposition": "leaveInInbox"},
    "vacation": {"enableAutoReply": False},
}
FILTER_LIMIT = 1000


def _read(box: Mailbox, name: str) -> dict[str, Any]:
    return setting(box, name) or dict(DEFAULTS[name])


def _write(box: Mailbox, name: str, data: dict[str, Any]) -> dict[str, Any]:
    box.store.insert("settings", replace=True, user=box.user, name=name, data=data)
    return data


@api.method("gmail.users.settings.getAutoForwarding")
def get_auto_forwarding(call: Call) -> dict[str, Any]:
    return _read(mailbox_of(call), "autoForwarding")


@api.method("gmail.users.settings.updateAutoForwarding")
def update_auto_forwarding(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    data = {"enabled": False, **call.body}
    if data["enabled"]:
        address = str(data.get("emailAddress", "")).lower()
        row = box.store.one("SELECT data FROM forwarding_addresses WHERE user = ? AND id = ?", box.user, address)
        if row is None or json.loads(row["data"])["verificationStatus"] != "accepted":
            raise invalid_argument("Unrecognized forwarding address")
        if data.get("disposition", "dispositionUnspecified") == "dispositionUnspecified":
            raise invalid_argument("Invalid disposition")
    return _write(box, "autoForwarding", data)


@api.method("gmail.users.settings.getImap")
def get_imap(call: Call) -> dict[str, Any]:
    return _read(mailbox_of(call), "imap")


@api.method("gmail.users.settings.updateImap")
def update_imap(call: Call) -> dict[str, Any]:
    if call.body.get("maxFolderSize", 0) not in (0, 1000, 2000, 5000, 10000):
        raise invalid_argument("Invalid max folder size")
    return _write(mailbox_of(call), "imap", {**DEFAULTS["imap"], "enabled": False, "autoExpunge": False, **call.body})


@api.method("gmail.users.settings.getPop")
def get_pop(call: Call) -> dict[str, Any]:
    return _read(mailbox_of(call), "pop")


@api.method("gmail.users.settings.updatePop")
def update_pop(call: Call) -> dict[str, Any]:
    return _write(mailbox_of(call), "pop", {**DEFAULTS["pop"], **call.body})


@api.method("gmail.users.settings.getLanguage")
def get_language(call: Call) -> dict[str, Any]:
    return _read(mailbox_of(call), "language")


@api.method("gmail.users.settings.updateLanguage")
def update_language(call: Call) -> dict[str, Any]:
    if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", call.body.get("displayLanguage", "")):
        raise invalid_argument("Invalid display language")
    return _write(mailbox_of(call), "language", call.body)


@api.method("gmail.users.settings.getVacation")
def get_vacation(call: Call) -> dict[str, Any]:
    return _read(mailbox_of(call), "vacation")


@api.method("gmail.users.settings.updateVacation")
def update_vacation(call: Call) -> dict[str, Any]:
    body = call.body
    wanted = body.get("enableAutoReply", False)
    texts = [body.get(name, "").strip() for name in ("responseSubject", "responseBodyPlainText", "responseBodyHtml")]
    if wanted and not any(texts):
        raise invalid_argument("Vacation responder enabled but subject and body are both empty")
    if "startTime" in body and "endTime" in body and int(body["startTime"]) >= int(body["endTime"]):
        raise invalid_argument("Vacation start time must be before end time")
    return _write(mailbox_of(call), "vacation", {"enableAutoReply": False, **body})


# -- lists of things: (table, key of the address)


def _items(box: Mailbox, table: str) -> list[dict[str, Any]]:
    rows = box.store.all(f"SELECT data FROM {table} WHERE user = ? ORDER BY rowid", box.user)
    return [json.loads(row["data"]) for row in rows]


def _item(box: Mailbox, table: str, id: str) -> dict[str, Any]:
    row = box.store.one(f"SELECT data FROM {table} WHERE user = ? AND id = ?", box.user, id)
    if row is None:
        raise not_found()
    value: dict[str, Any] = json.loads(row["data"])
    return value


def _new(box: Mailbox, table: str, id: str, data: dict[str, Any]) -> dict[str, Any]:
    if box.store.one(f"SELECT id FROM {table} WHERE user = ? AND id = ?", box.user, id):
        raise ApiError(409, "Requested entity already exists", "duplicate", canonical="ALREADY_EXISTS")
    box.store.insert(table, user=box.user, id=id, data=data)
    return data


def _drop(box: Mailbox, table: str, id: str) -> None:
    if not box.store.delete(table, user=box.user, id=id):
        raise not_found()


def _address(text: str, what: str) -> str:
    if not _ADDRESS.fullmatch(text.strip()):
        raise invalid_argument(f"Invalid {what}")
    return text.strip().lower()


def _trust(box: Mailbox, address: str) -> str:
    """An address of the same domain needs no verification."""
    return "accepted" if address.rpartition("@")[2] == box.user.rpartition("@")[2] else "pending"


@api.method("gmail.users.settings.filters.list")
def list_filters(call: Call) -> dict[str, Any]:
    return listed(_items(mailbox_of(call), "filters"), "filter")


@api.method("gmail.users.settings.filters.get")
def get_filter(call: Call) -> dict[str, Any]:
    return _item(mailbox_of(call), "filters", call["id"])


@api.method("gmail.users.settings.filters.create")
def create_filter(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    criteria, action = call.body.get("criteria", {}), call.body.get("action", {})
    if not any(value not in ("", 0, False) for value in criteria.values()):
        raise invalid_argument("Filter must have at least one criterion")
    if not any(action.values()):
        raise invalid_argument("Filter must have at least one action")
    box.check_labels(action.get("addLabelIds", []), action.get("removeLabelIds", []))
    if len([label for label in action.get("addLabelIds", []) if label.startswith("Label_")]) > 1:
        raise invalid_argument("Too many user labels in filter action")
    if action.get("forward"):
        address = _item_or_none(box, action["forward"].lower())
        if address is None or address["verificationStatus"] != "accepted":
            raise ApiError(
                400, "Unrecognized forwarding address", "failedPrecondition", canonical="FAILED_PRECONDITION"
            )
    known = _items(box, "filters")
    if any(one["criteria"] == criteria and one["action"] == action for one in known):
        raise ApiError(400, "Filter already exists", "failedPrecondition", canonical="FAILED_PRECONDITION")
    if len(known) >= FILTER_LIMIT:
        raise invalid_argument("Too many filters")
    id = "ANe1Bm" + box.store.new_id("filter", 26, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    return _new(box, "filters", id, {"id": id, "criteria": criteria, "action": action})


def _item_or_none(box: Mailbox, address: str) -> dict[str, Any] | None:
    row = box.store.one("SELECT data FROM forwarding_addresses WHERE user = ? AND id = ?", box.user, address)
    return json.loads(row["data"]) if row else None


@api.method("gmail.users.settings.filters.delete")
def delete_filter(call: Call) -> None:
    _drop(mailbox_of(call), "filters", call["id"])


@api.method("gmail.users.settings.forwardingAddresses.list")
def list_forwarding(call: Call) -> dict[str, Any]:
    return listed(_items(mailbox_of(call), "forwarding_addresses"), "forwardingAddresses")


@api.method("gmail.users.settings.forwardingAddresses.get")
def get_forwarding(call: Call) -> dict[str, Any]:
    return _item(mailbox_of(call), "forwarding_addresses", call["forwardingEmail"].lower())


@api.method("gmail.users.settings.forwardingAddresses.create")
def create_forwarding(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    address = _address(call.body.get("forwardingEmail", ""), "forwarding address")
    data = {"forwardingEmail": address, "verificationStatus": _trust(box, address)}
    return _new(box, "forwarding_addresses", address, data)


@api.method("gmail.users.settings.forwardingAddresses.delete")
def delete_forwarding(call: Call) -> None:
    """Forwarding to it ends with it."""
    box = mailbox_of(call)
    address = call["forwardingEmail"].lower()
    _drop(box, "forwarding_addresses", address)
    if str(_read(box, "autoForwarding").get("emailAddress", "")).lower() == address:
        _write(box, "autoForwarding", {"enabled": False})


@api.method("gmail.users.settings.delegates.list")
def list_delegates(call: Call) -> dict[str, Any]:
    return listed(_items(mailbox_of(call), "delegates"), "delegates")


@api.method("gmail.users.settings.delegates.get")
def get_delegate(call: Call) -> dict[str, Any]:
    return _item(mailbox_of(call), "delegates", call["delegateEmail"].lower())


@api.method("gmail.users.settings.delegates.create")
def create_delegate(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    address = _address(call.body.get("delegateEmail", ""), "delegate")
    if address == box.user or address.rpartition("@")[2] != box.user.rpartition("@")[2]:
        raise invalid_argument("Invalid delegate")
    return _new(box, "delegates", address, {"delegateEmail": address, "verificationStatus": "accepted"})


@api.method("gmail.users.settings.delegates.delete")
def delete_delegate(call: Call) -> None:
    _drop(mailbox_of(call), "delegates", call["delegateEmail"].lower())


@api.method("gmail.users.settings.sendAs.list")
def list_send_as(call: Call) -> dict[str, Any]:
    return {"sendAs": _items(mailbox_of(call), "send_as")}


@api.method("gmail.users.settings.sendAs.get")
def get_send_as(call: Call) -> dict[str, Any]:
    return _item(mailbox_of(call), "send_as", call["sendAsEmail"].lower())


def _smtp_hidden(body: dict[str, Any]) -> dict[str, Any]:
    """A password goes in and never comes out."""
    if "smtpMsa" not in body:
        return body
    return {**body, "smtpMsa": {k: v for k, v in body["smtpMsa"].items() if k not in ("username", "password")}}


@api.method("gmail.users.settings.sendAs.create")
def create_send_as(call: Call) -> dict[str, Any]:
    box = mailbox_of(call)
    address = _address(call.body.get("sendAsEmail", ""), "sendAs email address")
    body = _smtp_hidden(call.body)
    base = {"displayName": "", "replyToAddress": "", "signature": "", "isPrimary": False, "treatAsAlias": False}
    data = {**base, **body, "sendAsEmail": address, "isPrimary": False, "verificationStatus": _trust(box, address)}
    data.setdefault("isDefault", False)
    made = _new(box, "send_as", address, data)
    if data["isDefault"]:
        _make_default(box, address)
    return made


def _make_default(box: Mailbox, address: str) -> None:
    for entry in _items(box, "send_as"):
        entry["isDefault"] = entry["sendAsEmail"] == address
        box.store.update("send_as", {"user": box.user, "id": entry["sendAsEmail"]}, data=entry)


def _change_send_as(call: Call, whole: bool) -> dict[str, Any]:
    box = mailbox_of(call)
    address = call["sendAsEmail"].lower()
    old = _item(box, "send_as", address)
    fixed: dict[str, Any] = {
        name: old[name] for name in ("sendAsEmail", "isPrimary", "verificationStatus") if name in old
    }
    if call.body.get("isDefault") and old.get("verificationStatus", "accepted") != "accepted":
        raise invalid_argument("An unverified alias cannot be the default")
    base = {"displayName": "", "replyToAddress": "", "signature": ""} if whole else old
    data: dict[str, Any] = {**base, **_smtp_hidden(call.body), **fixed}
    data["isDefault"] = bool(call.body.get("isDefault")) or bool(old.get("isDefault"))
    box.store.update("send_as", {"user": box.user, "id": address}, data=data)
    if data["isDefault"]:
        _make_default(box, address)
    return data


@api.method("gmail.users.settings.sendAs.update")
def update_send_as(call: Call) -> dict[str, Any]:
    return _change_send_as(call, whole=True)


@api.method("gmail.users.settings.sendAs.patch")
def patch_send_as(call: Call) -> dict[str, Any]:
    return _change_send_as(call, whole=False)


@api.method("gmail.users.settings.sendAs.delete")
def delete_send_as(call: Call) -> None:
    box = mailbox_of(call)
    address = call["sendAsEmail"].lower()
    old = _item(box, "send_as", address)
    if old.get("isPrimary"):
        raise invalid_argument("Cannot delete the primary address")
    _drop(box, "send_as", address)
    if old.get("isDefault"):
        _make_default(box, box.user)


@api.method("gmail.users.settings.sendAs.verify")
def verify_send_as(call: Call) -> None:
    """A message with the verification link would go out; the state stays pending until its reader acts."""
    if _item(mailbox_of(call), "send_as", call["sendAsEmail"].lower()).get("verificationStatus") != "pending":
        raise ApiError(400, "Address is already verified", "failedPrecondition", canonical="FAILED_PRECONDITION")
