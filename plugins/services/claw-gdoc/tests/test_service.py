"""The service around the API: who may read, seeds, diffs, the table in the docs, a file shared with Drive, odd input."""

from __future__ import annotations

import json
from itertools import count

import pytest
from benchflow_claw_kit import cli
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.testing import google_client, running
from benchflow_service_claw_gdoc.batch import apply_batch
from benchflow_service_claw_gdoc.model.defaults import new_tab
from benchflow_service_claw_gdoc.model.render import render
from benchflow_service_claw_gdoc.service import SERVICE
from googleapiclient.errors import HttpError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.xdist_group("claw-gdoc-service")

MODULE = "benchflow_service_claw_gdoc.cli"


def run(capsys, db, *words):
    """The command line, in this process: exit code, output, errors."""
    code = cli.run(SERVICE, ["--db", str(db), *words])
    return code, *capsys.readouterr()


@pytest.mark.parametrize("scenario", ["office", "newsroom"])
def test_a_seed_repeats_and_another_differs(tmp_path, capsys, scenario):
    dumps = []
    for number, name in ((1, "a"), (1, "b"), (2, "c")):
        assert run(capsys, tmp_path / name, "seed", "--scenario", scenario, "--seed", str(number))[0] == 0
        dumps.append(run(capsys, tmp_path / name, "dump")[1])
    assert dumps[0] == dumps[1] != dumps[2]
    assert len(json.loads(dumps[0])["documents"]) >= 4


def test_a_tasks_own_scenario(tmp_path, capsys):
    world = {
        "users": [{"email": "me@x.org", "name": "Me", "primary": True}],
        "documents": [{"id": "doc1", "title": "T", "content": [{"heading": 1, "text": "Hi"}, "text", {"table": [["a", "b"]]}]}],
    }  # fmt: skip
    (tmp_path / "w.json").write_text(json.dumps(world))
    assert run(capsys, tmp_path / "a.db", "seed", "--scenario", str(tmp_path / "w.json"))[0] == 0
    documents = json.loads(run(capsys, tmp_path / "a.db", "dump")[1])["documents"]
    assert documents["doc1"]["text"] == "Hi\ntext\n\na\tb\n\n"
    (tmp_path / "w.json").write_text(json.dumps({"documents": [{"title": "T", "content": [{"headline": 1}]}]}))
    code, _, errors = run(capsys, tmp_path / "a.db", "seed", "--scenario", str(tmp_path / "w.json"))
    assert code == 2 and "headline" in errors and errors.count("\n") == 1
    assert json.loads(run(capsys, tmp_path / "a.db", "dump")[1])["documents"].keys() == {"doc1"}, "nothing was lost"


def test_others_documents_are_forbidden_and_readers_do_not_write(server):
    priya = google_client("docs", "v1", server.url, token="priya@larkspur.example").documents()
    assert priya.get(documentId="1LarkspurLaunchPlan").execute()["title"] == "Spring launch plan"
    with pytest.raises(HttpError) as caught:
        priya.get(documentId="1LarkspurSalaries").execute()
    assert caught.value.status_code == 403
    with pytest.raises(HttpError) as caught:
        priya.get(documentId="nothing").execute()
    assert caught.value.status_code == 404 and json.loads(caught.value.content)["error"]["status"] == "NOT_FOUND"
    alex = google_client("docs", "v1", server.url, token="alex@larkspur.example").documents()
    seen = alex.get(documentId="1LarkspurHandbook").execute()
    assert "revisionId" not in seen and seen["suggestionsViewMode"] == "PREVIEW_WITHOUT_SUGGESTIONS"
    body = {"requests": [{"insertText": {"location": {"index": 1}, "text": "x"}}]}
    with pytest.raises(HttpError) as caught:
        alex.batchUpdate(documentId="1LarkspurHandbook", body=body).execute()
    assert caught.value.status_code == 403
    reader = google_client("docs", "v1", server.url, token="alex@larkspur.example;documents.readonly").documents()
    reader.get(documentId="1LarkspurWeeklySync").execute()
    with pytest.raises(HttpError) as caught:
        reader.create(body={"title": "x"}).execute()
    assert caught.value.status_code == 403 and "insufficient authentication scopes" in str(caught.value)


def test_partial_answers(docs):
    seen = docs.get(
        documentId="1LarkspurWeeklySync", fields="title,body(content(paragraph(elements(textRun/content))))"
    ).execute()
    assert set(seen) == {"title", "body"} and "startIndex" not in seen["body"]["content"][1]


def test_the_verifier_sees_what_changed(server, docs):
    body = {"requests": [{"replaceAllText": {"containsText": {"text": "teh same"}, "replaceText": "the same"}}]}
    docs.batchUpdate(documentId="1LarkspurReview2025", body=body).execute()
    changed = [one for one in server.admin("GET", "diff")["changed"] if one["id"] == "1LarkspurReview2025"]
    assert changed and "teh same" in changed[0]["before"]["text"] and "the same" in changed[0]["after"]["text"]


def test_mcp_tools_reach_the_same_documents(server):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call["params"] = {
        "name": "replace_all_text",
        "arguments": {"documentId": "1LarkspurWeeklySync", "find": "rota", "replace": "roster"},
    }
    status, body, _ = server.ask("POST", "/mcp", call)
    assert status == 200 and not body["result"]["isError"]
    call["params"] = {"name": "get_document", "arguments": {"documentId": "1LarkspurWeeklySync"}}
    assert "roster" in server.ask("POST", "/mcp", call)[1]["result"]["content"][0]["text"]


def test_one_file_for_docs_and_drive(tmp_path):
    """Only with the same --db do Drive and Docs know each other's documents."""
    pytest.importorskip("benchflow_service_claw_gdrive")
    db = tmp_path / "both.db"
    with running("benchflow_service_claw_gdrive.cli", db) as first, running(MODULE, db) as second:
        drive = google_client("drive", "v3", first.url)
        docs = google_client("docs", "v1", second.url).documents()
        made = docs.create(body={"title": "From Docs"}).execute()["documentId"]
        seen = drive.files().get(fileId=made, fields="*").execute()
        assert seen["name"] == "From Docs" and seen["mimeType"] == "application/vnd.google-apps.document"
        body = {"requests": [{"insertText": {"location": {"index": 1}, "text": "Hello Drive"}}]}
        docs.batchUpdate(documentId=made, body=body).execute()
        assert b"Hello Drive" in drive.files().export(fileId=made, mimeType="text/plain").execute()
        drive.files().update(fileId=made, body={"name": "Renamed"}).execute()
        assert docs.get(documentId=made).execute()["title"] == "Renamed"
        copied = drive.files().copy(fileId=made).execute()["id"]
        assert "Hello Drive" in str(docs.get(documentId=copied).execute()["body"])
        kind = "application/vnd.google-apps.document"
        other = drive.files().create(body={"name": "From Drive", "mimeType": kind}).execute()["id"]
        assert docs.get(documentId=other).execute()["title"] == "From Drive"
        drive.files().delete(fileId=made).execute()
        with pytest.raises(HttpError) as caught:
            docs.get(documentId=made).execute()
        assert caught.value.status_code == 404


# -- odd input

indexes = st.integers(-3, 60)
ranges = st.fixed_dictionaries({"startIndex": indexes, "endIndex": indexes})
texts = st.text(alphabet="ab \n\t😀é", max_size=6)
location = st.fixed_dictionaries({"index": indexes})
table = st.fixed_dictionaries(
    {"tableStartLocation": location, "rowIndex": st.integers(-1, 4), "columnIndex": st.integers(-1, 4)}
)
requests = st.one_of(
    st.fixed_dictionaries({"insertText": st.fixed_dictionaries({"location": location, "text": texts})}),
    st.fixed_dictionaries({"deleteContentRange": st.fixed_dictionaries({"range": ranges})}),
    st.fixed_dictionaries({"replaceAllText": st.fixed_dictionaries({"containsText": st.fixed_dictionaries({"text": texts}), "replaceText": texts})}),
    st.fixed_dictionaries({"updateTextStyle": st.fixed_dictionaries({"range": ranges, "textStyle": st.just({"bold": True}), "fields": st.sampled_from(["*", "bold", "x", ""])})}),
    st.fixed_dictionaries({"createParagraphBullets": st.fixed_dictionaries({"range": ranges, "bulletPreset": st.just("BULLET_DISC_CIRCLE_SQUARE")})}),
    st.fixed_dictionaries({"insertTable": st.fixed_dictionaries({"location": location, "rows": st.integers(-1, 3), "columns": st.integers(-1, 3)})}),
    st.fixed_dictionaries({"insertTableRow": st.fixed_dictionaries({"tableCellLocation": table})}),
    st.fixed_dictionaries({"deleteTableColumn": st.fixed_dictionaries({"tableCellLocation": table})}),
    st.fixed_dictionaries({"mergeTableCells": st.fixed_dictionaries({"tableRange": st.fixed_dictionaries({"tableCellLocation": table, "rowSpan": st.integers(-1, 3), "columnSpan": st.integers(-1, 3)})})}),
    st.fixed_dictionaries({"insertPageBreak": st.fixed_dictionaries({"location": location})}),
    st.fixed_dictionaries({"insertSectionBreak": st.fixed_dictionaries({"location": location, "sectionType": st.just("NEXT_PAGE")})}),
    st.fixed_dictionaries({"createFootnote": st.fixed_dictionaries({"location": location})}),
    st.fixed_dictionaries({"createNamedRange": st.fixed_dictionaries({"name": texts, "range": ranges})}),
    st.fixed_dictionaries({"replaceNamedRangeContent": st.fixed_dictionaries({"namedRangeName": texts, "text": texts})}),
)  # fmt: skip


def check_structure(content, start, first=True):
    """Indexes follow each other, a paragraph ends with its only newline, nothing is empty, text counts in UTF-16."""
    for block in content:
        assert block.get("startIndex", 0) == start
        if "paragraph" in block:
            at, text = start, ""
            for element in block["paragraph"]["elements"]:
                assert element.get("startIndex", 0) == at
                words = element.get("textRun", {}).get("content")
                size = len(words.encode("utf-16-le")) // 2 if words is not None else 1
                assert size > 0 and element["endIndex"] == at + size
                at, text = element["endIndex"], text + (words or "")
            assert at == block["endIndex"] and text.endswith("\n") and text.count("\n") == 1
        elif "table" in block:
            at = start + 1
            for row in block["table"]["tableRows"]:
                assert row["startIndex"] == at and len(row["tableCells"]) == block["table"]["columns"]
                at += 1
                for one in row["tableCells"]:
                    assert one["startIndex"] == at
                    at = check_structure(one["content"], at + 1, False)
                    assert one["endIndex"] == at
            assert block["endIndex"] == at + 1
        start = block["endIndex"]
    assert "paragraph" in content[-1]
    return start


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(requests, min_size=1, max_size=12))
def test_whatever_is_asked_the_structure_holds(batch):
    """Many batches, so without the way over HTTP; the same functions as behind it."""
    numbers = count()
    document = {"title": "", "documentId": "d", "revisionId": "r", "tabs": [new_tab("t.0", "Tab 1")]}
    start = {"insertText": {"location": {"index": 1}, "text": "Some text\nand 😀 more\n\tlast"}}
    for request in [start, *batch]:
        try:
            document, *_ = apply_batch(document, [request], lambda kind: f"{kind}{next(numbers)}")
        except ApiError as error:
            assert error.status == 400
    seen = render(document, False, "SUGGESTIONS_INLINE")
    check_structure(seen["body"]["content"], 0)
    for note in seen.get("footnotes", {}).values():
        check_structure(note["content"], 0)
    end = seen["body"]["content"][-1]["endIndex"]
    for group in seen.get("namedRanges", {}).values():
        for named in group["namedRanges"]:
            assert all(0 <= r["startIndex"] < r["endIndex"] <= end for r in named["ranges"])


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["requests", "insertText", "location", "index", "text", "x"]), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(body=junk)
def test_no_body_makes_it_fail(server, body):
    status, _, _ = server.ask("POST", "/v1/documents/1LarkspurWeeklySync:batchUpdate", body)
    assert status in (200, 400)
    status, _, _ = server.ask("POST", "/v1/documents", body)
    assert status in (200, 400)
