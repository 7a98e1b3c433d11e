"""Single events through the official client; an effect counts only when another method sees it."""

from __future__ import annotations

import pytest
from benchflow_claw_kit.effects import shows

from .conftest import refused, when, zoned


def test_an_event_as_the_real_one_looks(ann):
    made = ann.insert(summary="Review", location="Room 1", description="Bring notes")
    got = ann.get(made["id"])
    assert got == made and got["kind"] == "calendar#event" and got["status"] == "confirmed"
    assert got["start"] == {"dateTime": "2026-03-10T10:00:00Z", "timeZone": "UTC"}
    assert got["creator"] == got["organizer"] == {"email": ann.address, "self": True}
    assert got["iCalUID"] == f"{got['id']}@google.com" and got["reminders"] == {"useDefault": True}
    assert got["eventType"] == "default" and got["sequence"] == 0 and got["htmlLink"].startswith("https://")
    assert ann.get(made["id"], timeZone="Asia/Tokyo")["start"]["dateTime"] == "2026-03-10T19:00:00+09:00"
    assert ann.names(q="room 1 REVIEW") == ["Review"] and ann.names(q="nothing") == []
    day = ann.insert(start="2026-03-12", end="2026-03-13", summary="All day")
    assert day["start"] == {"date": "2026-03-12"} and ann.get(day["id"])["end"] == {"date": "2026-03-13"}


@pytest.mark.parametrize(
    ("body", "reason", "text"),
    [
        ({}, "required", "Missing start time."),
        ({"start": when("2026-03-10T10:00:00Z")}, "required", "Missing end time."),
        (
            {"start": when("2026-03-10"), "end": when("2026-03-10T11:00:00Z")},
            "invalid",
            "both be date or both be dateTime",
        ),
        (
            {"start": when("2026-03-10T10:00:00Z"), "end": when("2026-03-10T09:00:00Z")},
            "timeRangeEmpty",
            "range is empty",
        ),
        ({"start": when("2026-03-10T10:00:00"), "end": when("2026-03-10T11:00:00")}, "required", "Missing time zone"),
        ({"start": when("tomorrow"), "end": when("2026-03-10T11:00:00Z")}, "invalid", "Invalid format"),
        ({"start": when("2026-13-45"), "end": when("2026-13-46")}, "invalid", "Invalid format"),
        (
            {"start": zoned("2026-03-10T10:00:00", "Mars/Olympus"), "end": when("2026-03-10T11:00:00Z")},
            "invalid",
            "time zone",
        ),
        (
            {"start": zoned("2026-03-10T10:00:00", "../etc/passwd"), "end": when("2026-03-10T11:00:00Z")},
            "invalid",
            "time zone",
        ),
        ({"id": "UPPER"}, "invalid", "Invalid resource id value."),
        ({"attendees": [{"email": "nobody"}]}, "invalid", "Invalid attendee email."),
        ({"attendees": [{"displayName": "x"}]}, "invalid", "Invalid attendee email."),
        ({"recurrence": ["RRULE:FREQ=SOMETIMES"]}, "invalid", "Invalid recurrence rule."),
        ({"recurrence": ["FREQ=DAILY"]}, "invalid", "Invalid recurrence rule."),
        ({"recurrence": ["RRULE:FREQ=DAILY;BYDAY=XX"]}, "invalid", "Invalid recurrence rule."),
        ({"recurrence": ["RRULE:FREQ=DAILY;COUNT=many"]}, "invalid", "Invalid recurrence rule."),
        ({"recurrence": ["RRULE:FREQ=SECONDLY"]}, "invalid", "Invalid recurrence rule."),
        ({"recurrence": ["EXDATE:yesterday"]}, "invalid", "Invalid recurrence rule."),
        ({"visibility": "loud"}, "invalid", None),
        ({"colorId": "99"}, "invalid", None),
        ({"status": "maybe"}, "invalid", None),
        (
            {"reminders": {"useDefault": True, "overrides": [{"method": "popup", "minutes": 5}]}},
            "cannotUseDefaultRemindersAndSpecifyOverride",
            None,
        ),
        ({"reminders": {"useDefault": False, "overrides": [{"method": "sms", "minutes": 5}]}}, "invalid", None),
        ({"attendees": "everyone"}, None, None),
        ({"start": "10 o'clock"}, None, None),
    ],
)
def test_what_is_refused(ann, body, reason, text):
    good = {"start": zoned("2026-03-10T10:00:00"), "end": zoned("2026-03-10T11:00:00")}
    whole = body if "start" in body or not body else {**good, **body}
    refused(ann.events.insert(calendarId="primary", body=whole), 400, reason, text)
    assert ann.list()["items"] == []


def test_ids(ann):
    made = ann.insert(id="abc123ef", summary="Mine")
    assert made["id"] == "abc123ef"
    refused(
        ann.events.insert(
            calendarId="primary", body={"id": "abc123ef", "start": when("2026-03-10"), "end": when("2026-03-11")}
        ),
        409,
        "duplicate",
    )
    refused(ann.events.get(calendarId="primary", eventId="nothing"), 404, "notFound", "Not Found")
    refused(ann.events.get(calendarId="nobody@nowhere.example", eventId="x"), 404, "notFound")
    refused(ann.events.delete(calendarId="primary", eventId="nothing_20260101"), 404)


@shows("events.update > events.get")
def test_patch_keeps_and_update_replaces(ann):
    made = ann.insert(
        summary="A", location="Here", description="Text", extendedProperties={"private": {"a": "1", "b": "2"}}
    )
    changed = ann.patch(made["id"], summary="B", location=None, extendedProperties={"private": {"b": None, "c": "3"}})
    got = ann.get(made["id"])
    assert got == changed and got["summary"] == "B" and "location" not in got and got["description"] == "Text"
    assert got["extendedProperties"] == {"private": {"a": "1", "c": "3"}} and got["etag"] != made["etag"]
    assert got["sequence"] == 0 and got["created"] == made["created"] and got["updated"] > made["updated"]
    moved = ann.patch(made["id"], start={"dateTime": "2026-03-10T09:00:00Z"})
    assert moved["sequence"] == 1 and moved["end"] == made["end"]
    body = {"summary": "C", "start": when("2026-03-11"), "end": when("2026-03-12")}
    ann.events.update(calendarId="primary", eventId=made["id"], body=body).execute()
    got = ann.get(made["id"])
    assert "description" not in got and "extendedProperties" not in got and got["start"] == {"date": "2026-03-11"}
    again = ann.patch(made["id"], start={"dateTime": "2026-03-10T09:00:00Z"}, end={"dateTime": "2026-03-10T09:30:00Z"})
    assert again["start"]["dateTime"] == "2026-03-10T09:00:00Z"
    refused(ann.events.update(calendarId="primary", eventId=made["id"], body={"summary": "D"}), 400, "required")
    refused(
        ann.events.patch(calendarId="primary", eventId=made["id"], body={"sequence": 0}),
        400,
        "invalid",
        "Invalid sequence value",
    )


def test_concurrent_edits(ann):
    made = ann.insert(summary="Contested")
    first = ann.events.patch(calendarId="primary", eventId=made["id"], body={"summary": "First"})
    second = ann.events.patch(calendarId="primary", eventId=made["id"], body={"summary": "Second"})
    for request in (first, second):
        request.headers["If-Match"] = made["etag"]
    first.execute()
    error = refused(second, 412, "conditionNotMet", "Precondition Failed")
    assert error["location"] == "If-Match" and ann.get(made["id"])["summary"] == "First"
    second.headers["If-Match"] = ann.get(made["id"])["etag"]
    second.execute()
    assert ann.get(made["id"])["summary"] == "Second"
    delete = ann.events.delete(calendarId="primary", eventId=made["id"])
    delete.headers["If-Match"] = '"0"'
    refused(delete, 412)
    status, _, _ = ann.server.ask(
        "GET",
        f"/calendar/v3/calendars/primary/events/{made['id']}",
        token=ann.address,
        headers={"If-None-Match": ann.get(made["id"])["etag"]},
    )
    assert status == 304


@shows("events.delete > events.get")
def test_deleting(ann):
    made = ann.insert(summary="Gone")
    ann.events.delete(calendarId="primary", eventId=made["id"]).execute()
    assert ann.get(made["id"])["status"] == "cancelled"
    assert ann.list()["items"] == [] and [e["status"] for e in ann.list(showDeleted=True)["items"]] == ["cancelled"]
    refused(ann.events.delete(calendarId="primary", eventId=made["id"]), 410, "deleted", "Resource has been deleted")
    ann.patch(made["id"], status="confirmed")
    assert ann.names() == ["Gone"]


def test_times_orders_and_filters(ann):
    for day in (12, 10, 11):
        ann.insert(start=f"2026-03-{day}T10:00:00Z", end=f"2026-03-{day}T11:00:00Z", summary=f"d{day}")
    span = {"timeMin": "2026-03-10T11:00:00Z", "timeMax": "2026-03-12T10:00:00Z"}
    assert ann.names(**span) == ["d11"]
    assert ann.names(timeMin="2026-03-10T10:59:59Z", singleEvents=True, orderBy="startTime") == ["d10", "d11", "d12"]
    assert ann.names(orderBy="updated") == ["d12", "d10", "d11"]
    refused(ann.events.list(calendarId="primary", orderBy="startTime"), 400, "badRequest", "ordering is not available")
    refused(ann.events.list(calendarId="primary", timeMin="2026-03-10T10:00:00"), 400, "badRequest")
    refused(
        ann.events.list(calendarId="primary", timeMin="2026-03-12T00:00:00Z", timeMax="2026-03-11T00:00:00Z"),
        400,
        "timeRangeEmpty",
    )
    refused(ann.events.list(calendarId="primary", timeZone="Nowhere"), 400, "invalid")
    ann.insert(summary="tagged", extendedProperties={"private": {"k": "v"}, "shared": {"s": "1"}})
    assert ann.names(privateExtendedProperty="k=v") == ["tagged"] == ann.names(sharedExtendedProperty=["s=1"])
    assert ann.names(privateExtendedProperty=["k=v", "k=w"]) == []
    [one] = ann.list(q="tagged")["items"]
    assert ann.names(iCalUID=one["iCalUID"]) == ["tagged"] and ann.names(updatedMin=one["updated"]) == ["tagged"]
    focus = ann.insert(summary="focus", eventType="focusTime")
    assert ann.names(eventTypes=["focusTime"]) == ["focus"] and ann.get(focus["id"])["eventType"] == "focusTime"


def test_pages(ann):
    for number in range(7):
        ann.insert(summary=f"n{number}")
    seen, request = [], ann.events.list(calendarId="primary", maxResults=3)
    while request is not None:
        answer = request.execute()
        seen.append([event["summary"] for event in answer["items"]])
        assert ("nextPageToken" in answer) != ("nextSyncToken" in answer)
        request = ann.events.list_next(request, answer)
    assert seen == [["n0", "n1", "n2"], ["n3", "n4", "n5"], ["n6"]]
    token = ann.list(maxResults=3)["nextPageToken"]
    for bad, options in (("garbage", {}), (token, {"q": "n"}), (token[:-1], {})):
        refused(ann.events.list(calendarId="primary", pageToken=bad, **options), 400, "invalid", "page token")
    refused(ann.events.list(calendarId="primary", maxResults=0), 400, "invalidParameter")


@shows("calendars.clear > events.list")
def test_sync_tokens(ann):
    keep, drop = ann.insert(summary="keep"), ann.insert(summary="drop")
    token = ann.list()["nextSyncToken"]
    assert ann.list(syncToken=token)["items"] == []
    ann.patch(keep["id"], summary="kept")
    ann.events.delete(calendarId="primary", eventId=drop["id"]).execute()
    new = ann.insert(summary="new")
    answer = ann.list(syncToken=token)
    assert {(e["id"], e["status"]) for e in answer["items"]} == {
        (keep["id"], "confirmed"),
        (drop["id"], "cancelled"),
        (new["id"], "confirmed"),
    }
    assert ann.list(syncToken=answer["nextSyncToken"])["items"] == []
    error = refused(
        ann.events.list(calendarId="primary", syncToken="CPDAlvWDx70CEPDAlvWDx70CGAU="),
        410,
        "fullSyncRequired",
        "full sync is required",
    )
    assert error["domain"] == "calendar" and error["location"] == "syncToken"
    refused(ann.events.list(calendarId="primary", syncToken="not a token!"), 400, "invalid")
    refused(ann.events.list(calendarId="primary", syncToken=token, q="x"), 400)
    ann.api.calendars().clear(calendarId="primary").execute()
    refused(ann.events.list(calendarId="primary", syncToken=answer["nextSyncToken"]), 410)
    assert ann.list()["items"] == []


def test_guests_and_their_answers(ann, bob):
    made = ann.insert(
        summary="Party", attendees=[{"email": bob.address.upper()}, {"email": "far@away.example", "optional": True}]
    )
    theirs = bob.get(made["id"])
    mine = {one["email"]: one for one in theirs["attendees"]}
    assert mine[bob.address] == {"email": bob.address, "responseStatus": "needsAction", "self": True}
    assert theirs["organizer"] == {"email": ann.address} and theirs["iCalUID"] == made["iCalUID"]
    guests = [
        {**one, **({"responseStatus": "accepted", "comment": "Yes"} if one["email"] == bob.address else {})}
        for one in theirs["attendees"]
    ]
    bob.patch(made["id"], attendees=guests, colorId="5")
    at_ann = {one["email"]: one for one in ann.get(made["id"])["attendees"]}
    assert at_ann[bob.address]["responseStatus"] == "accepted" and at_ann[bob.address]["comment"] == "Yes"
    assert "colorId" not in ann.get(made["id"]) and bob.get(made["id"])["colorId"] == "5"
    refused(
        bob.events.patch(calendarId="primary", eventId=made["id"], body={"summary": "Mine now"}),
        403,
        "forbiddenForNonOrganizer",
    )
    ann.patch(made["id"], summary="Big party")
    assert bob.get(made["id"])["summary"] == "Big party" and bob.get(made["id"])["colorId"] == "5"
    bob.events.delete(calendarId="primary", eventId=made["id"]).execute()
    assert {one["responseStatus"] for one in ann.get(made["id"])["attendees"] if one["email"] == bob.address} == {
        "declined"
    }
    assert bob.get(made["id"])["status"] == "cancelled" and ann.get(made["id"])["status"] == "confirmed"
    other = ann.insert(summary="Short", attendees=[{"email": bob.address}])
    ann.patch(other["id"], attendees=[])
    assert bob.get(other["id"])["status"] == "cancelled"
    third = ann.insert(
        summary="Third", attendees=[{"email": bob.address}, {"email": "a@b.example"}, {"email": "c@d.example"}]
    )
    few = ann.get(third["id"], maxAttendees=1)
    assert few["attendeesOmitted"] and few["attendees"] == []
    ann.events.delete(calendarId="primary", eventId=third["id"]).execute()
    assert bob.get(third["id"])["status"] == "cancelled"


def test_conferences_and_attachments(ann):
    request = {"createRequest": {"requestId": "r1", "conferenceSolutionKey": {"type": "hangoutsMeet"}}}
    without = ann.insert(conferenceData=request)
    assert "conferenceData" not in ann.get(without["id"])
    made = ann.insert(conferenceData=request, options={"conferenceDataVersion": 1})
    got = ann.get(made["id"])
    assert got["hangoutLink"].startswith("https://meet.google.com/") and got["conferenceData"]["createRequest"][
        "status"
    ] == {"statusCode": "success"}
    ann.events.update(
        calendarId="primary", eventId=made["id"], body={"start": got["start"], "end": got["end"]}
    ).execute()
    assert ann.get(made["id"])["hangoutLink"] == got["hangoutLink"]
    ann.patch(made["id"], options={"conferenceDataVersion": 1}, conferenceData=None)
    assert "hangoutLink" not in ann.get(made["id"])
    file = [{"fileUrl": "https://drive.google.com/file/1", "title": "Notes"}]
    assert "attachments" not in ann.insert(attachments=file)
    assert ann.get(ann.insert(attachments=file, options={"supportsAttachments": True})["id"])["attachments"] == file


@shows("events.import events.move > events.list")
def test_move_and_import(ann):
    other = ann.api.calendars().insert(body={"summary": "Other"}).execute()["id"]
    made = ann.insert(summary="Wanders")
    moved = ann.events.move(calendarId="primary", eventId=made["id"], destination=other).execute()
    assert moved["organizer"]["email"] == other and ann.names(other) == ["Wanders"] and ann.names() == []
    refused(ann.events.move(calendarId=other, eventId=made["id"], destination="no@where.example"), 404)
    body = {
        "iCalUID": "u1@x",
        "summary": "In",
        "start": when("2026-03-10"),
        "end": when("2026-03-11"),
        "organizer": {"email": "boss@big.example"},
    }
    first = ann.events.import_(calendarId="primary", body=body).execute()
    second = ann.events.import_(calendarId="primary", body={**body, "summary": "In again"}).execute()
    assert first["id"] == second["id"] and ann.names(iCalUID="u1@x") == ["In again"]
    assert ann.get(first["id"])["organizer"] == {"email": "boss@big.example"}
    refused(ann.events.import_(calendarId="primary", body={**body, "iCalUID": ""}), 400, "required")


@pytest.mark.parametrize(
    ("text", "summary", "start", "end"),
    [
        ("Lunch with Bo tomorrow at 12:30", "Lunch with Bo", "2026-03-03T12:30:00Z", "2026-03-03T13:30:00Z"),
        (
            "Appointment at Somewhere on June 3rd 10am-10:25am",
            "Appointment",
            "2026-06-03T10:00:00Z",
            "2026-06-03T10:25:00Z",
        ),
        ("Call Eva Thursday 3pm for 30 minutes", "Call Eva", "2026-03-05T15:00:00Z", "2026-03-05T15:30:00Z"),
        ("Review 2026-04-01 from 9 to 11am", "Review", "2026-04-01T09:00:00Z", "2026-04-01T11:00:00Z"),
    ],
)
@shows("events.quickAdd > events.get")
def test_quick_add(ann, text, summary, start, end):
    made = ann.events.quickAdd(calendarId="primary", text=text).execute()
    got = ann.get(made["id"])
    assert (got["summary"], got["start"]["dateTime"], got["end"]["dateTime"]) == (summary, start, end)
    if "Somewhere" in text:
        assert got["location"] == "Somewhere"


def test_quick_add_of_days_and_series(ann):
    day = ann.events.quickAdd(calendarId="primary", text="Holiday on May 1").execute()
    assert day["start"] == {"date": "2026-05-01"}
    series = ann.events.quickAdd(calendarId="primary", text="Gym every Tuesday at 7am").execute()
    assert (
        series["recurrence"] == ["RRULE:FREQ=WEEKLY;BYDAY=TU"] and series["start"]["dateTime"] == "2026-03-03T07:00:00Z"
    )
    refused(ann.events.quickAdd(calendarId="primary", text=" "), 400)
    for text in ("25:99 party", "31/31", "at at at", "every", "🎉 tomorrow", "x" * 5000):
        request = ann.events.quickAdd(calendarId="primary", text=text)
        try:
            request.execute()
        except Exception as error:
            assert error.status_code == 400


def test_manners(ann, server):
    made = ann.insert(summary="Fields", attendees=[{"email": "x@y.example"}])
    assert ann.list(fields="items(id,attendees/email)")["items"] == [
        {"id": made["id"], "attendees": [{"email": "x@y.example"}]}
    ]
    refused(
        ann.events.list(calendarId="primary", fields="items(nope)"),
        400,
        "invalidParameter",
        "Invalid field selection nope",
    )
    path = "/calendar/v3/calendars/primary/events"
    for body in (b"{", b"[]", b"\xff", b"[" * 50_000):
        assert server.ask("POST", path, body, ann.address)[0] == 400
    status, error, _ = server.ask("POST", path, b'{"summary": "' + b"x" * (50 * 1024 * 1024) + b'"}', ann.address)
    assert status == 413 and error["error"]["code"] == 413
    status, error, _ = server.ask("GET", path, token=f"{ann.address};calendar.acls.readonly")
    assert status == 403 and error["error"]["errors"][0]["reason"] == "insufficientPermissions"
    assert server.ask("GET", path, token=f"{ann.address};calendar.readonly")[0] == 200
    assert server.ask("POST", path, {}, token=f"{ann.address};calendar.readonly")[0] == 403
    answers = []
    batch = ann.api.new_batch_http_request(callback=lambda key, answer, error: answers.append((answer, error)))
    batch.add(ann.events.get(calendarId="primary", eventId=made["id"]))
    batch.add(ann.events.get(calendarId="primary", eventId="missing"))
    batch.add(ann.events.quickAdd(calendarId="primary", text="Batch tomorrow at 9am"))
    batch.execute()
    assert answers[0][0]["summary"] == "Fields" and answers[1][1].status_code == 404
    assert "Batch" in ann.names()
