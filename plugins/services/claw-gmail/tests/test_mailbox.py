"""Threads, drafts, labels, history, settings and rights, through the official client."""

from __future__ import annotations

import base64
import json
import time

from benchflow_claw_kit.effects import shows
from benchflow_claw_kit.testing import google_client

from .conftest import User, header, raw
from .test_messages import refused


@shows(
    "messages.send threads.delete > threads.get",
    "threads.modify > messages.list",
    "threads.trash threads.untrash > threads.list",
)
def test_threads(ann):
    first = ann.send("x@y.example", "Plan")
    second = ann.send("x@y.example", "Re: Plan", thread=first["threadId"])
    assert second["threadId"] == first["threadId"]
    assert ann.send("x@y.example", "Another subject", thread=first["threadId"])["threadId"] != first["threadId"]
    refused(
        ann.api.messages().send(userId="me", body={"raw": raw(to="x@y.example"), "threadId": "19ffffffffffffff"}), 404
    )
    threads = ann.api.threads()
    got = threads.get(userId="me", id=first["threadId"], format="minimal").execute()
    assert [one["id"] for one in got["messages"]] == [first["id"], second["id"]] and "payload" not in got["messages"][0]
    threads.modify(userId="me", id=first["threadId"], body={"addLabelIds": ["STARRED"]}).execute()
    assert set(ann.find("is:starred")) == {first["id"], second["id"]}
    threads.trash(userId="me", id=first["threadId"]).execute()
    assert len(threads.list(userId="me").execute()["threads"]) == 1
    threads.untrash(userId="me", id=first["threadId"]).execute()
    assert len(threads.list(userId="me").execute()["threads"]) == 2
    threads.delete(userId="me", id=first["threadId"]).execute()
    refused(threads.get(userId="me", id=first["threadId"]), 404)
    refused(ann.api.messages().get(userId="me", id=second["id"]), 404)
    refused(threads.get(userId="me", id="not hex"), 400)


@shows("drafts.create drafts.send > drafts.list", "drafts.update drafts.delete > drafts.get")
def test_drafts(ann, bob):
    bob.api.getProfile(userId="me").execute()
    drafts = ann.api.drafts()
    made = drafts.create(
        userId="me", body={"message": {"raw": raw(to=bob.address, subject="First try", text="one")}}
    ).execute()
    assert made["message"]["labelIds"] == ["DRAFT"]
    assert drafts.list(userId="me").execute()["drafts"] == [
        {"id": made["id"], "message": {"id": made["message"]["id"], "threadId": made["message"]["threadId"]}}
    ]
    changed = drafts.update(
        userId="me", id=made["id"], body={"message": {"raw": raw(to=bob.address, subject="Second try", text="two")}}
    ).execute()
    assert changed["id"] == made["id"] and changed["message"]["id"] != made["message"]["id"]
    assert drafts.get(userId="me", id=made["id"]).execute()["message"]["snippet"] == "two"
    refused(ann.api.messages().get(userId="me", id=made["message"]["id"]), 404)
    assert ann.find("in:drafts second") == [changed["message"]["id"]] and drafts.list(
        userId="me", q="first"
    ).execute() == {"resultSizeEstimate": 0}
    sent = drafts.send(userId="me", body={"id": made["id"]}).execute()
    assert sent["labelIds"] == ["SENT"] and sent["id"] != changed["message"]["id"]
    assert drafts.list(userId="me").execute() == {"resultSizeEstimate": 0}
    assert len(bob.find("subject:second")) == 1
    refused(drafts.send(userId="me", body={"id": made["id"]}), 404)
    refused(drafts.send(userId="me", body={}), 400)
    refused(drafts.create(userId="me", body={"message": {}}), 400)
    lone = drafts.create(userId="me", body={"message": {"raw": raw(subject="To nobody")}}).execute()
    refused(drafts.send(userId="me", body={"id": lone["id"]}), 400, "invalidArgument", "Recipient address required")
    assert len(drafts.list(userId="me").execute()["drafts"]) == 1
    drafts.delete(userId="me", id=lone["id"]).execute()
    refused(drafts.get(userId="me", id=lone["id"]), 404)
    refused(drafts.delete(userId="me", id=lone["id"]), 404)


def test_a_draft_answers_in_its_thread(ann):
    first = ann.put(subject="Question", Message_ID="<q@x>")
    body = {
        "message": {
            "raw": raw(to="x@y.example", subject="Re: Question", In_Reply_To="<q@x>"),
            "threadId": first["threadId"],
        }
    }
    made = ann.api.drafts().create(userId="me", body=body).execute()
    assert made["message"]["threadId"] == first["threadId"]
    assert ann.api.drafts().send(userId="me", body={"id": made["id"]}).execute()["threadId"] == first["threadId"]


@shows(
    "labels.create labels.patch labels.update labels.delete > labels.get",
    "labels.create > labels.list",
    "messages.insert > messages.list",
)
def test_labels(ann):
    labels = ann.api.labels()
    system = {one["id"]: one for one in labels.list(userId="me").execute()["labels"]}
    assert {"INBOX", "SENT", "TRASH", "SPAM", "DRAFT", "UNREAD", "STARRED", "IMPORTANT", "CATEGORY_SOCIAL"} <= set(
        system
    )
    made = labels.create(
        userId="me", body={"name": "Work", "color": {"textColor": "#ffffff", "backgroundColor": "#16a766"}}
    ).execute()
    assert made["type"] == "user" and made["labelListVisibility"] == "labelShow"
    assert made["id"] in [one["id"] for one in labels.list(userId="me").execute()["labels"]]
    message = ann.put(labels=["INBOX", "UNREAD", made["id"]])["id"]
    got = labels.get(userId="me", id=made["id"]).execute()
    assert (got["messagesTotal"], got["messagesUnread"], got["threadsTotal"], got["threadsUnread"]) == (1, 1, 1, 1)
    labels.patch(userId="me", id=made["id"], body={"name": "Job"}).execute()
    got = labels.get(userId="me", id=made["id"]).execute()
    assert got["name"] == "Job" and got["color"]["backgroundColor"] == "#16a766" and ann.find("label:job") == [message]
    labels.update(
        userId="me", id=made["id"], body={"id": made["id"], "name": "Job", "labelListVisibility": "labelHide"}
    ).execute()
    got = labels.get(userId="me", id=made["id"]).execute()
    assert "color" not in got and got["labelListVisibility"] == "labelHide"
    error = refused(labels.create(userId="me", body={"name": "job"}), 409, text="Label name exists or conflicts")
    assert error["status"] == "ABORTED"
    refused(labels.create(userId="me", body={"name": "inbox"}), 400, text="Invalid label name")
    refused(labels.create(userId="me", body={}), 400)
    refused(
        labels.create(userId="me", body={"name": "c", "color": {"textColor": "#123456", "backgroundColor": "#000000"}}),
        400,
        text="color palette",
    )
    refused(
        labels.create(userId="me", body={"name": "v", "labelListVisibility": "sometimes"}),
        400,
        text="Invalid value at 'label_list_visibility'",
    )
    refused(labels.delete(userId="me", id="INBOX"), 400)
    refused(labels.get(userId="me", id="Label_99"), 404)
    labels.delete(userId="me", id=made["id"]).execute()
    assert made["id"] not in ann.get(message)["labelIds"]
    refused(labels.get(userId="me", id=made["id"]), 404)


@shows("messages.modify messages.delete > history.list", "messages.modify > getProfile")
def test_history(ann):
    start = ann.api.getProfile(userId="me").execute()["historyId"]
    one, two = ann.put(subject="one"), ann.put(subject="two")
    ann.api.messages().modify(
        userId="me", id=one["id"], body={"addLabelIds": ["STARRED"], "removeLabelIds": ["UNREAD"]}
    ).execute()
    ann.api.messages().delete(userId="me", id=two["id"]).execute()
    history = ann.api.history()
    got = history.list(userId="me", startHistoryId=start).execute()
    kinds = [next(name for name in entry if name not in ("id", "messages")) for entry in got["history"]]
    assert kinds == ["messagesAdded", "messagesAdded", "labelsAdded", "labelsRemoved", "messagesDeleted"]
    assert (
        got["history"][2]["labelsAdded"][0]["labelIds"] == ["STARRED"]
        and got["history"][2]["messages"][0]["id"] == one["id"]
    )
    assert got["historyId"] == ann.api.getProfile(userId="me").execute()["historyId"]
    assert ann.get(one["id"])["historyId"] == got["history"][3]["id"]
    only = history.list(userId="me", startHistoryId=start, historyTypes=["messageDeleted"]).execute()["history"]
    assert [entry["messagesDeleted"][0]["message"]["id"] for entry in only] == [two["id"]]
    starred = history.list(userId="me", startHistoryId=start, labelId="STARRED").execute()["history"]
    assert {entry["messages"][0]["id"] for entry in starred} == {one["id"]}
    seen, request = 0, history.list(userId="me", startHistoryId=start, maxResults=2)
    while request is not None:
        answer = request.execute()
        seen += len(answer["history"])
        request = history.list_next(request, answer)
    assert seen == 5
    assert "history" not in history.list(userId="me", startHistoryId=got["historyId"]).execute()
    refused(history.list(userId="me", startHistoryId="1"), 404, "notFound")
    refused(history.list(userId="me", startHistoryId="99999999"), 404)
    refused(history.list(userId="me"), 400)
    refused(history.list(userId="me", startHistoryId=start, pageToken="x"), 400)


@shows("watch > getProfile", "stop > state")
def test_watch(ann, server):
    body = {"topicName": "projects/p/topics/t", "labelIds": ["INBOX"]}
    got = ann.api.watch(userId="me", body=body).execute()
    assert int(got["expiration"]) > 1772442000000
    assert got["historyId"] == ann.api.getProfile(userId="me").execute()["historyId"]
    assert f"{ann.address}/watch" in server.admin("GET", "state")["settings"]
    refused(ann.api.watch(userId="me", body={"topicName": "nope"}), 400)
    ann.api.stop(userId="me").execute()
    assert f"{ann.address}/watch" not in server.admin("GET", "state")["settings"]


@shows(
    "settings.filters.create > settings.filters.get",
    "settings.filters.create settings.filters.delete > settings.filters.list",
)
def test_filters_sort_what_comes(ann, bob):
    bob.api.getProfile(userId="me").execute()
    label = bob.api.labels().create(userId="me", body={"name": "Bills"}).execute()["id"]
    filters = bob.api.settings().filters()
    assert filters.list(userId="me").execute() == {}
    body = {
        "criteria": {"subject": "invoice", "negatedQuery": "draft"},
        "action": {"addLabelIds": [label, "STARRED"], "removeLabelIds": ["INBOX"]},
    }
    made = filters.create(userId="me", body=body).execute()
    assert filters.get(userId="me", id=made["id"]).execute() == made and filters.list(userId="me").execute() == {
        "filter": [made]
    }
    ann.send(bob.address, "Your invoice")
    ann.send(bob.address, "Your draft invoice", "a draft")
    [got] = bob.find("label:bills")
    assert bob.get(got)["labelIds"] == sorted([label, "STARRED", "UNREAD"]) and len(bob.find("in:inbox")) == 1
    error = refused(filters.create(userId="me", body=body), 400, "failedPrecondition", "Filter already exists")
    assert error["status"] == "FAILED_PRECONDITION"
    for bad in (
        {},
        {"criteria": {"from": "x"}},
        {"action": {"addLabelIds": ["STARRED"]}},
        {"criteria": {"from": "x"}, "action": {"addLabelIds": ["no"]}},
    ):
        refused(filters.create(userId="me", body=bad), 400)
    filters.delete(userId="me", id=made["id"]).execute()
    assert filters.list(userId="me").execute() == {}
    refused(filters.delete(userId="me", id=made["id"]), 404)


@shows(
    "settings.updateVacation > settings.getVacation",
    "settings.forwardingAddresses.create > settings.forwardingAddresses.list",
    "settings.forwardingAddresses.create settings.forwardingAddresses.delete > settings.forwardingAddresses.get",
    "settings.updateAutoForwarding > settings.getAutoForwarding",
)
def test_vacation_and_forwarding(server, ann, bob):
    third = User(server, "third-" + bob.address)
    for user in (bob, third):
        user.api.getProfile(userId="me").execute()
    settings = bob.api.settings()
    assert settings.getVacation(userId="me").execute() == {"enableAutoReply": False}
    settings.updateVacation(
        userId="me",
        body={"enableAutoReply": True, "responseSubject": "Away", "responseBodyPlainText": "Back on Monday"},
    ).execute()
    assert settings.getVacation(userId="me").execute()["responseSubject"] == "Away"
    ann.send(bob.address, "Hi")
    ann.send(bob.address, "Hi again")
    [reply] = ann.find("subject:away")
    assert ann.get(reply)["snippet"] == "Back on Monday"
    refused(settings.updateVacation(userId="me", body={"enableAutoReply": True}), 400)
    refused(settings.updateVacation(userId="me", body={"startTime": "5", "endTime": "4"}), 400)

    addresses = settings.forwardingAddresses()
    refused(
        settings.updateAutoForwarding(
            userId="me", body={"enabled": True, "emailAddress": third.address, "disposition": "archive"}
        ),
        400,
        text="Unrecognized forwarding address",
    )
    assert (
        addresses.create(userId="me", body={"forwardingEmail": third.address}).execute()["verificationStatus"]
        == "accepted"
    )
    assert (
        addresses.create(userId="me", body={"forwardingEmail": "x@other.example"}).execute()["verificationStatus"]
        == "pending"
    )
    refused(addresses.create(userId="me", body={"forwardingEmail": third.address}), 409)
    refused(addresses.create(userId="me", body={"forwardingEmail": "nope"}), 400)
    assert len(addresses.list(userId="me").execute()["forwardingAddresses"]) == 2
    pending = addresses.get(userId="me", forwardingEmail="x@other.example").execute()
    assert pending == {"forwardingEmail": "x@other.example", "verificationStatus": "pending"}
    settings.updateAutoForwarding(
        userId="me", body={"enabled": True, "emailAddress": third.address, "disposition": "archive"}
    ).execute()
    assert settings.getAutoForwarding(userId="me").execute()["enabled"] is True
    ann.send(bob.address, "Passed on")
    assert len(third.find("subject:passed")) == 1 and bob.find("subject:passed in:inbox") == []
    addresses.delete(userId="me", forwardingEmail=third.address).execute()
    assert settings.getAutoForwarding(userId="me").execute() == {"enabled": False}
    refused(addresses.get(userId="me", forwardingEmail=third.address), 404)


@shows(
    "settings.updateImap > settings.getImap",
    "settings.updatePop > settings.getPop",
    "settings.updateLanguage > settings.getLanguage",
)
def test_other_settings(ann):
    settings = ann.api.settings()
    for name, body in (
        ("Imap", {"enabled": False, "autoExpunge": False, "expungeBehavior": "trash", "maxFolderSize": 1000}),
        ("Pop", {"accessWindow": "allMail", "disposition": "archive"}),
        ("Language", {"displayLanguage": "de"}),
    ):
        assert getattr(settings, f"update{name}")(userId="me", body=body).execute() == body
        assert getattr(settings, f"get{name}")(userId="me").execute() == body
    refused(settings.updateLanguage(userId="me", body={"displayLanguage": "??"}), 400)
    refused(settings.updateImap(userId="me", body={"maxFolderSize": 7}), 400)
    refused(settings.updatePop(userId="me", body={"accessWindow": "never"}), 400)


@shows(
    "settings.sendAs.create settings.sendAs.patch settings.sendAs.update settings.sendAs.delete > settings.sendAs.get",
    "settings.sendAs.create > settings.sendAs.list",
    "settings.delegates.create > settings.delegates.get",
    "settings.delegates.create > settings.delegates.list",
    "settings.delegates.delete > messages.list",
)
def test_send_as_and_delegates(ann, bob):
    aliases = ann.api.settings().sendAs()
    [primary] = aliases.list(userId="me").execute()["sendAs"]
    assert primary["isPrimary"] and primary["isDefault"]
    aliases.patch(userId="me", sendAsEmail=ann.address, body={"signature": "-- Ann"}).execute()
    assert aliases.get(userId="me", sendAsEmail=ann.address).execute()["signature"] == "-- Ann"
    other = f"alias-{ann.address}"
    made = aliases.create(
        userId="me",
        body={"sendAsEmail": other, "displayName": "A", "smtpMsa": {"host": "h", "port": 25, "password": "secret"}},
    ).execute()
    assert made["verificationStatus"] == "accepted" and "password" not in json.dumps(
        aliases.get(userId="me", sendAsEmail=other).execute()
    )
    assert other in header(ann.get(ann.send("x@y.example", From=f"A <{other}>")["id"]), "From")
    aliases.update(userId="me", sendAsEmail=other, body={"displayName": "B", "isDefault": True}).execute()
    assert aliases.get(userId="me", sendAsEmail=ann.address).execute()["isDefault"] is False
    far = aliases.create(userId="me", body={"sendAsEmail": "a@far.example"}).execute()
    assert far["verificationStatus"] == "pending" and len(aliases.list(userId="me").execute()["sendAs"]) == 3
    aliases.verify(userId="me", sendAsEmail="a@far.example").execute()
    refused(aliases.verify(userId="me", sendAsEmail=other), 400)
    refused(aliases.delete(userId="me", sendAsEmail=ann.address), 400)
    aliases.delete(userId="me", sendAsEmail=other).execute()
    assert aliases.get(userId="me", sendAsEmail=ann.address).execute()["isDefault"] is True

    refused(bob.api.messages().list(userId=ann.address), 403, text="Delegation denied")
    delegates = ann.api.settings().delegates()
    delegates.create(userId="me", body={"delegateEmail": bob.address}).execute()
    assert delegates.list(userId="me").execute()["delegates"] == [
        delegates.get(userId="me", delegateEmail=bob.address).execute()
    ]
    assert bob.api.messages().list(userId=ann.address).execute()["resultSizeEstimate"] == 1
    delegates.delete(userId="me", delegateEmail=bob.address).execute()
    refused(bob.api.messages().list(userId=ann.address), 403)
    refused(delegates.create(userId="me", body={"delegateEmail": "x@elsewhere.example"}), 400)


def jwt(**claims):
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{middle}.x"


def test_scopes_and_tokens(server, ann):
    message = ann.put()["id"]
    path = f"/gmail/v1/users/me/messages/{message}"
    reader = f"{ann.address};gmail.readonly"
    assert server.ask("GET", path, token=reader)[0] == 200
    status, error, headers = server.ask("POST", path + "/trash", token=reader)
    assert status == 403 and error["error"]["status"] == "PERMISSION_DENIED"
    assert error["error"]["details"][0]["reason"] == "ACCESS_TOKEN_SCOPE_INSUFFICIENT"
    assert (
        error["error"]["errors"][0]["reason"] == "insufficientPermissions"
        and "insufficient_scope" in headers["www-authenticate"]
    )
    assert server.ask("DELETE", path, token=f"{ann.address};gmail.modify")[0] == 403
    full = "https://mail.google.com/"
    assert server.ask("GET", path, token=jwt(email=ann.address, scope=full))[0] == 200
    assert (
        server.ask("GET", path, token=jwt(email=ann.address, scope="https://www.googleapis.com/auth/calendar"))[0]
        == 403
    )
    assert server.ask("GET", path, token=jwt(email=ann.address, exp=time.time() - 5))[0] == 401
    assert server.ask("GET", path, headers={"Authorization": "Basic abc"})[0] == 401
    meta = f"{ann.address};gmail.metadata"
    assert server.ask("GET", path + "?format=metadata", token=meta)[0] == 200
    assert "Metadata scope" in server.ask("GET", path + "?format=full", token=meta)[1]["error"]["message"]
    assert server.ask("GET", "/gmail/v1/users/me/messages?q=x", token=meta)[0] == 403
    assert server.ask("DELETE", path, token=jwt(email=ann.address, scope=full))[0] == 204
    assert server.ask("GET", path, token=ann.address)[0] == 404


def test_by_api_endpoint_and_without_a_token(server, owner):
    from google.auth.credentials import AnonymousCredentials
    from googleapiclient.discovery import build

    service = build(
        "gmail",
        "v1",
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": server.url},
        static_discovery=True,
    )
    assert service.users().getProfile(userId="me").execute()["emailAddress"] == "alex@example.com"
    found = service.users().messages().list(userId="me", q="from:alice meeting").execute()["messages"]
    text = service.users().messages().get(userId="me", id=found[0]["id"]).execute()
    assert header(text, "Subject") == "Meeting on Thursday?" and len(found) == 1
    assert owner.getProfile(userId="alice@example.com").execute()["emailAddress"] == "alice@example.com"
    opaque = google_client("gmail", "v1", server.url, token="ya29.whatever")
    assert opaque.users().getProfile(userId="me").execute()["emailAddress"] == "alex@example.com"
