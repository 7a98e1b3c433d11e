"""Requests made by chance: whatever they are, the answer is never the service's own fault."""

from __future__ import annotations

import json
from random import Random

import pytest
from benchflow_claw_kit import Store
from benchflow_claw_kit.dispatch import Dispatcher
from benchflow_claw_kit.fuzzing import some_request
from benchflow_claw_kit.seeding import seed
from benchflow_service_claw_gdoc.service import SERVICE


@pytest.fixture(scope="module")
def dispatcher(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("fuzz") / "s.db", SERVICE.schema)
    seed(SERVICE, store, "office", 1)
    return Dispatcher(SERVICE, store)


def known(store):
    documents = [row["id"] for row in store.all("SELECT id FROM documents WHERE owner LIKE 'alex@%'")]
    comments = [row["id"] for row in store.all("SELECT id FROM doc_comments")]
    return {"documentId": documents * 3, "*": ["t.0", *comments]}


@pytest.mark.parametrize("number", range(2))
def test_no_request_breaks_it(dispatcher, number):
    random, statuses = Random(number), {}
    for _ in range(700):
        request = some_request(SERVICE, random, known(dispatcher.store))
        response = dispatcher(request)
        assert response.status < 500 or b"notImplemented" in response.body, (request, response.body)
        if response.status >= 400:
            assert json.loads(response.body)["error"]["code"] == response.status
        statuses[response.status] = statuses.get(response.status, 0) + 1
    assert statuses.get(200, 0) > 25 and statuses.get(400, 0) > 50, statuses
