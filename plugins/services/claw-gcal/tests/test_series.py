"""Recurring events: expansion, exceptions, zones."""

from __future__ import annotations

import pytest
from benchflow_claw_kit.effects import shows

from .conftest import refused, when, zoned


def series(user, rule="RRULE:FREQ=WEEKLY;COUNT=4", start="2026-03-16T09:00:00", **body):
    end = start[:11] + "10:00:00"
    return user.insert(start=zoned(start), end=zoned(end), recurrence=[rule] if isinstance(rule, str) else rule, **body)


def starts(events):
    return [event["start"].get("dateTime", event["start"].get("date")) for event in events]


@shows("events.insert > events.instances")
def test_a_meeting_at_nine_stays_at_nine(ann):
    made = series(ann, summary="Weekly")
    got = ann.events.instances(calendarId="primary", eventId=made["id"], timeZone="Europe/Berlin").execute()["items"]
    assert starts(got) == [
        f"2026-{day}T09:00:00+0{offset}:00" for day, offset in (("03-16", 1), ("03-23", 1), ("03-30", 2), ("04-06", 2))
    ]
    assert got[2]["id"] == f"{made['id']}_20260330T070000Z" and got[2]["recurringEventId"] == made["id"]
    assert got[2]["originalStartTime"] == got[2]["start"] and "recurrence" not in got[2]
    assert ann.get(got[2]["id"])["start"] == {"dateTime": "2026-03-30T07:00:00Z", "timeZone": "Europe/Berlin"}
    refused(ann.events.get(calendarId="primary", eventId=f"{made['id']}_20260331T070000Z"), 404)
    [master] = ann.list()["items"]
    assert master["recurrence"] == ["RRULE:FREQ=WEEKLY;COUNT=4"] and master["id"] == made["id"]
    assert len(ann.list(singleEvents=True)["items"]) == 4
    span = {"timeMin": "2026-03-20T00:00:00Z", "timeMax": "2026-03-31T00:00:00Z"}
    assert len(ann.list(singleEvents=True, **span)["items"]) == 2 and len(ann.list(**span)["items"]) == 1
    assert ann.list(timeMin="2026-05-01T00:00:00Z")["items"] == []


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (["RRULE:FREQ=DAILY;UNTIL=20260318T080000Z"], ["03-16", "03-17", "03-18"]),
        (["RRULE:FREQ=DAILY;UNTIL=20260318T075959Z"], ["03-16", "03-17"]),
        (["RRULE:FREQ=DAILY;UNTIL=20260318"], ["03-16", "03-17", "03-18"]),
        (["RRULE:FREQ=WEEKLY;BYDAY=MO,WE;COUNT=3"], ["03-16", "03-18", "03-23"]),
        (["RRULE:FREQ=MONTHLY;BYDAY=3MO;COUNT=2"], ["03-16", "04-20"]),
        (["RRULE:FREQ=DAILY;COUNT=3", "EXDATE;TZID=Europe/Berlin:20260317T090000"], ["03-16", "03-18"]),
        (["RRULE:FREQ=DAILY;COUNT=2", "EXDATE:20260316T080000Z"], ["03-17"]),
        (["RDATE;TZID=Europe/Berlin:20260401T090000,20260402T090000"], ["03-16", "04-01", "04-02"]),
        (["RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"], []),
        (["RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"], []),
    ],
)
def test_rules(ann, rules, expected):
    made = series(ann, rules)
    got = ann.events.instances(calendarId="primary", eventId=made["id"], timeZone="Europe/Berlin").execute()["items"]
    assert [text[5:10] for text in starts(got)] == expected


def test_one_instance_changed_one_deleted(ann):
    made = series(ann, summary="Weekly")
    items = ann.events.instances(calendarId="primary", eventId=made["id"]).execute()["items"]
    ann.patch(items[1]["id"], summary="Special", start=zoned("2026-03-24T15:00:00"), end=zoned("2026-03-24T16:00:00"))
    ann.events.delete(calendarId="primary", eventId=items[2]["id"]).execute()
    got = ann.list(singleEvents=True, orderBy="startTime")["items"]
    assert [event["summary"] for event in got] == ["Weekly", "Special", "Weekly"]
    assert (
        got[1]["originalStartTime"]["dateTime"] == "2026-03-23T08:00:00Z" and starts(got)[1] == "2026-03-24T14:00:00Z"
    )
    plain = ann.list()["items"]
    assert {(e["id"], e["status"]) for e in plain} == {
        (made["id"], "confirmed"),
        (items[1]["id"], "confirmed"),
        (items[2]["id"], "cancelled"),
    }
    assert set(ann.get(items[2]["id"])) == {"kind", "etag", "id", "status", "recurringEventId", "originalStartTime"}
    hidden = ann.events.instances(calendarId="primary", eventId=made["id"], showDeleted=True).execute()["items"]
    assert len(hidden) == 4
    [one] = ann.events.instances(
        calendarId="primary", eventId=made["id"], originalStart="2026-03-23T08:00:00Z"
    ).execute()["items"]
    assert one["summary"] == "Special"
    refused(
        ann.events.move(calendarId="primary", eventId=items[0]["id"], destination="primary"),
        400,
        "cannotChangeOrganizerOfInstance",
    )
    ann.patch(made["id"], summary="Renamed")
    assert [e["summary"] for e in ann.list(singleEvents=True, orderBy="startTime")["items"]] == [
        "Renamed",
        "Special",
        "Renamed",
    ]
    ann.patch(made["id"], recurrence=["RRULE:FREQ=WEEKLY;UNTIL=20260317T000000Z"])
    assert len(ann.list(singleEvents=True)["items"]) == 1
    ann.events.delete(calendarId="primary", eventId=made["id"]).execute()
    assert ann.list(singleEvents=True)["items"] == []


def test_all_day_and_endless(ann):
    made = ann.insert(start="2026-03-02", end="2026-03-03", recurrence=["RRULE:FREQ=WEEKLY"], summary="Bins")
    got = ann.list(singleEvents=True, timeMin="2026-03-08T00:00:00Z", timeMax="2026-03-20T00:00:00Z")["items"]
    assert starts(got) == ["2026-03-09", "2026-03-16"] and got[0]["id"] == f"{made['id']}_20260309"
    assert 100 <= len(ann.list(singleEvents=True, maxResults=2500)["items"]) <= 110
    refused(
        ann.events.insert(
            calendarId="primary",
            body={
                "start": when("2026-03-10T10:00:00Z"),
                "end": when("2026-03-10T11:00:00Z"),
                "recurrence": ["RRULE:FREQ=DAILY"],
            },
        ),
        400,
        "required",
        "Missing time zone definition for start time.",
    )


def test_sync_sees_series(ann):
    token = ann.list(singleEvents=True)["nextSyncToken"]
    made = series(ann, summary="New")
    answer = ann.list(singleEvents=True, syncToken=token)
    assert len(answer["items"]) == 4
    ann.events.delete(calendarId="primary", eventId=answer["items"][1]["id"]).execute()
    later = ann.list(singleEvents=True, syncToken=answer["nextSyncToken"])["items"]
    assert [(e["id"], e["status"]) for e in later] == [(answer["items"][1]["id"], "cancelled")]
    assert made["id"] == later[0]["recurringEventId"]


def test_guests_of_a_series(ann, bob):
    made = series(ann, summary="Course", attendees=[{"email": bob.address}])
    assert len(bob.list(singleEvents=True)["items"]) == 4
    second = bob.list(singleEvents=True, orderBy="startTime")["items"][1]
    answer = [{"email": bob.address, "responseStatus": "declined"}]
    bob.patch(second["id"], attendees=answer)
    assert ann.get(second["id"])["attendees"][0]["responseStatus"] == "declined"
    assert ann.get(made["id"])["attendees"][0]["responseStatus"] == "needsAction"
    ann.events.delete(calendarId="primary", eventId=second["id"]).execute()
    assert len(bob.list(singleEvents=True)["items"]) == 3
