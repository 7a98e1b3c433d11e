"""users.messages through the official client; an effect counts only when another method sees it."""

from __future__ import annotations

import base64
import gzip
import io
import json

import pytest
from benchflow_claw_kit.effects import shows
from googleapiclient.errors import HttpError
from googleapiclient.http import MediaInMemoryUpload, MediaIoBaseUpload

from .conftest import header, raw


def refused(request, status, reason=None, text=None):
    with pytest.raises(HttpError) as caught:
        request.execute()
    error = json.loads(caught.value.content)["error"]
    assert caught.value.status_code == error["code"] == status, error
    assert error["status"] and error["errors"][0]["message"] == error["message"]
    if reason:
        assert error["errors"][0]["reason"] == reason, error
    if text:
        assert text in error["message"], error
    return error


def test_sending_reaches_the_recipient_and_its_thread(ann, bob):
    bob.api.getProfile(userId="me").execute()
    sent = ann.send(bob.address, "Lunch?", "At noon.", Cc="stranger@elsewhere.example")
    assert sent["labelIds"] == ["SENT"] and sent["threadId"] == sent["id"]
    [got] = bob.find("from:me OR subject:lunch")
    message = bob.get(got)
    assert message["labelIds"] == ["INBOX", "UNREAD"]
    assert header(message, "From").endswith(f"{ann.address}") or ann.address in header(message, "From")
    assert header(message, "Date") and header(message, "Message-ID").endswith("@mail.gmail.com>")
    assert base64.urlsafe_b64decode(message["payload"]["body"]["data"]).strip() == b"At noon."
    assert message["snippet"] == "At noon." and message["id"] != sent["id"]

    answer = bob.send(
        ann.address,
        "Re: Lunch?",
        "Yes",
        In_Reply_To=header(message, "Message-ID"),
        References=header(message, "Message-ID"),
    )
    assert answer["threadId"] == message["threadId"]
    thread = ann.api.threads().get(userId="me", id=sent["threadId"]).execute()
    assert [one["labelIds"] for one in thread["messages"]] == [["SENT"], ["INBOX", "UNREAD"]]


def test_bcc_is_delivered_and_hidden(ann, bob):
    bob.api.getProfile(userId="me").execute()
    sent = ann.send("other@elsewhere.example", "Quiet", Bcc=bob.address)
    [got] = bob.find("subject:quiet")
    assert header(bob.get(got), "Bcc") is None
    assert header(ann.get(sent["id"]), "Bcc") == bob.address


def test_a_message_to_oneself_is_one_message(ann):
    sent = ann.send(ann.address, "Note to self")
    assert set(ann.get(sent["id"])["labelIds"]) == {"SENT", "INBOX", "UNREAD"}
    assert ann.find("subject:note") == [sent["id"]]


def test_a_foreign_from_is_replaced(ann):
    sent = ann.send("x@y.example", "Spoof", From="Boss <boss@big.example>")
    assert ann.address in header(ann.get(sent["id"]), "From") and "boss" not in header(ann.get(sent["id"]), "From")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "'raw' RFC822 payload message string"),
        ({"raw": ""}, "'raw' RFC822 payload message string"),
        ({"raw": raw(subject="No one")}, "Recipient address required"),
        ({"raw": raw(to="not an address", subject="x")}, "Invalid To header"),
    ],
)
def test_sending_refused(ann, body, text):
    refused(ann.api.messages().send(userId="me", body=body), 400, "invalidArgument", text)
    assert ann.find() == []


def test_bad_bodies(ann, server):
    refused(ann.api.messages().send(userId="me", body={"raw": "@@@"}), 400, text="Base64 decoding failed")
    refused(ann.api.messages().send(userId="me", body={"raw": 5}), 400, text="Invalid value at 'raw' (TYPE_BYTES), 5")
    refused(ann.api.messages().send(userId="me", body={"rw": "x"}), 400, text='Unknown name "rw"')
    path = "/gmail/v1/users/me/messages/send"
    for body in (b"{", b"[]", b'{"raw": NaN}', b"\xff\xfe", b"[" * 100_000, b'{"payload":' * 5000):
        status, error, _ = server.ask("POST", path, body, ann.address)
        assert status == 400 and error["error"]["status"] == "INVALID_ARGUMENT", body[:20]


@pytest.mark.parametrize(
    "data",
    [
        b"just words, no header at all",
        b"Subject: =?utf-8?B?@@@?=\r\nContent-Type: text/plain; charset=nonsense\r\n\r\n\xff\xfe\xfd",
        b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/plain\r\n\r\nnever closed",
        b"Content-Type: multipart/mixed\r\n\r\nno boundary",
        b"Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!!not base64",
        b"Content-Type: message/rfc822\r\n\r\nContent-Type: message/rfc822\r\n\r\nSubject: deep\r\n\r\nx",
        b"Subject: nul\x00byte\r\nDate: the day before yesterday\r\nFrom: <<<>>>\r\n\r\n\x00\x01",
        b"Subject: " + b"a" * 100_000 + b"\r\n\r\nlong",
        b"\r\n\r\n\r\n\x80",
        b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
        + b"--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" * 60,
        "Subject: Grüße ohne Kodierung\r\nFrom: Jürgen <j@x.example>\r\n\r\nä".encode("latin-1"),
    ],
)
def test_malformed_mime_is_kept_as_it_came(ann, data):
    made = ann.api.messages().insert(userId="me", body={"raw": base64.urlsafe_b64encode(data).decode()}).execute()
    for form in ("full", "metadata", "minimal"):
        assert ann.get(made["id"], format=form)["id"] == made["id"]
    assert base64.urlsafe_b64decode(ann.get(made["id"], format="raw")["raw"]) == data
    ann.api.messages().send(
        userId="me", body={"raw": base64.urlsafe_b64encode(b"To: a@b.example\r\n" + data).decode()}
    ).execute()


@shows("messages.insert > messages.attachments.get")
def test_parts_attachments_and_formats(ann):
    pdf = bytes(range(256)) * 50
    made = (
        ann.api.messages()
        .insert(
            userId="me",
            body={
                "raw": raw(
                    "plain text",
                    html="<p>rich &amp; text</p>",
                    files=[("report.pdf", "application/pdf", pdf), ("größe.txt", "text/plain", b"x")],
                    subject="Grüße aus Köln",
                    to=ann.address,
                ),
                "labelIds": ["INBOX", "STARRED"],
            },
        )
        .execute()
    )
    message = ann.get(made["id"])
    assert header(message, "Subject") == "Grüße aus Köln"
    root = message["payload"]
    assert root["mimeType"] == "multipart/mixed" and root["body"] == {"size": 0} and root["partId"] == ""
    alternative, report, other = root["parts"]
    assert [one["partId"] for one in alternative["parts"]] == ["0.0", "0.1"]
    assert base64.urlsafe_b64decode(alternative["parts"][1]["body"]["data"]).strip() == b"<p>rich &amp; text</p>"
    assert report["filename"] == "report.pdf" and other["filename"] == "größe.txt" and "data" not in report["body"]
    got = (
        ann.api.messages()
        .attachments()
        .get(userId="me", messageId=made["id"], id=report["body"]["attachmentId"])
        .execute()
    )
    assert base64.urlsafe_b64decode(got["data"]) == pdf and got["size"] == report["body"]["size"] == len(pdf)
    refused(ann.api.messages().attachments().get(userId="me", messageId=made["id"], id="nope"), 400)

    assert "payload" not in ann.get(made["id"], format="minimal")
    some = ann.get(made["id"], format="metadata", metadataHeaders=["Subject", "to"])
    assert {one["name"] for one in some["payload"]["headers"]} == {"subject", "to"} and "body" not in some["payload"]
    whole = ann.get(made["id"], format="raw")
    assert b"report.pdf" in base64.urlsafe_b64decode(whole["raw"]) and "payload" not in whole
    assert whole["sizeEstimate"] == len(base64.urlsafe_b64decode(whole["raw"]))
    refused(ann.api.messages().get(userId="me", id="zz"), 400, "invalidArgument", "Invalid id value")
    refused(
        ann.api.messages().get(userId="me", id="19ffffffffffffff"), 404, "notFound", "Requested entity was not found."
    )


@shows("messages.trash messages.untrash > messages.list")
def test_labels_of_a_message(ann):
    message = ann.put()["id"]
    changed = ann.api.messages().modify(
        userId="me", id=message, body={"addLabelIds": ["STARRED"], "removeLabelIds": ["UNREAD"]}
    )
    assert changed.execute()["labelIds"] == ["INBOX", "STARRED"]
    assert ann.find("is:starred is:read in:inbox") == [message]
    for add in (["nope"], ["SENT"], ["DRAFT"]):
        refused(
            ann.api.messages().modify(userId="me", id=message, body={"addLabelIds": add}),
            400,
            "invalidArgument",
            f"Invalid label: {add[0]}",
        )
    refused(ann.api.messages().modify(userId="me", id=message, body={}), 400, text="No label add or removes specified")
    assert ann.get(message)["labelIds"] == ["INBOX", "STARRED"]

    trashed = ann.api.messages().trash(userId="me", id=message).execute()
    assert trashed["labelIds"] == ["STARRED", "TRASH"] and ann.find() == [] and ann.find("in:trash") == [message]
    assert ann.find(includeSpamTrash=True) == [message] == ann.find(labelIds=["TRASH"])
    ann.api.messages().untrash(userId="me", id=message).execute()
    assert ann.find() == [message] and "INBOX" not in ann.get(message)["labelIds"]
    ann.api.messages().delete(userId="me", id=message).execute()
    refused(ann.api.messages().get(userId="me", id=message), 404)
    refused(ann.api.messages().delete(userId="me", id=message), 404)


@shows("messages.batchDelete messages.batchModify > messages.list")
def test_batches_of_messages(ann):
    ids = [ann.put(subject=f"n{i}")["id"] for i in range(5)]
    ann.api.messages().batchModify(
        userId="me", body={"ids": ids[:3], "addLabelIds": ["IMPORTANT"], "removeLabelIds": ["UNREAD"]}
    ).execute()
    assert set(ann.find("is:important is:read")) == set(ids[:3])
    ann.api.messages().batchDelete(userId="me", body={"ids": [*ids[:2], "19ffffffffffffff"]}).execute()
    assert set(ann.find()) == set(ids[2:])
    refused(ann.api.messages().batchDelete(userId="me", body={"ids": []}), 400)
    refused(ann.api.messages().batchModify(userId="me", body={"ids": ids, "addLabelIds": ["nope"]}), 400)
    refused(ann.api.messages().batchDelete(userId="me", body={"ids": [f"19{i:014x}" for i in range(1001)]}), 400)


def test_pages(ann):
    ids = [ann.put(subject=f"page {i}", Date=f"Mon, 02 Mar 2026 0{i}:00:00 +0000")["id"] for i in range(7)]
    pages, request = [], ann.api.messages().list(userId="me", q="subject:page", maxResults=3)
    while request is not None:
        answer = request.execute()
        assert answer["resultSizeEstimate"] >= 7
        pages.append([one["id"] for one in answer["messages"]])
        if len(pages) == 1:
            ann.put(subject="page late", Date="Mon, 02 Mar 2026 23:00:00 +0000")
        request = ann.api.messages().list_next(request, answer)
    assert pages == [ids[:3:-1], ids[3:0:-1], ids[:1]]
    first = ann.api.messages().list(userId="me", maxResults=2).execute()["nextPageToken"]
    for token, q in (("garbage", ""), (first, "subject:page"), (first[:-2] + "AA", ""), ("12345678901234567890", "")):
        refused(ann.api.messages().list(userId="me", pageToken=token, q=q), 400, "invalidArgument", "Invalid pageToken")
    assert ann.api.messages().list(userId="me", q="subject:nothing").execute() == {"resultSizeEstimate": 0}
    refused(ann.api.messages().list(userId="me", labelIds=["nope"]), 400, text="Invalid label: nope")


@shows("messages.import > messages.get")
def test_import_keeps_dates_and_insert_may(ann):
    text = raw(subject="Old", Date="Fri, 01 Jan 2021 12:00:00 +0100", to=ann.address)
    imported = ann.api.messages().import_(userId="me", body={"raw": text}).execute()
    assert ann.get(imported["id"])["internalDate"] == "1609498800000"
    assert imported["labelIds"] == ["INBOX", "UNREAD"]
    inserted = ann.api.messages().insert(userId="me", body={"raw": text}).execute()
    assert int(ann.get(inserted["id"])["internalDate"]) > 1609498800000 and inserted["labelIds"] == []
    gone = ann.api.messages().insert(userId="me", body={"raw": text}, deleted=True).execute()
    refused(ann.api.messages().get(userId="me", id=gone["id"]), 404)


def test_uploads_of_every_kind(ann, server):
    text = b"To: x@y.example\r\nSubject: Uploaded\r\n\r\nbody"
    media = MediaInMemoryUpload(text, "message/rfc822")
    sent = ann.api.messages().send(userId="me", media_body=media).execute()
    assert header(ann.get(sent["id"]), "Subject") == "Uploaded"
    thread = ann.api.messages().send(userId="me", body={"threadId": sent["threadId"]}, media_body=media).execute()
    assert thread["threadId"] == sent["threadId"]
    large = text + b"\r\n" + b"x" * 700_000
    request = ann.api.messages().insert(
        userId="me",
        body={"labelIds": ["INBOX"]},
        media_body=MediaIoBaseUpload(io.BytesIO(large), "message/rfc822", chunksize=262144, resumable=True),
    )
    answer, steps = None, 0
    while answer is None:
        status, answer = request.next_chunk()
        steps += 1
    assert steps == 3 and answer["labelIds"] == ["INBOX"]
    assert base64.urlsafe_b64decode(ann.get(answer["id"], format="raw")["raw"]) == large
    status, error, _ = server.ask("PUT", "/upload/gmail/v1/users/me/messages?upload_id=nope", b"x", ann.address)
    assert status == 404 and error["error"]["code"] == 404
    draft = ann.api.drafts().create(userId="me", media_body=media).execute()
    assert ann.api.drafts().get(userId="me", id=draft["id"]).execute()["message"]["snippet"] == "body"


def test_bodies_of_50_megabytes(ann, server):
    body = b'{"raw": "' + b"A" * (50 * 1024 * 1024) + b'"}'
    status, error, _ = server.ask("POST", "/gmail/v1/users/me/messages/send", body, ann.address)
    assert status == 413 and error["error"]["errors"][0]["reason"] == "uploadTooLarge"
    head = {"Content-Type": "message/rfc822"}
    path = "/upload/gmail/v1/users/me/messages/send?uploadType=media"
    status, error, _ = server.ask(
        "POST", path, b"To: a@b.example\r\n\r\n" + b"x" * (50 * 1024 * 1024), ann.address, head
    )
    assert status == 413, error
    assert ann.find() == []
    assert server.ask("GET", "/health")[0] == 200


def test_http_batch_of_the_client(ann):
    ids = [ann.put(subject=f"b{i}")["id"] for i in range(3)]
    answers = {}
    batch = ann.service.new_batch_http_request(
        callback=lambda key, answer, error: answers.__setitem__(key, (answer, error))
    )
    for id in [*ids, "19ffffffffffffff"]:
        batch.add(ann.api.messages().get(userId="me", id=id, format="minimal"), request_id=id)
    batch.add(ann.api.messages().modify(userId="me", id=ids[0], body={"addLabelIds": ["STARRED"]}), request_id="star")
    batch.execute()
    assert [answers[id][0]["id"] for id in ids] == ids
    assert answers["19ffffffffffffff"][1].status_code == 404
    assert ann.find("is:starred") == [ids[0]]
    many = ann.service.new_batch_http_request()
    for number in range(101):
        many.add(ann.api.getProfile(userId="me"), request_id=str(number))
    with pytest.raises(HttpError, match="more than 100 calls"):
        many.execute()


def test_partial_answers_and_manners(ann, server):
    made = ann.put(subject="Fields")["id"]
    part = ann.api.messages().get(userId="me", id=made, fields="id,payload(headers(name,value),mimeType)").execute()
    assert set(part) == {"id", "payload"} and set(part["payload"]) == {"headers", "mimeType"}
    assert ann.api.messages().list(userId="me", fields="messages/id").execute() == {"messages": [{"id": made}]}
    for bad in ("nope", "messages(id", "messages/nope", ")("):
        refused(ann.api.messages().list(userId="me", fields=bad), 400, "invalidParameter")
    path = f"/gmail/v1/users/me/messages/{made}"
    labels = "/gmail/v1/users/me/labels"
    _, packed, headers = server.ask("GET", labels, token=ann.address, headers={"Accept-Encoding": "gzip"})
    assert (
        headers["content-encoding"] == "gzip"
        and json.loads(gzip.decompress(packed)) == server.ask("GET", labels, token=ann.address)[1]
    )
    body = gzip.compress(json.dumps({"name": "Zipped"}).encode())
    assert server.ask("POST", labels, body, ann.address, {"Content-Encoding": "gzip"})[1]["name"] == "Zipped"
    assert server.ask("POST", labels, b"not gzip", ann.address, {"Content-Encoding": "gzip"})[0] == 400
    assert server.ask("GET", path + "?prettyPrint=false", token=ann.address)[0] == 200
    assert server.ask("GET", path + "?alt=proto", token=ann.address)[0] == 400
    assert "errors" not in server.ask("GET", "/gmail/v1/users/me/messages/zz?$.xgafv=2", token=ann.address)[1]["error"]
    assert server.ask("GET", path + "?nope=1", token=ann.address)[1]["error"]["message"].startswith(
        "Invalid JSON payload received"
    )
    assert server.ask("GET", path + "?format=loud", token=ann.address)[0] == 400
    assert server.ask("GET", "/gmail/v1/users/me/messages?maxResults=many", token=ann.address)[0] == 400
    assert server.ask("GET", "/gmail/v1/users/me/messages?maxResults=-1", token=ann.address)[0] == 400
    assert server.ask("GET", "/gmail/v1/nowhere")[0] == 404
    status, error, _ = server.ask("GET", "/gmail/v1/users/me/settings/cse/keypairs")
    assert status == 501 and error["error"]["status"] == "UNIMPLEMENTED"
    long = ann.api.messages().list(userId="me", q="subject:fields " + "-nothing " * 400).execute()
    assert [one["id"] for one in long["messages"]] == [made]
