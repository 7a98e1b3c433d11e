"""Suggested edits, through the official client."""

from __future__ import annotations

import pytest
from benchflow_claw_kit.effects import shows
from benchflow_claw_kit.testing import google_client, running
from googleapiclient.errors import HttpError

from .conftest import MODULE, WITH, span, text_of

pytestmark = pytest.mark.xdist_group("claw-gdoc-structure")
SUGGEST = {"writeMode": "SUGGEST"}


def put(index, text):
    return {"insertText": {"location": {"index": index}, "text": text}}


def text(one, mode):
    return text_of(one.get(suggestionsViewMode=mode)["body"]["content"])


def both(one):
    """As it would be with every suggestion accepted, and without any."""
    return text(one, "PREVIEW_SUGGESTIONS_ACCEPTED"), text(one, "PREVIEW_WITHOUT_SUGGESTIONS")


def suggested(one, *requests):
    done = one.do(*requests, **SUGGEST)
    return [made for row in done["suggestionResponses"] for made in row.get("createdSuggestionIds", [])]


def threads(one):
    return one.get(**WITH).get("suggestions", [])


@shows("#acceptSuggestion #rejectSuggestion #deleteSuggestion > documents.get")
def test_edits_are_suggested_and_settled(document):
    one = document("Ship in May.\nDone.\n")
    new, gone, third = suggested(one, put(9, "early "), {"deleteContentRange": span(19, 23)}, put(1, "A\nB "))
    assert text_of(one.content) == "A\nB Ship in early May.\nDone.\n\n", "the default view shows both"
    runs = [e["textRun"] for p in one.paragraphs() for e in p["elements"]]
    assert [r["content"] for r in runs if r.get("suggestedInsertionIds") == [new]] == ["early "]
    assert [r["content"] for r in runs if r.get("suggestedDeletionIds") == [gone]] == ["\n", "Don"]
    assert both(one) == ("A\nB Ship in early May.e.\n\n", "Ship in May.\nDone.\n\n")
    cards = {thread["suggestionId"]: thread for thread in threads(one)}
    assert cards[new]["summaryText"] == "Add: “early ”" and cards[gone]["summaryText"] == "Delete: “Don”"
    assert cards[new]["status"] == "OPEN" and cards[new]["headPost"]["author"]["me"] is True
    done = one.do({"acceptSuggestion": {"suggestionId": new}}, {"rejectSuggestion": {"suggestionId": gone}})
    assert done["suggestionResponses"] == [{"acceptedSuggestionIds": [new]}, {"rejectedSuggestionIds": [gone]}]
    assert both(one)[1] == "Ship in early May.\nDone.\n\n"
    one.do({"deleteSuggestion": {"suggestionId": third}})
    assert both(one) == ("Ship in early May.\nDone.\n\n",) * 2 and text_of(one.content) == both(one)[0]
    assert {thread["suggestionId"]: thread["status"] for thread in threads(one)} == {new: "ACCEPTED", gone: "REJECTED"}
    assert [post["suggestionAction"] for post in threads(one)[0]["replies"]] == ["ACCEPT"]
    assert not [e for p in one.paragraphs() for e in p["elements"] if "suggested" in str(e)]
    assert one.refused({"acceptSuggestion": {"suggestionId": new}}).status_code == 400, "it is settled"


def test_styles_are_suggested(document):
    one = document("plain words\nitem\n")
    bold, heading, bullets = suggested(
        one,
        {"updateTextStyle": {**span(1, 6), "textStyle": {"bold": True}, "fields": "bold"}},
        {"updateParagraphStyle": {**span(1, 2), "paragraphStyle": {"namedStyleType": "HEADING_1"}, "fields": "namedStyleType"}},
        {"createParagraphBullets": {**span(13, 15), "bulletPreset": "BULLET_DISC_CIRCLE_SQUARE"}},
    )  # fmt: skip
    first, second, *_ = one.paragraphs()
    change = first["elements"][0]["textRun"]["suggestedTextStyleChanges"][bold]
    assert change == {"textStyle": {"bold": True}, "textStyleSuggestionState": {"boldSuggested": True}}
    assert one.runs()[0] == ("plain", {}) and first["paragraphStyle"]["namedStyleType"] == "NORMAL_TEXT"
    assert first["suggestedParagraphStyleChanges"][heading]["paragraphStyle"] == {"namedStyleType": "HEADING_1"}
    assert "bullet" not in second and second["suggestedBulletChanges"][bullets]["bullet"]["listId"]
    assert [t["summaryText"] for t in threads(one)] == ["Format: bold", "Format: namedStyleType", "Format: list"]
    one.do(*({"acceptSuggestion": {"suggestionId": sid}} for sid in (bold, heading, bullets)))
    first, second, *_ = one.paragraphs()
    assert one.runs()[:2] == [("plain", {"bold": True}), (" words\n", {})] and second["bullet"]["listId"]
    assert first["paragraphStyle"]["namedStyleType"] == "HEADING_1" and first["paragraphStyle"]["headingId"]
    assert "suggested" not in str(one.get())


def test_structure_is_suggested_and_goes_again(document):
    one = document("before after\n")
    before = one.get(suggestionsViewMode="PREVIEW_WITHOUT_SUGGESTIONS")["body"]
    made = suggested(
        one,
        {"insertTable": {"rows": 2, "columns": 2, "location": {"index": 8}}},
        {"insertPageBreak": {"location": {"index": 3}}},
        {"replaceAllText": {"containsText": {"text": "after"}, "replaceText": "later"}},
    )
    assert len(made) == 3 and one.table()["table"]["suggestedInsertionIds"] == [made[0]]
    assert "Replace: “after” with “later”" in [t["summaryText"] for t in threads(one)]
    assert one.get(suggestionsViewMode="PREVIEW_WITHOUT_SUGGESTIONS")["body"] == before
    accepted = one.get(suggestionsViewMode="PREVIEW_SUGGESTIONS_ACCEPTED")["body"]["content"]
    assert [name for block in accepted for name in ("table", "paragraph") if name in block].count("table") == 1
    assert text_of(accepted) == "be\nfore \nlater\n\n"
    one.do(*({"rejectSuggestion": {"suggestionId": sid}} for sid in made))
    assert one.get()["body"] == before


def test_own_insertions_are_taken_back_and_what_vanishes_has_no_card(document):
    one = document("text\n")
    suggested(one, put(5, " more"))
    assert suggested(one, {"deleteContentRange": span(5, 10)}) == [] and both(one) == ("text\n\n",) * 2
    assert threads(one) == []
    suggested(one, put(5, " more"))
    one.do({"deleteContentRange": span(5, 10)})
    assert threads(one) == [] and one.text == "text\n\n"


@pytest.mark.parametrize(
    "request_",
    [
        {"deleteContentRange": span(1, 6)},
        put(99, "x"),
        {"updateTextStyle": {**span(1, 2), "textStyle": {"bold": True}, "fields": "blod"}},
        {"updateTextStyle": {**span(1, 2), "textStyle": {"bold": True}, "fields": "*"}},
        {"addDocumentTab": {}},
        {"createNamedRange": {**span(1, 2), "name": "n"}},
        {"acceptSuggestion": {"suggestionId": "nope"}},
        {"rejectSuggestion": {}},
    ],
)
def test_what_cannot_be_suggested_is_refused_at_once(document, request_):
    one = document("text")
    assert one.refused(request_, **SUGGEST).status_code == 400 and threads(one) == []


def test_who_may_suggest_and_settle(tmp_path):
    ann, bob, cat = "ann@acme.example", "bob@acme.example", "cat@acme.example"
    scenario = tmp_path / "world.json"
    scenario.write_text(
        '{"users": [{"email": "ann@acme.example", "primary": true}, {"email": "bob@acme.example"}, {"email": "cat@acme.example"}],'
        ' "documents": [{"id": "plan", "title": "Plan", "owner": "ann@acme.example", "content": ["Ship in May."],'
        ' "shared": [{"email": "bob@acme.example", "role": "commenter"}, {"email": "cat@acme.example", "role": "reader"}],'
        ' "suggestions": [{"on": "May", "author": "bob@acme.example", "replace": "June"}]}]}'
    )
    with running(MODULE, tmp_path / "gdoc.db", seed=(str(scenario), 1)) as server:
        clients = {who: google_client("docs", "v1", server.url, token=who).documents() for who in (ann, bob, cat)}

        def do(who, *requests, **control):
            body = {"requests": list(requests), "writeControl": control}
            return clients[who].batchUpdate(documentId="plan", body=body).execute()

        def refused(who, *requests, **control):
            with pytest.raises(HttpError) as caught:
                do(who, *requests, **control)
            return caught.value.status_code

        def seen(who, **options):
            return clients[who].get(documentId="plan", **options).execute()

        [seeded] = seen(ann, **WITH)["suggestions"]
        assert seeded["summaryText"] == "Replace: “May” with “June”" and seeded["headPost"]["author"]["me"] is False
        assert refused(bob, put(1, "x")) == 403 and refused(cat, put(1, "x"), **SUGGEST) == 403
        made = do(bob, put(1, "Do: "), **SUGGEST)["suggestionResponses"][0]["createdSuggestionIds"][0]
        assert text_of(seen(cat)["body"]["content"]) == "Ship in May.\n\n" and "revisionId" not in seen(bob)
        assert seen(cat)["suggestionsViewMode"] == "PREVIEW_WITHOUT_SUGGESTIONS"
        for mode in ("SUGGESTIONS_INLINE", "PREVIEW_SUGGESTIONS_ACCEPTED"):
            with pytest.raises(HttpError, match="permission"):
                seen(cat, suggestionsViewMode=mode)
        assert server.admin("GET", "state")["documents"]["plan"]["text"] == "Ship in May.\n\n"
        assert refused(bob, {"acceptSuggestion": {"suggestionId": made}}) == 403
        assert refused(ann, {"deleteSuggestion": {"suggestionId": made}}) == 403
        reply = {"addCommentReply": {"suggestionId": made, "post": {"content": "Why?"}}}
        do(ann, reply)
        assert seen(bob, **WITH)["suggestions"][1]["replies"][0]["content"] == "Why?"
        do(bob, {"rejectSuggestion": {"suggestionId": made}})
        do(ann, {"acceptSuggestion": {"suggestionId": seeded["suggestionId"]}})
        assert text_of(seen(cat)["body"]["content"]) == "Ship in June.\n\n"
        assert server.admin("GET", "state")["documents"]["plan"]["text"] == "Ship in June.\n\n"
