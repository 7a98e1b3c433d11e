"""Comments: threads tied to a range of text, which moves with it."""

from __future__ import annotations

import html
from typing import Any

from benchflow_service_claw_gdoc.model.draft import Draft
from benchflow_service_claw_gdoc.model.tree import EditError, Element, text_between
from benchflow_service_claw_gdoc.requests.registry import Reply, handles

__all__ = ["COMMENTS", "new_post", "shown_thread"]

Fields = dict[str, Any]
COMMENTS = frozenset({"insertComment", "addCommentReply", "updateCommentPost", "deleteComment", "deleteCommentReply"})
_LIMIT = 2048


def _content(text: str, needed: bool = True) -> str:
    if needed and not text.strip():
        raise EditError("The content of a post cannot be empty.")
    if len(text.encode("utf-8", "replace")) > _LIMIT:
        raise EditError(f"The content of a post must not exceed {_LIMIT} UTF-8 code units.")
    return text


def new_post(draft: Draft, content: str, action: str = "NO_COMMENT_ACTION_CHANGE", assignee: str = "") -> Element:
    post = {"postId": draft.new_id("post"), "user": draft.user, "createTime": draft.now, "updateTime": draft.now}
    post |= {"content": content, "commentAction": action}
    return post | ({"assigneeEmail": assignee} if assignee else {})


def _thread(draft: Draft, request: Fields) -> Element:
    if request.get("suggestionId"):
        for thread in draft.suggestions:
            if thread["suggestionId"] == request["suggestionId"]:
                return thread
        raise EditError(f"Suggestion with ID {request['suggestionId']} was not found.")
    wanted = request.get("commentId", "")
    for thread in draft.comments:
        if thread["commentId"] == wanted:
            return thread
    raise EditError(f"Comment with ID {wanted} was not found.")


def _own(draft: Draft, post: Element) -> Element:
    if post.get("user") != draft.user:
        raise EditError("The requesting user is not the author of the post.")
    return post


@handles("insertComment")
def insert_comment(draft: Draft, request: Fields) -> Reply:
    place = draft.range(request)
    content = _content(request.get("content", ""))
    assignee = request.get("assigneeEmailAddress", "")
    span = {"startIndex": place.low, "endIndex": place.high, "tabId": place.tab.id}
    anchor = "kix." + draft.new_id("commentAnchor")
    anchors = place.tab.data.setdefault("commentAnchors", {})
    ranges = [span | ({"segmentId": place.segment_id} if place.segment_id else {})]
    anchors[anchor] = {"anchorId": anchor, "ranges": ranges}
    thread = {
        "commentId": "AAAA" + draft.new_id("comment"),
        "anchorId": anchor,
        "plainTextQuote": text_between(place.content, place.low, place.high),
        "headPost": new_post(draft, content, assignee=assignee),
        "replies": [],
        "status": "OPEN",
    }
    draft.comments.append(thread)
    return {"insertComment": {"commentThread": shown_thread(thread, draft.user)}}


@handles("addCommentReply")
def add_reply(draft: Draft, request: Fields) -> Reply:
    """`RESOLVE` and `REOPEN` may go without a word."""
    thread, given = _thread(draft, request), request.get("post", {})
    action = given.get("commentAction") or "NO_COMMENT_ACTION_CHANGE"
    changes = action in ("RESOLVE", "REOPEN")
    if changes and "suggestionId" in thread:
        raise EditError("A suggestion is accepted or rejected, not resolved.")
    assignee = given.get("assigneeEmail", "")
    if assignee and (changes or not thread["headPost"].get("assigneeEmail")):
        raise EditError("An assignee can only be given in a thread that has one, without an action.")
    if changes:
        thread["status"] = "RESOLVED" if action == "RESOLVE" else "OPEN"
    post = new_post(draft, _content(given.get("content", ""), not changes), action, assignee)
    thread["replies"].append(post)
    return {"addCommentReply": {"post": shown_post(post, draft.user)}}


@handles("updateCommentPost")
def update_post(draft: Draft, request: Fields) -> Reply:
    post = _own(draft, _find(_thread(draft, request), request.get("postId", "")))
    post |= {"content": _content(request.get("content", "")), "updateTime": draft.now}
    return None


def _find(thread: Element, wanted: str) -> Element:
    for post in (thread["headPost"], *thread["replies"]):
        if post["postId"] == wanted and not post.get("deleted"):
            found: Element = post
            return found
    raise EditError(f"Post with ID {wanted} was not found.")


@handles("deleteComment")
def delete_comment(draft: Draft, request: Fields) -> Reply:
    thread = _thread(draft, request)
    _own(draft, thread["headPost"])
    draft.comments.remove(thread)
    for tab in draft.tabs():
        tab.data.get("commentAnchors", {}).pop(thread["anchorId"], None)
    return None


@handles("deleteCommentReply")
def delete_reply(draft: Draft, request: Fields) -> Reply:
    thread = _thread(draft, request)
    post = _own(draft, _find(thread, request.get("postId", "")))
    if post is thread["headPost"]:
        raise EditError("The head post cannot be deleted: delete the comment.")
    if post.get("suggestionAction", "NO") in ("ACCEPT", "REJECT"):
        raise EditError("A reply with an action or an assignee cannot be deleted.")
    if post.get("commentAction") in ("RESOLVE", "REOPEN") or post.get("assigneeEmail"):
        raise EditError("A reply with an action or an assignee cannot be deleted.")
    kept = {name: post[name] for name in ("postId", "createTime", "commentAction") if name in post}
    post.clear()
    post |= kept | {"deleted": True, "updateTime": draft.now}
    return None


def shown_thread(thread: Element, user: str) -> Element:
    replies = [shown_post(post, user) for post in thread["replies"]]
    return {**thread, "headPost": shown_post(thread["headPost"], user), "replies": replies}


def shown_post(post: Element, user: str) -> Element:
    shown = {name: value for name, value in post.items() if name != "user"}
    if post.get("deleted"):
        return shown
    author = {
        "displayName": post["user"].partition("@")[0],
        "me": post["user"] == user,
        "user": f"users/{post['user']}",
    }
    return {**shown, "author": author, "contentHtml": html.escape(post["content"]).replace("\n", "<br>")}
