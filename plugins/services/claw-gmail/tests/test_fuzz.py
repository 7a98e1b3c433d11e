"""Thousands of requests made by chance: whatever they are, the answer is never the service's own fault."""

from __future__ import annotations

import json
from random import Random

import pytest
from benchflow_claw_kit import Store
from benchflow_claw_kit.dispatch import Dispatcher
from benchflow_claw_kit.fuzzing import some_request
from benchflow_claw_kit.seeding import seed
from benchflow_service_claw_gmail.service import SERVICE


@pytest.fixture(scope="module")
def dispatcher(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("fuzz") / "s.db", SERVICE.schema)
    seed(SERVICE, store, "office", 1)
    return Dispatcher(SERVICE, store)


def known(store):
    some = lambda sql: [row["id"] for row in store.all(sql + " ORDER BY random() LIMIT 3")]  # noqa: E731
    messages = some("SELECT id FROM messages WHERE user = 'alex@example.com'")
    raw = ["VG86IGFAYi5leGFtcGxlDQoNCmhp", "U3ViamVjdDogeA0KDQo="]
    return {
        "userId": ["me"] * 6,
        "id": [*messages, *some("SELECT id FROM drafts"), *some("SELECT id FROM labels")],
        "messageId": messages,
        "sendAsEmail": ["alex@example.com"],
        "*": [*messages, *raw, *raw],
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
