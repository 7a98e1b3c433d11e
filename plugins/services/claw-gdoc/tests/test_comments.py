"""Comments and drop-down chips, through the official client."""

from __future__ import annotations

import pytest
from benchflow_claw_kit.effects import shows
from benchflow_claw_kit.testing import google_client

from .conftest import WITH, span

pytestmark = pytest.mark.xdist_group("claw-gdoc-structure")


def threads(one):
    return one.get(**WITH)["comments"]


def anchor(one, thread):
    tab = one.get(**WITH)["tabs"][0]["documentTab"]
    [found] = tab["commentAnchors"][thread["anchorId"]]["ranges"]
    return found["startIndex"], found["endIndex"]


@shows("#insertComment #addCommentReply #updateCommentPost #deleteCommentReply #deleteComment > documents.get")
def test_comments_are_tied_to_the_text_and_answered(document):
    one = document("Ship it in May, 🎉 maybe\n")
    done = one.do({"insertComment": {**span(12, 15), "content": "Sure?"}})
    made = done["replies"][0]["insertComment"]["commentThread"]
    assert done["commentUpdateState"] == "ALL_SAVED" and made["plainTextQuote"] == "May"
    assert "comments" not in one.get() and "comments" not in one.get(includeTabsContent=True)
    one.do({"insertText": {"location": {"index": 1}, "text": "Do "}})
    assert anchor(one, made) == (15, 18)
    replied = one.do({"addCommentReply": {"commentId": made["commentId"], "post": {"content": "Yes"}}})
    reply = replied["replies"][0]["addCommentReply"]["post"]
    one.do({"updateCommentPost": {"commentId": made["commentId"], "postId": reply["postId"], "content": "Quite"}})
    one.do({"addCommentReply": {"commentId": made["commentId"], "post": {"commentAction": "RESOLVE"}}})
    [seen] = threads(one)
    assert seen["status"] == "RESOLVED" and seen["headPost"]["author"]["me"] is True
    assert [post.get("content") for post in seen["replies"]] == ["Quite", ""]
    one.do({"deleteCommentReply": {"commentId": made["commentId"], "postId": reply["postId"]}})
    assert threads(one)[0]["replies"][0]["deleted"] is True
    one.refused({"deleteCommentReply": {"commentId": made["commentId"], "postId": seen["replies"][1]["postId"]}})
    one.do({"addCommentReply": {"commentId": made["commentId"], "post": {"commentAction": "REOPEN"}}})
    assert threads(one)[0]["status"] == "OPEN"
    one.do({"deleteContentRange": span(15, 18)})
    assert "commentAnchors" not in one.get(**WITH)["tabs"][0]["documentTab"] and len(threads(one)) == 1
    one.do({"deleteComment": {"commentId": made["commentId"]}})
    assert threads(one) == []


@pytest.mark.parametrize(
    "request_",
    [
        {"insertComment": {"content": "x"}},
        {"insertComment": {**span(1, 2), "content": " "}},
        {"insertComment": {**span(1, 2), "content": "x" * 2049}},
        {"insertComment": {**span(1, 99), "content": "x"}},
        {"addCommentReply": {"commentId": "nope", "post": {"content": "x"}}},
        {"addCommentReply": {"suggestionId": "nope", "post": {"content": "x"}}},
        {"deleteComment": {}},
        {"updateCommentPost": {"commentId": "", "postId": "", "content": "x"}},
    ],
)
def test_bad_comments(document, request_):
    assert document("text").refused(request_).status_code == 400


def test_comments_are_shown_by_tabs_beside_inline_suggestions_only(document, docs):
    one = document("text")
    for change in ({"includeTabsContent": False}, {"suggestionsViewMode": "PREVIEW_WITHOUT_SUGGESTIONS"}):
        with pytest.raises(Exception, match="comments_view_mode requires"):
            one.get(**{**WITH, **change})


def test_who_may_comment(server, docs):
    """`office` shares its launch plan with somebody who may only comment."""
    state = server.admin("GET", "state")["doc_access"]
    [(document, email)] = [key.split("/") for key, row in state.items() if row["role"] == "commenter"][:1]
    theirs = google_client("docs", "v1", server.url, token=email).documents()
    body = {"requests": [{"insertComment": {**span(1, 3), "content": "Mine"}}]}
    theirs.batchUpdate(documentId=document, body=body).execute()
    seen = docs.get(documentId=document, **WITH).execute()["comments"][-1]
    assert seen["headPost"]["content"] == "Mine" and seen["headPost"]["author"]["me"] is False
    text = {"requests": [{"insertText": {"location": {"index": 1}, "text": "x"}}, *body["requests"]]}
    with pytest.raises(Exception, match="does not have permission"):
        theirs.batchUpdate(documentId=document, body=text).execute()
    with pytest.raises(Exception, match="not the author"):
        docs.batchUpdate(
            documentId=document, body={"requests": [{"deleteComment": {"commentId": seen["commentId"]}}]}
        ).execute()


OPTIONS = [
    {"optionId": "dropdownItem.todo", "displayValue": "To do"},
    {"optionId": "dropdownItem.done", "displayValue": "Done"},
]


def chips(one):
    return [e["dropdown"]["dropdownProperties"] for p in one.paragraphs() for e in p["elements"] if "dropdown" in e]


def definitions(one):
    return one.get(includeTabsContent=True)["tabs"][0]["documentTab"].get("dropdownDefinitions", {})


@shows(
    "#createDropdownDefinition #insertDropdown #updateDropdownProperties > documents.get",
    "#updateDropdownDefinitionProperties #deleteDropdownDefinition > documents.get",
)
def test_dropdowns_choose_from_their_definition(document):
    one = document("Status: \n")
    done = one.do(
        {
            "createDropdownDefinition": {
                "dropdownDefinition": {"dropdownDefinitionProperties": {"title": "State", "options": OPTIONS}}
            }
        }
    )
    definition = done["replies"][0]["createDropdownDefinition"]["dropdownDefinition"]["dropdownDefinitionId"]
    assert definitions(one)[definition]["dropdownDefinitionProperties"]["title"] == "State"
    where = {"location": {"index": 9}, "dropdownDefinitionId": definition}
    chip = one.do({"insertDropdown": where})["replies"][0]["insertDropdown"]["dropdown"]["dropdownId"]
    assert chips(one)[0]["displayValue"] == "To do"
    change = {
        "dropdownId": chip,
        "dropdownProperties": {"selectedOptionId": "dropdownItem.done"},
        "fields": "selectedOptionId",
    }
    one.do({"updateDropdownProperties": change})
    assert chips(one)[0]["displayValue"] == "Done"
    new = {
        "dropdownDefinitionId": definition,
        "fields": "options,title",
        "dropdownDefinitionProperties": {
            "title": "Stage",
            "options": [OPTIONS[0], {"optionId": "dropdownItem.late", "displayValue": "Late"}],
        },
    }
    assert "replacement is required" in str(one.refused({"updateDropdownDefinitionProperties": new}))
    new["selectedOptionIdReplacements"] = {"dropdownItem.done": "dropdownItem.late"}
    one.do({"updateDropdownDefinitionProperties": new})
    assert chips(one)[0]["displayValue"] == "Late"
    assert definitions(one)[definition]["dropdownDefinitionProperties"]["title"] == "Stage"
    assert "is used" in str(one.refused({"deleteDropdownDefinition": {"dropdownDefinitionId": definition}}))
    one.do({"deleteContentRange": span(9, 10)}, {"deleteDropdownDefinition": {"dropdownDefinitionId": definition}})
    assert definitions(one) == {} and chips(one) == []


@pytest.mark.parametrize(
    "request_",
    [
        {"createDropdownDefinition": {}},
        {
            "createDropdownDefinition": {
                "dropdownDefinition": {"dropdownDefinitionProperties": {"options": OPTIONS[:1]}}
            }
        },
        {
            "createDropdownDefinition": {
                "dropdownDefinition": {
                    "dropdownDefinitionId": "x",
                    "dropdownDefinitionProperties": {"options": OPTIONS},
                }
            }
        },
        {
            "createDropdownDefinition": {
                "dropdownDefinition": {"dropdownDefinitionProperties": {"options": [OPTIONS[0]] * 2}}
            }
        },
        {"insertDropdown": {"location": {"index": 1}, "dropdownDefinitionId": "kix.none"}},
        {"updateDropdownProperties": {"dropdownId": "kix.none", "fields": "selectedOptionId"}},
        {"updateDropdownDefinitionProperties": {"dropdownDefinitionId": "kix.none", "fields": "title"}},
        {"deleteDropdownDefinition": {"dropdownDefinitionId": "kix.none"}},
    ],
)
def test_bad_dropdowns(document, request_):
    assert document("text").refused(request_).status_code == 400
