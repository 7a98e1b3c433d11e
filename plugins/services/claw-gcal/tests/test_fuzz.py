"""Thousands of requests made by chance: whatever they are, the answer is never the service's own fault."""

from __future__ import annotations

import json
from random import Random

import pytest
from benchflow_claw_kit import Store
from benchflow_claw_kit.dispatch import Dispatcher
from benchflow_claw_kit.fuzzing import some_request
from benchflow_claw_kit.seeding import seed
from benchflow_service_claw_gcal.service import SERVICE


@pytest.fixture(scope="module")
def dispatcher(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("fuzz") / "s.db", SERVICE.schema)
    seed(SERVICE, store, "office", 1)
    return Dispatcher(SERVICE, store)


def known(store):
    some = lambda sql: [row["id"] for row in store.all(sql + " ORDER BY random() LIMIT 4")]  # noqa: E731
    events = some("SELECT id FROM events WHERE calendar_id = 'alex@example.com'")
    return {
        "calendarId": ["primary"] * 6 + some("SELECT id FROM calendars"),
        "eventId": [*events, *(f"{one}_20260309T081500Z" for one in events)],
        "ruleId": ["default", "user:alex@example.com"],
        "setting": ["timezone"],
        "*": [
            "2026-03-10T10:00:00Z",
            "2026-03-10T11:00:00Z",
            "2026-03-11",
            "alice@example.com",
            "confirmed",
            "accepted",
            *events,
        ],
    }


@pytest.mark.parametrize("number", range(4))
def test_no_request_breaks_it(dispatcher, number):
    random = Random(number)
    statuses = {}
    for _ in range(700):
        request = some_request(SERVICE, random, known(dispatcher.store))
        response = dispatcher(request)
        assert response.status < 500, (request.method, request.path, request.query, request.body, response.body)
        if response.status >= 400:
            assert json.loads(response.body)["error"]["code"] == response.status
        statuses[response.status] = statuses.get(response.status, 0) + 1
    assert statuses.get(200, 0) > 50 and statuses.get(400, 0) > 50, statuses
