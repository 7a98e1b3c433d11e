"""Requests made by chance: whatever they are, the answer is never the service's own fault."""

from __future__ import annotations

import json
from itertools import count
from random import Random

import pytest
from benchflow_claw_kit import Store
from benchflow_claw_kit.dispatch import Dispatcher
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.fuzzing import some_request
from benchflow_claw_kit.seeding import seed
from benchflow_service_claw_gdoc.batch import apply_batch
from benchflow_service_claw_gdoc.compose import compose
from benchflow_service_claw_gdoc.model.defaults import new_tab
from benchflow_service_claw_gdoc.model.tree import content_width
from benchflow_service_claw_gdoc.requests.suggestions import SUGGESTABLE, previewed
from benchflow_service_claw_gdoc.service import SERVICE


@pytest.fixture(scope="module")
def dispatcher(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("fuzz") / "s.db", SERVICE.schema)
    seed(SERVICE, store, "office", 1)
    return Dispatcher(SERVICE, store)


def known(store):
    documents = [row["id"] for row in store.all("SELECT id FROM documents WHERE owner LIKE 'alex@%'")]
    talk = [row["id"] for table in ("comments", "suggestions") for row in store.all(f"SELECT id FROM doc_{table}")]
    return {"documentId": documents * 3, "*": ["t.0", *talk[-20:]]}


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


BLOCKS = [
    "One line.",
    {"heading": 1, "text": "Head"},
    {"bullets": ["a", "b"]},
    {"table": [["1", "2"]]},
    "Last 🎉 line.",
]


def some_suggestion(random, end):
    low = random.randrange(1, end)
    span = {"range": {"startIndex": low, "endIndex": min(end, low + random.randrange(1, 9))}}
    at = {"location": {"index": low}}
    requests = {
        "insertText": {**at, "text": random.choice(["x", "a\nb", "\n", "\tlong word"])},
        "deleteContentRange": span,
        "replaceAllText": {"containsText": {"text": random.choice("aeLx")}, "replaceText": random.choice(["", "yy"])},
        "updateTextStyle": {**span, "textStyle": {"bold": True}, "fields": random.choice(["bold", "italic,link"])},
        "updateParagraphStyle": {**span, "paragraphStyle": {"alignment": "END"}, "fields": "alignment"},
        "createParagraphBullets": {**span, "bulletPreset": "NUMBERED_DECIMAL_NESTED"},
        "deleteParagraphBullets": span,
        "insertPageBreak": at,
        "insertPerson": {**at, "personProperties": {"email": "ann@acme.example"}},
        "insertTable": {**at, "rows": 1, "columns": 2},
    }
    assert requests.keys() <= SUGGESTABLE
    name = random.choice(list(requests))
    return {name: requests[name]}


def body(document):
    """But for the ids of headings: a line put in before one takes its id."""
    shown = json.loads(json.dumps(document["tabs"][0]["documentTab"]["body"]))
    for block in shown["content"]:
        block.get("paragraph", {}).get("paragraphStyle", {}).pop("headingId", None)
    return shown


@pytest.mark.parametrize("number", range(30))
def test_rejected_suggestions_leave_the_document_as_it_was(number):
    random, numbers = Random(number), count()

    def new_id(kind):
        return f"{kind}{next(numbers)}"

    document = {"title": "", "tabs": compose([new_tab("t.0", "Tab 1")], BLOCKS, new_id)}
    before = body(document)
    for _ in range(12):
        request = some_suggestion(random, content_width(document["tabs"][0]["documentTab"]["body"]["content"]))
        try:
            document, *_ = apply_batch(document, [request], new_id, random.choice(["ann", "bob"]), "now", suggest=True)
        except ApiError as error:
            assert error.status == 400
    assert body(previewed(document, False)) == before
    assert "suggested" not in str(previewed(document, True)["tabs"])
    made = [thread["suggestionId"] for thread in document["suggestions"]]
    for suggestion in random.sample(made, len(made)):
        request = {"rejectSuggestion": {"suggestionId": suggestion}}
        if suggestion in [thread["suggestionId"] for thread in document["suggestions"] if thread["status"] == "OPEN"]:
            document, *_ = apply_batch(document, [request], new_id, "ann", "now")
    assert body(document) == before


@pytest.mark.parametrize("number", range(30))
def test_an_accepted_suggestion_is_the_edit_itself(number):
    random = Random(number)
    document = {"title": "", "tabs": compose([new_tab("t.0", "Tab 1")], BLOCKS, lambda kind: kind)}
    for _ in range(10):
        request = some_suggestion(random, content_width(document["tabs"][0]["documentTab"]["body"]["content"]))
        found = []
        for suggest in (False, True):
            try:
                changed, *_ = apply_batch(document, [request], lambda kind: kind, "ann", "now", suggest)
                found.append(body(previewed(changed, True)))
            except ApiError as error:
                found.append(error.status)
        assert found[0] == found[1], request
