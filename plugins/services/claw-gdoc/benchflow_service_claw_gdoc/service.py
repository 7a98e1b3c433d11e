"""Google Docs v1: three methods, the third of which does everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchflow_claw_kit.api import Api, Call
from benchflow_claw_kit.contract import load_contract
from benchflow_claw_kit.errors import ApiError
from benchflow_claw_kit.service import Service, View

from benchflow_service_claw_gdoc.batch import apply_batch
from benchflow_service_claw_gdoc.model.render import render
from benchflow_service_claw_gdoc.requests.comments import COMMENTS, shown_thread
from benchflow_service_claw_gdoc.requests.suggestions import SETTLING, previewed, shown_suggestions
from benchflow_service_claw_gdoc.scenarios import SCENARIOS, load, prepare
from benchflow_service_claw_gdoc.store import (
    SCHEMA,
    TABLES,
    create,
    load_document,
    new_id,
    primary_user,
    save,
    show_time,
)
from benchflow_service_claw_gdoc.tools import TOOLS

__all__ = ["SERVICE", "api"]

api = Api(load_contract(Path(__file__).with_name("contract.json"), "modern"))


def _user(call: Call) -> str:
    return call.principal.user or primary_user(call.store)


@api.method("docs.documents.create")
def create_document(call: Call) -> dict[str, Any]:
    """Of the body only the title counts, as in the real one."""
    if call.body.get("documentId"):
        raise ApiError(400, "Invalid value at 'document.document_id': the ID is chosen by the service.", "invalid")
    row = create(call.store, call.body.get("title") or "Untitled document", _user(call))
    return render(load_document(call.store, row["id"], _user(call))[1], False, "SUGGESTIONS_INLINE")


@api.method("docs.documents.get")
def get_document(call: Call) -> dict[str, Any]:
    _, document = load_document(call.store, call["documentId"], _user(call))
    mode = call.get("suggestionsViewMode", "DEFAULT_FOR_CURRENT_ACCESS")
    comments = _comments_mode(call, mode)
    editor, reader = document["role"] in ("owner", "writer"), document["role"] == "reader"
    if mode == "DEFAULT_FOR_CURRENT_ACCESS":
        mode = "PREVIEW_WITHOUT_SUGGESTIONS" if reader else "SUGGESTIONS_INLINE"
    wants_all = call.get("commentsViewMode") == "COMMENTS_VIEW_MODE_INCLUDED"
    if reader and (mode != "PREVIEW_WITHOUT_SUGGESTIONS" or wants_all):
        raise ApiError(403, "The caller does not have permission", "forbidden")
    if mode.startswith("PREVIEW"):
        document = previewed(document, mode == "PREVIEW_SUGGESTIONS_ACCEPTED")
    if not comments or reader:
        return render(document, bool(call.get("includeTabsContent")), mode, editor)
    threads = [shown_thread(one, _user(call)) for one in document["comments"]]
    return render(document, True, mode, editor, threads, shown_suggestions(document, _user(call)))


def _comments_mode(call: Call, mode: str) -> bool:
    """Whether comments are shown. They come with tabs, and beside inline suggestions only."""
    asked = call.get("commentsViewMode", "COMMENTS_VIEW_MODE_UNSPECIFIED")
    if asked == "COMMENTS_VIEW_MODE_UNSPECIFIED":
        return False
    fields = call.request.first("fields") or ""
    if not call.get("includeTabsContent") and "tabs" not in fields:
        raise ApiError(400, "comments_view_mode requires include_tabs_content to be true.", "invalid")
    if asked == "COMMENTS_VIEW_MODE_OMITTED":
        return False
    if mode.startswith("PREVIEW") or (asked == "COMMENTS_VIEW_MODE_INCLUDED" and mode != "SUGGESTIONS_INLINE"):
        raise ApiError(400, "comments_view_mode requires suggestions_view_mode SUGGESTIONS_INLINE.", "invalid")
    return True


@api.method("docs.documents.batchUpdate")
def batch_update(call: Call) -> dict[str, Any]:
    requests = call.body.get("requests", [])
    asked = {name for one in requests for name in one}
    control = call.body.get("writeControl", {})
    suggest = control.get("writeMode") == "SUGGEST"
    talk = suggest or (bool(asked) and asked <= COMMENTS | SETTLING)
    need = ("owner", "writer", "commenter") if talk else ("owner", "writer")
    row, document = load_document(call.store, call["documentId"], _user(call), need)
    _check_revision(call, row, control)
    if not requests:
        raise ApiError(400, "Must specify at least one request.", "badRequest")
    now, ids = show_time(call.store), lambda kind: new_id(call.store, kind)
    changed, replies, suggested = apply_batch(document, requests, ids, _user(call), now, suggest)
    revision = save(call.store, row, changed, _user(call))
    call.about = "".join(f" #{name}" for name in sorted(asked))
    answer = {"documentId": row["id"], "replies": replies, "writeControl": {"requiredRevisionId": revision}}
    if suggest or any(suggested):
        answer["suggestionResponses"] = suggested
    return {**answer, "commentUpdateState": "ALL_SAVED" if asked & COMMENTS else "NO_UPDATES_REQUESTED"}


def _check_revision(call: Call, row: dict[str, Any], control: dict[str, Any]) -> None:
    required, target = control.get("requiredRevisionId"), control.get("targetRevisionId")
    if required and target:
        raise ApiError(400, "Only one of requiredRevisionId and targetRevisionId can be set.", "invalid")
    if required and required != row["revision_id"]:
        message = f"The required revision ID '{required}' does not match the latest revision."
        raise ApiError(400, message, "failedPrecondition", canonical="FAILED_PRECONDITION")
    known = "SELECT 1 FROM doc_revisions WHERE document = ? AND revision_id = ?"
    if target and not call.store.one(known, row["id"], target):
        raise ApiError(400, f"Invalid target revision ID '{target}'.", "badRequest")


SERVICE = Service(
    "gdoc",
    "claw-gdoc",
    9004,
    "mock Google Docs API",
    SCHEMA,
    api,
    scenarios=SCENARIOS,
    load=load,
    prepare=prepare,
    tools=TOOLS,
    tables=TABLES,
    kinds={
        "documents": "document",
        "doc_users": "user",
        "doc_access": "access",
        "doc_comments": "comment",
        "doc_suggestions": "suggestion",
        "doc_revisions": "revision",
    },
    views=(
        View("Documents", "SELECT id, title, owner, revision, modified_by, text FROM documents ORDER BY title, id"),
        View("Comments", "SELECT document, quote, status, thread FROM doc_comments ORDER BY document, number"),
        View("Suggestions", "SELECT document, author, status, summary FROM doc_suggestions ORDER BY document, number"),
        View("Access", "SELECT document, email, role FROM doc_access ORDER BY document, email"),
        View("Users", "SELECT email, name, is_primary FROM doc_users ORDER BY email"),
    ),
)
