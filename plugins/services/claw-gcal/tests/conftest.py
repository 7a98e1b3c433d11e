"""One server per module; every test has its own users, so that they do not meet."""

from __future__ import annotations

import json
from itertools import count

import pytest
from benchflow_claw_kit.effects import checked
from benchflow_claw_kit.testing import google_client, running
from googleapiclient.errors import HttpError

effects_are_seen = checked("calendar.")
MODULE = "benchflow_service_claw_gcal.cli"
_numbers = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(MODULE, tmp_path_factory.mktemp("gcal") / "gcal.db", seed=("office", 7)) as one:
        yield one


class User:
    """The official client as one user."""

    def __init__(self, server, address):
        self.server = server
        self.address = address
        self.api = google_client("calendar", "v3", server.url, token=address)
        self.events = self.api.events()
        self.api.calendars().get(calendarId="primary").execute()

    def insert(
        self, calendar="primary", start="2026-03-10T10:00:00Z", end="2026-03-10T11:00:00Z", options=None, **body
    ):
        body = {"start": when(start), "end": when(end), **body}
        return self.events.insert(calendarId=calendar, body=body, **(options or {})).execute()

    def get(self, id, calendar="primary", **options):
        return self.events.get(calendarId=calendar, eventId=id, **options).execute()

    def list(self, calendar="primary", **options):
        return self.events.list(calendarId=calendar, **options).execute()

    def names(self, calendar="primary", **options):
        return [event.get("summary") for event in self.list(calendar, **options)["items"]]

    def patch(self, id, calendar="primary", options=None, **body):
        return self.events.patch(calendarId=calendar, eventId=id, body=body, **(options or {})).execute()


def when(text):
    return text if isinstance(text, dict) else {"date" if len(text) == 10 else "dateTime": text}


def zoned(text, zone="Europe/Berlin"):
    return {"dateTime": text, "timeZone": zone}


@pytest.fixture
def ann(server):
    return User(server, f"ann{next(_numbers)}@claw.example")


@pytest.fixture
def bob(server):
    return User(server, f"bob{next(_numbers)}@claw.example")


def refused(request, status, reason=None, text=None):
    with pytest.raises(HttpError) as caught:
        request.execute()
    error = json.loads(caught.value.content)["error"]
    assert caught.value.status_code == error["code"] == status, error
    if reason:
        assert error["errors"][0]["reason"] == reason, error
    if text:
        assert text in error["message"], error
    return error["errors"][0]
