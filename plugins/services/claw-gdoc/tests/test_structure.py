"""Tables, objects, headers, footnotes, sections and tabs, through the official client."""

from __future__ import annotations

import pytest
from benchflow_claw_kit.effects import shows

pytestmark = pytest.mark.xdist_group("claw-gdoc-structure")


def span(low, high, **more):
    return {"range": {"startIndex": low, "endIndex": high, **more}}


def at(index, **more):
    return {"location": {"index": index, **more}}


def cell(start, row, column, **more):
    return {
        "tableCellLocation": {"tableStartLocation": {"index": start}, "rowIndex": row, "columnIndex": column},
        **more,
    }


def with_table(document, rows=2, columns=2):
    one = document("before\nafter")
    one.do({"insertTable": {**at(8), "rows": rows, "columns": columns}})
    start = one.table()["startIndex"]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            index = start + 3 + row * (1 + 2 * columns) + 2 * column
            one.do({"insertText": {**at(index), "text": f"{row}{column}"}})
    return one, start


@shows("#insertTable documents.create documents.batchUpdate > documents.get")
def test_a_table_takes_a_place_for_itself_its_rows_and_its_cells(document):
    one = document("before\nafter")
    one.do({"insertTable": {**at(8), "rows": 2, "columns": 3}})
    table = one.table()
    assert (table["startIndex"], table["endIndex"]) == (9, 9 + 2 + 2 * (1 + 3 * 2))
    row = table["table"]["tableRows"][1]
    assert row["startIndex"] == 9 + 1 + 7
    assert row["tableCells"][2]["content"][0]["startIndex"] == row["startIndex"] + 1 + 2 * 2 + 1
    newline = next(block for block in one.content if block.get("endIndex") == 9)
    assert newline["paragraph"]["elements"][0]["textRun"]["content"] == "\n", "a paragraph stands before it"


def test_cells_take_text_and_the_structure_does_not(document):
    one, start = with_table(document)
    assert one.cells() == [["00", "01"], ["10", "11"]]
    error = one.refused({"insertText": {**at(start), "text": "x"}})
    assert "inside the bounds of an existing paragraph" in str(error)
    assert "Invalid deletion range" in str(one.refused({"deleteContentRange": span(start - 1, start)}))
    assert "Invalid deletion range" in str(one.refused({"deleteContentRange": span(start + 3, start + 8)}))
    one.do({"deleteContentRange": span(start + 3, start + 4)})
    assert one.cells()[0] == ["0", "01"]


@shows("#insertTableRow #insertTableColumn #deleteTableRow #deleteTableColumn > documents.get")
def test_rows_and_columns_come_and_go(document):
    one, start = with_table(document)
    one.do(
        {"insertTableRow": cell(start, 0, 0, insertBelow=True)},
        {"insertTableColumn": cell(start, 0, 1, insertRight=False)},
    )
    assert one.cells() == [["00", "", "01"], ["", "", ""], ["10", "", "11"]]
    table = one.table()["table"]
    assert (table["rows"], table["columns"]) == (3, 3)
    one.do({"deleteTableRow": cell(start, 1, 0)}, {"deleteTableColumn": cell(start, 0, 1)})
    assert one.cells() == [["00", "01"], ["10", "11"]]
    one.do({"deleteTableRow": cell(start, 0, 0)}, {"deleteTableRow": cell(start, 0, 0)})
    assert not [block for block in one.content if "table" in block]
    assert "no table starts at index" in str(one.refused({"deleteTableRow": cell(start, 0, 0)}))


@shows("#deleteContentRange > documents.get")
def test_a_whole_table_can_be_deleted(document):
    one, start = with_table(document)
    end = one.table()["endIndex"]
    one.do({"deleteContentRange": span(start, end)})
    assert one.text == "before\n\nafter\n"


@shows("#mergeTableCells #unmergeTableCells > documents.get")
def test_merged_cells_gather_the_text(document):
    one, start = with_table(document)
    area = cell(start, 0, 0)
    one.do({"mergeTableCells": {"tableRange": {**area, "rowSpan": 1, "columnSpan": 2}}})
    head = one.table()["table"]["tableRows"][0]["tableCells"][0]
    assert head["tableCellStyle"]["columnSpan"] == 2 and one.cells()[0] == ["00\n01", ""]
    one.do({"unmergeTableCells": {"tableRange": {**area, "rowSpan": 1, "columnSpan": 2}}})
    assert one.table()["table"]["tableRows"][0]["tableCells"][0]["tableCellStyle"]["columnSpan"] == 1
    wrong = {"mergeTableCells": {"tableRange": {**area, "rowSpan": 3, "columnSpan": 1}}}
    assert "out of bounds" in str(one.refused(wrong))


@shows("#updateTableCellStyle #updateTableColumnProperties #updateTableRowStyle #pinTableHeaderRows > documents.get")
def test_styles_of_cells_columns_and_rows(document):
    one, start = with_table(document)
    red = {"color": {"rgbColor": {"red": 1}}}
    one.do(
        {"updateTableCellStyle": {"tableStartLocation": {"index": start}, "tableCellStyle": {"backgroundColor": {"color": red["color"]}}, "fields": "backgroundColor"}},
        {"updateTableColumnProperties": {"tableStartLocation": {"index": start}, "columnIndices": [1], "tableColumnProperties": {"widthType": "FIXED_WIDTH", "width": {"magnitude": 90, "unit": "PT"}}, "fields": "*"}},
        {"updateTableRowStyle": {"tableStartLocation": {"index": start}, "rowIndices": [0], "tableRowStyle": {"minRowHeight": {"magnitude": 40, "unit": "PT"}}, "fields": "minRowHeight"}},
        {"pinTableHeaderRows": {"tableStartLocation": {"index": start}, "pinnedHeaderRowsCount": 1}},
    )  # fmt: skip
    table = one.table()["table"]
    assert table["tableRows"][1]["tableCells"][1]["tableCellStyle"]["backgroundColor"] == {"color": red["color"]}
    assert [c["widthType"] for c in table["tableStyle"]["tableColumnProperties"]] == [
        "EVENLY_DISTRIBUTED",
        "FIXED_WIDTH",
    ]
    assert table["tableRows"][0]["tableRowStyle"] == {
        "minRowHeight": {"magnitude": 40, "unit": "PT"},
        "tableHeader": True,
    }


def test_too_large_a_table_is_refused(document):
    for rows, columns in ((0, 1), (1, 0), (2, 21), (100_000, 20)):
        assert document("x").refused({"insertTable": {**at(1), "rows": rows, "columns": columns}}).status_code == 400


@shows("#insertPageBreak > documents.get")
def test_page_break_is_a_mark_and_a_newline(document):
    one = document("ab")
    one.do({"insertPageBreak": at(2)})
    first, second = one.paragraphs()
    assert [next(k for k in e if not k.endswith("Index")) for e in first["elements"]] == [
        "textRun",
        "pageBreak",
        "textRun",
    ]
    assert one.content[-1]["endIndex"] == 6 and second["elements"][0]["textRun"]["content"] == "b\n"
    two, start = with_table(document)
    assert "outside of tables" in str(two.refused({"insertPageBreak": at(start + 3)}))


@shows("#insertInlineImage #replaceImage > documents.get")
def test_images_come_with_an_object_and_go_with_their_mark(document):
    one = document("ab")
    size = {"height": {"magnitude": 50, "unit": "PT"}, "width": {"magnitude": 80, "unit": "PT"}}
    reply = one.do({"insertInlineImage": {**at(2), "uri": "https://example.com/a.png", "objectSize": size}})
    image = reply["replies"][0]["insertInlineImage"]["objectId"]
    embedded = one.get()["inlineObjects"][image]["inlineObjectProperties"]["embeddedObject"]
    assert embedded["imageProperties"]["sourceUri"] == "https://example.com/a.png" and embedded["size"] == size
    one.do({"replaceImage": {"imageObjectId": image, "uri": "https://example.com/b.png"}})
    embedded = one.get()["inlineObjects"][image]["inlineObjectProperties"]["embeddedObject"]
    assert embedded["imageProperties"]["sourceUri"] == "https://example.com/b.png"
    assert one.refused({"insertInlineImage": {**at(2), "uri": "file:///etc/passwd"}}).status_code == 400
    one.do({"deleteContentRange": span(2, 3)})
    assert "inlineObjects" not in one.get() and one.text == "ab\n"


@shows("#insertPerson #insertRichLink #insertDate > documents.get")
def test_people_links_and_dates_are_one_place_wide(document):
    one = document("x")
    one.do(
        {"insertPerson": {**at(1), "personProperties": {"email": "priya@larkspur.example", "name": "Priya"}}},
        {"insertRichLink": {**at(1), "richLinkProperties": {"uri": "https://docs.google.com/document/d/1"}}},
        {"insertDate": {**at(1), "dateElementProperties": {"timestamp": "2026-03-02T10:00:00Z", "dateFormat": "DATE_FORMAT_ISO8601"}}},
    )  # fmt: skip
    date, link, person, _ = one.paragraphs()[0]["elements"]
    assert date["dateElement"]["dateElementProperties"]["displayText"] == "2026-03-02"
    assert link["richLink"]["richLinkProperties"]["uri"].endswith("/1")
    assert person["person"]["personProperties"]["email"] == "priya@larkspur.example"
    assert person["endIndex"] - person["startIndex"] == 1


@shows("#createHeader #createFooter #deleteHeader #deleteFooter > documents.get")
def test_headers_and_footers_are_segments_from_zero(document):
    one = document("body")
    header = one.do({"createHeader": {"type": "DEFAULT"}})["replies"][0]["createHeader"]["headerId"]
    footer = one.do({"createFooter": {"type": "DEFAULT"}})["replies"][0]["createFooter"]["footerId"]
    one.do({"insertText": {"location": {"segmentId": header, "index": 0}, "text": "Top"}})
    one.do({"insertText": {"endOfSegmentLocation": {"segmentId": footer}, "text": "Bottom"}})
    seen = one.get()
    assert seen["documentStyle"]["defaultHeaderId"] == header
    assert seen["headers"][header]["content"][0]["paragraph"]["elements"][0]["textRun"]["content"] == "Top\n"
    assert "startIndex" not in seen["headers"][header]["content"][0]
    assert "already exists" in str(one.refused({"createHeader": {"type": "DEFAULT"}}))
    one.do({"deleteHeader": {"headerId": header}}, {"deleteFooter": {"footerId": footer}})
    seen = one.get()
    assert "headers" not in seen and "footers" not in seen and "defaultHeaderId" not in seen["documentStyle"]


@shows("#createFootnote > documents.get")
def test_footnotes_are_numbered_in_order_and_go_with_their_mark(document):
    one = document("one two")
    second = one.do({"createFootnote": at(8)})["replies"][0]["createFootnote"]["footnoteId"]
    first = one.do({"createFootnote": at(4)})["replies"][0]["createFootnote"]["footnoteId"]
    marks = [e["footnoteReference"] for p in one.paragraphs() for e in p["elements"] if "footnoteReference" in e]
    assert [(m["footnoteId"], m["footnoteNumber"]) for m in marks] == [(first, "1"), (second, "2")]
    one.do({"insertText": {"location": {"segmentId": first, "index": 1}, "text": "note"}})
    assert "note" in str(one.get()["footnotes"][first])
    assert "footnote" in str(
        one.refused({"insertTable": {"location": {"segmentId": first, "index": 1}, "rows": 1, "columns": 1}})
    )
    one.do({"deleteContentRange": span(4, 5)})
    assert list(one.get()["footnotes"]) == [second]


@shows("#insertSectionBreak #updateSectionStyle #updateDocumentStyle > documents.get")
def test_sections_and_the_style_of_the_page(document):
    one = document("one two")
    one.do({"insertSectionBreak": {**at(4), "sectionType": "NEXT_PAGE"}})
    kinds = [block["sectionBreak"]["sectionStyle"]["sectionType"] for block in one.content if "sectionBreak" in block]
    assert kinds == ["CONTINUOUS", "NEXT_PAGE"]
    where = next(b["startIndex"] for b in one.content if "sectionBreak" in b and "startIndex" in b)
    one.do({"updateSectionStyle": {**span(where + 1, where + 2), "sectionStyle": {"marginLeft": {"magnitude": 10, "unit": "PT"}}, "fields": "marginLeft"}})  # fmt: skip
    styles = [block["sectionBreak"]["sectionStyle"] for block in one.content if "sectionBreak" in block]
    assert "marginLeft" not in styles[0] and styles[1]["marginLeft"]["magnitude"] == 10
    one.do({"createHeader": {"type": "DEFAULT", "sectionBreakLocation": {"index": where}}})
    styles = [block["sectionBreak"]["sectionStyle"] for block in one.content if "sectionBreak" in block]
    assert styles[1]["defaultHeaderId"] in one.get()["headers"]
    one.do(
        {
            "updateDocumentStyle": {
                "documentStyle": {"marginTop": {"magnitude": 20, "unit": "PT"}},
                "fields": "marginTop",
            }
        }
    )
    assert one.get()["documentStyle"]["marginTop"]["magnitude"] == 20


@shows("#addDocumentTab #updateDocumentTabProperties #deleteTab > documents.get")
def test_tabs_have_bodies_of_their_own(document):
    one = document("first")
    made = one.do({"addDocumentTab": {"tabProperties": {"title": "Notes"}}})["replies"][0]["addDocumentTab"]
    tab = made["tabProperties"]["tabId"]
    one.do({"insertText": {"location": {"index": 1, "tabId": tab}, "text": "second"}})
    one.do({"addDocumentTab": {"tabProperties": {"title": "Child", "parentTabId": tab}}})
    seen = one.get(includeTabsContent=True)
    assert "body" not in seen and [t["tabProperties"]["title"] for t in seen["tabs"]] == ["Tab 1", "Notes"]
    assert seen["tabs"][1]["childTabs"][0]["tabProperties"]["parentTabId"] == tab
    assert one.text == "first\n", "the old shape shows the first tab"
    reply = one.do(
        {"replaceAllText": {"containsText": {"text": "s"}, "replaceText": "S", "tabsCriteria": {"tabIds": [tab]}}}
    )
    assert reply["replies"][0]["replaceAllText"]["occurrencesChanged"] == 1 and one.text == "first\n"
    one.do(
        {
            "updateDocumentTabProperties": {
                "tabProperties": {"tabId": tab, "title": "N", "index": 0},
                "fields": "title,index",
            }
        }
    )
    assert [t["tabProperties"]["title"] for t in one.get(includeTabsContent=True)["tabs"]] == ["N", "Tab 1"]
    one.do({"deleteTab": {"tabId": tab}})
    assert [t["tabProperties"]["title"] for t in one.get(includeTabsContent=True)["tabs"]] == ["Tab 1"]
    last = one.get(includeTabsContent=True)["tabs"][0]["tabProperties"]["tabId"]
    assert "last tab" in str(one.refused({"deleteTab": {"tabId": last}}))
