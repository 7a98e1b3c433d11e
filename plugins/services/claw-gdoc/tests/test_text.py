"""Text, styles, lists and named ranges, through the official client."""

from __future__ import annotations

import json

import pytest
from benchflow_claw_kit.effects import shows

pytestmark = pytest.mark.xdist_group("claw-gdoc-text")


def span(low, high, **more):
    return {"range": {"startIndex": low, "endIndex": high, **more}}


BOLD = {"textStyle": {"bold": True}, "fields": "bold"}


def insert(index, text):
    return {"insertText": {"location": {"index": index}, "text": text}}


def delete(low, high):
    return {"deleteContentRange": span(low, high)}


def test_a_new_document_is_a_section_break_and_an_empty_paragraph(docs):
    made = docs.create(body={"title": "Plan"}).execute()
    seen = docs.get(documentId=made["documentId"]).execute()
    assert seen["title"] == "Plan" and seen["revisionId"] == made["revisionId"]
    first, last = seen["body"]["content"]
    assert "startIndex" not in first and first["endIndex"] == 1 and "sectionBreak" in first
    assert (last["startIndex"], last["endIndex"]) == (1, 2)
    assert last["paragraph"]["elements"][0]["textRun"]["content"] == "\n"
    assert {style["namedStyleType"] for style in seen["namedStyles"]["styles"]} >= {"NORMAL_TEXT", "TITLE", "HEADING_6"}


def test_indexes_count_utf16_code_units(document):
    one = document("a😀b")
    (paragraph,) = [block for block in one.content if "paragraph" in block]
    assert (paragraph["startIndex"], paragraph["endIndex"]) == (1, 6)
    one.do(insert(4, "X"))
    assert one.text == "a😀Xb\n"
    error = one.refused(insert(3, "Y"))
    assert error.status_code == 400 and "surrogate" in str(error)
    assert one.refused(delete(2, 3)).status_code == 400
    one.do(delete(2, 4))
    assert one.text == "aXb\n"


def test_a_newline_makes_a_paragraph_of_the_same_style(document):
    one = document("Heading\nrest")
    one.do(
        {
            "updateParagraphStyle": {
                **span(1, 2),
                "paragraphStyle": {"namedStyleType": "HEADING_2"},
                "fields": "namedStyleType",
            }
        }
    )
    one.do(insert(4, "\n"))
    kinds = [p["paragraphStyle"]["namedStyleType"] for p in one.paragraphs()]
    assert kinds == ["HEADING_2", "HEADING_2", "NORMAL_TEXT"]
    ids = [p["paragraphStyle"].get("headingId") for p in one.paragraphs()]
    assert ids[0] and ids[1] and ids[0] != ids[1] and ids[2] is None


def test_control_and_private_characters_are_dropped(document):
    assert document("a\x00\x0bb\ue000c\r\nd").text == "abc\nd\n"


@shows("#insertText > documents.get")
def test_inserted_text_takes_the_style_before_it(document):
    one = document("bold plain")
    one.do({"updateTextStyle": {**span(1, 5), **BOLD}}, insert(5, "er"))
    assert one.runs() == [("bolder", {"bold": True}), (" plain\n", {})]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (insert(900, "x"), "Index 900 must be less than the end index of the referenced segment, 12."),
        (insert(0, "x"), "index"),
        (insert(1, ""), "empty"),
        (delete(1, 12), "newline character at the end of the segment"),
        (delete(5, 5), "The range should not be empty."),
        (delete(5, 99), "Index 98 must be less than the end index of the referenced segment, 12."),
        (
            {"updateTextStyle": {**span(1, 3), "textStyle": {"bold": True}}},
            "At least one field must be listed in 'fields'",
        ),
        ({"updateTextStyle": {**span(1, 3), "textStyle": {}, "fields": "nope"}}, "Invalid field: nope"),
        ({"updateParagraphStyle": {**span(1, 3), "paragraphStyle": {}, "fields": "headingId"}}, "Unallowed field"),
        ({"insertText": {"text": "x"}}, "location"),
        ({"insertText": {"location": {"index": 1, "segmentId": "kix.no"}, "text": "x"}}, "Segment with ID kix.no"),
        ({"insertText": {"location": {"index": 1, "tabId": "t.no"}, "text": "x"}}, "t.no"),
        ({"createParagraphBullets": {**span(1, 3)}}, "preset"),
        ({"deleteNamedRange": {"namedRangeId": "kix.no"}}, "not found"),
        ({"replaceAllText": {"containsText": {"text": ""}, "replaceText": "x"}}, "empty"),
        (
            {"replaceAllText": {"containsText": {"text": "(a+)+$", "searchByRegex": True}, "replaceText": "x"}},
            "regular",
        ),
        ({"replaceAllText": {"containsText": {"text": "(", "searchByRegex": True}, "replaceText": "x"}}, "regular"),
    ],
)
def test_what_cannot_be_applied_is_refused_by_number_and_name(document, request_, words):
    one = document("some words")
    before = one.get()
    error = one.refused({"updateTextStyle": {**span(1, 3), **BOLD}}, request_)
    body = json.loads(error.content)["error"]
    assert error.status_code == 400 and body["status"] == "INVALID_ARGUMENT"
    assert body["message"].startswith(f"Invalid requests[1].{next(iter(request_))}: ")
    assert words.lower() in body["message"].lower()
    assert one.get() == before, "all of a batch or nothing"


def test_unknown_names_and_wrong_types_are_named(server):
    ask = lambda body: server.ask("POST", "/v1/documents/1LarkspurReview2025:batchUpdate", body)  # noqa: E731
    status, body, _ = ask({"requests": [{"insertHorizontalRule": {}}]})
    assert status == 400 and "Unknown name \"insertHorizontalRule\" at 'requests[0]'" in body["error"]["message"]
    status, body, _ = ask({"requests": [{"insertText": {"text": 3, "location": {"index": 1}}}]})
    assert status == 400 and "requests[0].insert_text.text" in body["error"]["message"]
    status, body, _ = ask({"requests": [{}]})
    assert status == 400 and "No request set" in body["error"]["message"]
    status, body, _ = ask({"requests": [{"insertText": {}, "insertTable": {}}]})
    assert status == 400 and "oneof" in body["error"]["message"]
    assert ask({"requests": []})[0] == 400


def test_deleting_across_paragraphs_joins_them(document):
    one = document("one\ntwo\nthree")
    one.do(
        {
            "updateParagraphStyle": {
                **span(1, 2),
                "paragraphStyle": {"namedStyleType": "HEADING_1"},
                "fields": "namedStyleType",
            }
        }
    )
    one.do(delete(3, 7))
    assert one.text == "ono\nthree\n"
    assert one.paragraphs()[0]["paragraphStyle"]["namedStyleType"] == "HEADING_1"
    one.do(delete(1, 5))
    assert one.text == "three\n" and one.paragraphs()[0]["paragraphStyle"]["namedStyleType"] == "NORMAL_TEXT"


@shows("#updateTextStyle > documents.get")
def test_text_styles_and_links(document):
    one = document("see the site now")
    link = {"textStyle": {"link": {"url": "https://example.com"}}, "fields": "link"}
    one.do({"updateTextStyle": {**span(9, 13), **link}})
    site = dict(one.runs())["site"]
    assert site["link"]["url"] == "https://example.com" and site["underline"] is True
    assert site["foregroundColor"]["color"]["rgbColor"]["blue"] == 0.8
    one.do({"updateTextStyle": {**span(9, 13), "textStyle": {}, "fields": "link"}})
    assert one.runs() == [("see the site now\n", {})]
    style = {"fontSize": {"magnitude": 18, "unit": "PT"}, "weightedFontFamily": {"fontFamily": "Roboto", "weight": 700}}
    one.do({"updateTextStyle": {**span(1, 4), "textStyle": style, "fields": "fontSize,weightedFontFamily"}})
    assert one.runs()[0] == ("see", style)
    one.do({"updateTextStyle": {**span(1, 18), "textStyle": {"italic": True}, "fields": "*"}})
    assert one.runs() == [("see the site now\n", {"italic": True})]


@shows("#updateParagraphStyle > documents.get")
def test_paragraph_styles(document):
    one = document("a\nb\nc")
    style = {"alignment": "CENTER", "lineSpacing": 150, "spaceAbove": {"magnitude": 6, "unit": "PT"}}
    one.do(
        {"updateParagraphStyle": {**span(1, 4), "paragraphStyle": style, "fields": "alignment,lineSpacing,spaceAbove"}}
    )
    got = [p["paragraphStyle"].get("alignment") for p in one.paragraphs()]
    assert got == ["CENTER", "CENTER", None]
    assert one.paragraphs()[0]["paragraphStyle"]["lineSpacing"] == 150


@shows("#createParagraphBullets #deleteParagraphBullets > documents.get")
def test_lists_tabs_are_depth_and_a_list_goes_on(document):
    one = document("one\n\ttwo\nthree")
    one.do({"createParagraphBullets": {**span(1, 10), "bulletPreset": "NUMBERED_DECIMAL_ALPHA_ROMAN"}})
    assert one.text == "one\ntwo\nthree\n"
    first, second, third = one.paragraphs()
    assert second["bullet"]["nestingLevel"] == 1 and second["bullet"]["listId"] == first["bullet"]["listId"]
    assert "bullet" not in third
    levels = one.get()["lists"][first["bullet"]["listId"]]["listProperties"]["nestingLevels"]
    assert [level["glyphType"] for level in levels[:3]] == ["DECIMAL", "ALPHA", "ROMAN"] and len(levels) == 9
    one.do({"createParagraphBullets": {**span(9, 10), "bulletPreset": "NUMBERED_DECIMAL_ALPHA_ROMAN"}})
    assert one.paragraphs()[2]["bullet"]["listId"] == first["bullet"]["listId"]
    one.do({"deleteParagraphBullets": span(1, 6)})
    assert ["bullet" in p for p in one.paragraphs()] == [False, False, True]
    assert one.paragraphs()[0]["paragraphStyle"]["indentStart"]["magnitude"] == 36


@shows("#replaceAllText > documents.get")
def test_replace_all_text_everywhere_with_the_style_of_the_first_letter(document):
    one = document("Teh cat and teh dog")
    one.do({"updateTextStyle": {**span(13, 16), **BOLD}}, {"createHeader": {"type": "DEFAULT"}})
    header = next(iter(one.get()["headers"]))
    one.do({"insertText": {"location": {"segmentId": header, "index": 0}, "text": "teh head"}})
    reply = one.do({"replaceAllText": {"containsText": {"text": "TEH"}, "replaceText": "the"}})
    assert reply["replies"][0]["replaceAllText"]["occurrencesChanged"] == 3
    assert one.runs() == [("the cat and ", {}), ("the", {"bold": True}), (" dog\n", {})]
    reply = one.do({"replaceAllText": {"containsText": {"text": "DOG", "matchCase": True}, "replaceText": "x"}})
    assert reply["replies"] == [{"replaceAllText": {}}]
    one.do({"replaceAllText": {"containsText": {"text": r"c\wt", "searchByRegex": True}, "replaceText": "one\ntwo 😀"}})
    assert one.text == "the one\ntwo 😀 and the dog\n"


@shows("#createNamedRange #replaceNamedRangeContent #deleteNamedRange > documents.get")
def test_named_ranges_move_with_the_text(document):
    one = document("keep [PRICE] here")
    made = one.do({"createNamedRange": {"name": "price", **span(6, 13)}})
    range_id = made["replies"][0]["createNamedRange"]["namedRangeId"]
    one.do(insert(1, "Please "), insert(14, "NEW "))
    (named,) = one.get()["namedRanges"]["price"]["namedRanges"]
    assert named["namedRangeId"] == range_id
    assert [(r["startIndex"], r["endIndex"]) for r in named["ranges"]] == [(13, 24)]
    one.do({"replaceNamedRangeContent": {"namedRangeName": "price", "text": "12 EUR"}})
    assert one.text == "Please keep 12 EUR here\n"
    (named,) = one.get()["namedRanges"]["price"]["namedRanges"]
    assert [(r["startIndex"], r["endIndex"]) for r in named["ranges"]] == [(13, 19)]
    one.do({"deleteNamedRange": {"name": "price"}})
    assert "namedRanges" not in one.get() and "12 EUR" in one.text


def test_a_named_range_ends_with_its_text(document):
    one = document("gone soon")
    one.do({"createNamedRange": {"name": "n", **span(1, 5)}}, delete(1, 6))
    assert "namedRanges" not in one.get()


def test_revisions_guard_writes(document):
    one = document("first")
    revision = one.get()["revisionId"]
    new = one.do(insert(1, "x"), requiredRevisionId=revision)["writeControl"]["requiredRevisionId"]
    assert new == one.get()["revisionId"] != revision
    error = one.refused(insert(1, "y"), requiredRevisionId=revision)
    assert error.status_code == 400 and "does not match the latest revision" in str(error)
    one.do(insert(1, "z"), targetRevisionId=revision)
    assert one.text == "zxfirst\n"
    assert one.refused(insert(1, "y"), targetRevisionId="nobody").status_code == 400


@shows("#updateNamedStyle > documents.get")
def test_named_styles(document):
    one = document()
    style = {"namedStyleType": "HEADING_1", "textStyle": {"bold": True}}
    one.do({"updateNamedStyle": {"namedStyle": style, "fields": "namedStyleType,textStyle.bold"}})
    (heading,) = [s for s in one.get()["namedStyles"]["styles"] if s["namedStyleType"] == "HEADING_1"]
    assert heading["textStyle"]["bold"] is True and heading["textStyle"]["fontSize"]["magnitude"] == 20
    assert "Named style type" in str(one.refused({"updateNamedStyle": {"namedStyle": style, "fields": "textStyle"}}))
