"""Calendars, their list, sharing, settings, colours, free and busy, channels."""

from __future__ import annotations

from benchflow_claw_kit.effects import shows
from benchflow_claw_kit.testing import google_client

from .conftest import refused, zoned


@shows(
    "calendars.insert calendars.patch calendars.update calendars.delete > calendars.get",
    "events.insert > events.list",
)
def test_calendars(ann):
    calendars = ann.api.calendars()
    assert calendars.get(calendarId="primary").execute()["id"] == ann.address
    made = calendars.insert(body={"summary": "Work", "timeZone": "Europe/Berlin", "description": "d"}).execute()
    assert made["id"].endswith("@group.calendar.google.com") and made["kind"] == "calendar#calendar"
    assert calendars.get(calendarId=made["id"]).execute() == made
    calendars.patch(calendarId=made["id"], body={"location": "Köln"}).execute()
    assert calendars.get(calendarId=made["id"]).execute()["location"] == "Köln"
    calendars.update(calendarId=made["id"], body={"summary": "Job"}).execute()
    after = calendars.get(calendarId=made["id"]).execute()
    assert after["summary"] == "Job" and "location" not in after and "description" not in after
    stale = calendars.patch(calendarId=made["id"], body={"summary": "X"})
    stale.headers["If-Match"] = made["etag"]
    refused(stale, 412)
    refused(calendars.insert(body={}), 400, "required")
    refused(calendars.insert(body={"summary": "x", "timeZone": "No/Where"}), 400)
    ann.insert(
        calendar=made["id"], start=zoned("2026-03-10T10:00:00"), end=zoned("2026-03-10T11:00:00"), summary="In Job"
    )
    assert ann.list(made["id"])["items"][0]["organizer"] == {"email": made["id"], "displayName": "Job", "self": True}
    assert ann.list(made["id"])["timeZone"] == "Europe/Berlin"
    calendars.delete(calendarId=made["id"]).execute()
    refused(calendars.get(calendarId=made["id"]), 404, "notFound")
    refused(calendars.delete(calendarId="primary"), 400, "cannotDeletePrimaryCalendar")
    refused(calendars.clear(calendarId=calendars.insert(body={"summary": "y"}).execute()["id"]), 400)


@shows("calendars.transferOwnership > calendars.get")
def test_an_administrator_gives_a_calendar_to_somebody_else(server, ann, bob):
    made = ann.api.calendars().insert(body={"summary": "Ours"}).execute()
    assert made["dataOwner"] == ann.address
    admin = google_client("calendar", "v3", server.url).calendars()
    refused(admin.get(calendarId=made["id"]), 404)
    ask = {"calendarId": made["id"], "newDataOwner": bob.address, "useAdminAccess": True}
    refused(ann.api.calendars().transferOwnership(**ask), 403, "forbidden")
    refused(admin.transferOwnership(**{**ask, "useAdminAccess": False}), 400)
    refused(admin.transferOwnership(**{**ask, "newDataOwner": "x@elsewhere.example"}), 400)
    refused(admin.transferOwnership(**{**ask, "calendarId": ann.address}), 400)
    refused(admin.transferOwnership(**{**ask, "calendarId": "nope"}), 404)
    admin.transferOwnership(**ask).execute()
    assert bob.api.calendars().get(calendarId=made["id"]).execute()["dataOwner"] == bob.address
    assert bob.api.calendarList().get(calendarId=made["id"]).execute()["accessRole"] == "owner"
    ann.api.calendars().patch(calendarId=made["id"], body={"summary": "Still mine to manage"}).execute()


@shows(
    "calendarList.insert calendarList.patch calendarList.delete > calendarList.get",
    "calendarList.patch > calendarList.list",
    "calendarList.update > events.list",
)
def test_the_list(ann):
    entries = ann.api.calendarList()
    first = entries.list().execute()
    assert [one["primary"] for one in first["items"]] == [True] and first["items"][0]["accessRole"] == "owner"
    made = ann.api.calendars().insert(body={"summary": "Second"}).execute()["id"]
    entries.patch(calendarId=made, body={"summaryOverride": "2nd", "hidden": True, "colorId": "3"}).execute()
    got = entries.get(calendarId=made).execute()
    assert got["summaryOverride"] == "2nd" and got["backgroundColor"] == "#f83a22"
    assert len(entries.list().execute()["items"]) == 1 and len(entries.list(showHidden=True).execute()["items"]) == 2
    entries.update(calendarId=made, body={"defaultReminders": [{"method": "email", "minutes": 10}]}).execute()
    assert ann.list(made)["defaultReminders"] == [{"method": "email", "minutes": 10}]
    rgb = entries.patch(
        calendarId=made, body={"backgroundColor": "#16a766", "foregroundColor": "#ffffff"}, colorRgbFormat=True
    ).execute()
    assert rgb["colorId"] == "8" and rgb["backgroundColor"] == "#16a766"
    changed = entries.list(syncToken=first["nextSyncToken"]).execute()["items"]
    assert [one["id"] for one in changed] == [made]
    entries.delete(calendarId=made).execute()
    refused(entries.get(calendarId=made), 404)
    assert ann.api.calendars().get(calendarId=made).execute()["id"] == made
    entries.insert(body={"id": made, "colorId": "5"}).execute()
    assert entries.get(calendarId=made).execute()["colorId"] == "5"
    refused(entries.insert(body={"id": "no@where.example"}), 404)
    refused(entries.insert(body={}), 400, "required")
    refused(entries.patch(calendarId=made, body={"colorId": "77"}), 400)
    refused(entries.delete(calendarId="primary"), 400)
    pages = entries.list(maxResults=1).execute()
    assert len(entries.list(maxResults=1, pageToken=pages["nextPageToken"]).execute()["items"]) == 1
    refused(entries.list(syncToken="AAAAexpired"), 410, "fullSyncRequired")


@shows(
    "acl.insert acl.delete > acl.get",
    "acl.patch > events.list",
    "acl.update acl.delete > acl.list",
    "events.patch > events.get",
)
def test_sharing(ann, bob):
    acl = ann.api.acl()
    made = ann.insert(summary="Secret", visibility="private")
    ann.insert(summary="Open")
    refused(bob.events.list(calendarId=ann.address), 404, "notFound")
    rule = acl.insert(
        calendarId="primary", body={"role": "freeBusyReader", "scope": {"type": "user", "value": bob.address}}
    ).execute()
    assert rule["id"] == f"user:{bob.address}" and acl.get(calendarId="primary", ruleId=rule["id"]).execute() == rule
    assert bob.names(ann.address) == [None, None]
    assert ann.address in [one["id"] for one in bob.api.calendarList().list().execute()["items"]]
    acl.patch(calendarId="primary", ruleId=rule["id"], body={"role": "reader"}).execute()
    assert bob.names(ann.address) == [None, "Open"] and bob.list(ann.address)["accessRole"] == "reader"
    refused(
        bob.events.insert(calendarId=ann.address, body={}),
        403,
        "requiredAccessLevel",
        "You need to have writer access to this calendar.",
    )
    refused(bob.api.acl().list(calendarId=ann.address), 403, "requiredAccessLevel")
    acl.update(calendarId="primary", ruleId=rule["id"], body={"role": "writer", "scope": rule["scope"]}).execute()
    bob.patch(made["id"], calendar=ann.address, summary="Known")
    assert ann.get(made["id"])["summary"] == "Known"
    before = acl.list(calendarId="primary").execute()
    assert {one["role"] for one in before["items"]} == {"owner", "writer"}
    acl.delete(calendarId="primary", ruleId=rule["id"]).execute()
    refused(bob.events.list(calendarId=ann.address), 404)
    [gone] = acl.list(calendarId="primary", syncToken=before["nextSyncToken"]).execute()["items"]
    assert gone["id"] == rule["id"] and gone["role"] == "none"
    refused(acl.get(calendarId="primary", ruleId=rule["id"]), 404)
    refused(acl.insert(calendarId="primary", body={"role": "king", "scope": {"type": "default"}}), 400)
    refused(acl.insert(calendarId="primary", body={"scope": {"type": "default"}}), 400, "required")
    refused(acl.insert(calendarId="primary", body={"role": "reader", "scope": {"type": "user", "value": "x"}}), 400)
    refused(acl.delete(calendarId="primary", ruleId=f"user:{ann.address}"), 403, "cannotChangeOwnAcl")
    acl.insert(
        calendarId="primary", body={"role": "reader", "scope": {"type": "domain", "value": "claw.example"}}
    ).execute()
    assert "Open" in bob.names(ann.address)
    for of_the_domain, of_the_user in (("reader", "writer"), ("writer", "reader")):  # the higher one counts
        acl.patch(calendarId="primary", ruleId="domain:claw.example", body={"role": of_the_domain}).execute()
        scope = {"type": "user", "value": bob.address}
        acl.insert(calendarId="primary", body={"role": of_the_user, "scope": scope}).execute()
        assert bob.patch(made["id"], calendar=ann.address, summary=of_the_user)["summary"] == of_the_user


@shows("events.insert > freebusy.query")
def test_free_and_busy(ann, bob):
    ann.insert(start="2026-03-10T10:00:00Z", end="2026-03-10T11:00:00Z")
    ann.insert(start="2026-03-10T10:30:00Z", end="2026-03-10T12:00:00Z")
    ann.insert(start="2026-03-10T13:00:00Z", end="2026-03-10T14:00:00Z", transparency="transparent")
    ann.insert(
        start=zoned("2026-03-09T16:00:00"), end=zoned("2026-03-09T17:00:00"), recurrence=["RRULE:FREQ=DAILY;COUNT=3"]
    )
    body = {
        "timeMin": "2026-03-10T00:00:00Z",
        "timeMax": "2026-03-11T00:00:00Z",
        "items": [{"id": "primary"}, {"id": bob.address}],
    }
    got = ann.api.freebusy().query(body=body).execute()
    assert got["calendars"]["primary"]["busy"] == [
        {"start": "2026-03-10T10:00:00Z", "end": "2026-03-10T12:00:00Z"},
        {"start": "2026-03-10T15:00:00Z", "end": "2026-03-10T16:00:00Z"},
    ]
    assert got["calendars"][bob.address]["errors"] == [{"domain": "global", "reason": "notFound"}]
    berlin = ann.api.freebusy().query(body={**body, "timeZone": "Europe/Berlin"}).execute()
    assert berlin["calendars"]["primary"]["busy"][0]["start"] == "2026-03-10T11:00:00+01:00"
    refused(ann.api.freebusy().query(body={**body, "timeMax": "2026-03-09T00:00:00Z"}), 400, "timeRangeEmpty")
    refused(ann.api.freebusy().query(body={"items": []}), 400, "required")
    refused(ann.api.freebusy().query(body={**body, "timeMin": "soon"}), 400)


@shows("settings.list > settings.get", "colors.get > calendarList.get")
def test_settings_and_colours(ann):
    settings = ann.api.settings()
    got = {one["id"]: one["value"] for one in settings.list().execute()["items"]}
    assert got["timezone"] == "UTC" and settings.get(setting="weekStart").execute()["value"] == got["weekStart"]
    refused(settings.get(setting="nope"), 404)
    assert len(settings.list(maxResults=5).execute()["items"]) == 5
    colors = ann.api.colors().get().execute()
    assert len(colors["event"]) == 11 and len(colors["calendar"]) == 24
    mine = ann.api.calendarList()
    mine.patch(calendarId="primary", body={"colorId": "9"}).execute()
    assert mine.get(calendarId="primary").execute()["backgroundColor"] == colors["calendar"]["9"]["background"]


@shows("events.watch acl.watch calendarList.watch settings.watch channels.stop > channels.stop")
def test_channels(ann, server):
    body = {"id": f"channel-{ann.address}", "type": "web_hook", "address": "https://hook.example/x", "token": "t"}
    made = ann.events.watch(calendarId="primary", body=body).execute()
    assert made["kind"] == "api#channel" and made["token"] == "t" and made["resourceId"]
    assert made["id"] in server.admin("GET", "state")["channels"]
    refused(ann.events.watch(calendarId="primary", body=body), 400, "channelIdNotUnique")
    refused(
        ann.events.watch(calendarId="primary", body={**body, "id": "n", "address": "http://x"}),
        400,
        "push.webhookUrlNotHttps",
    )
    refused(ann.events.watch(calendarId="primary", body={}), 400, "required")
    for resource, options in (
        (ann.api.acl(), {"calendarId": "primary"}),
        (ann.api.calendarList(), {}),
        (ann.api.settings(), {}),
    ):
        other = resource.watch(
            body={
                **body,
                "id": body["id"] + type(resource).__name__ + str(len(options)) + resource._baseUrl + str(id(resource)),
            },
            **options,
        ).execute()
        ann.api.channels().stop(body={"id": other["id"], "resourceId": other["resourceId"]}).execute()
    refused(ann.api.channels().stop(body={"id": made["id"], "resourceId": "wrong"}), 404)
    ann.api.channels().stop(body={"id": made["id"], "resourceId": made["resourceId"]}).execute()
    refused(ann.api.channels().stop(body={"id": made["id"], "resourceId": made["resourceId"]}), 404)
    assert made["id"] not in server.admin("GET", "state")["channels"]
