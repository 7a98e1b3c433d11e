"""Worlds: two of our own, and those that a task brings as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from benchflow_claw_kit.store import Store
from benchflow_claw_kit.worlds import read_world, scenarios

from benchflow_service_claw_gdoc.batch import apply_batch
from benchflow_service_claw_gdoc.compose import compose
from benchflow_service_claw_gdoc.model import utf16
from benchflow_service_claw_gdoc.model.defaults import new_tab
from benchflow_service_claw_gdoc.model.tree import paragraph_text, paragraphs
from benchflow_service_claw_gdoc.store import create, new_id, save_talk, show_time

__all__ = ["SCENARIOS", "load", "prepare"]

_WORLDS = Path(__file__).with_name("worlds")
_FEATURES = (
    *("offline mode", "shared filters", "bulk export", "keyboard shortcuts", "audit log"),
    *("dark theme", "saved views"),
)
_VENDORS = ("Halden Hosting", "Brightline Print", "Corvid Analytics", "Mistral Couriers", "Tern Insurance")


def prepare(store: Store) -> None:
    if store.value("SELECT count(*) FROM doc_users") == 0:
        store.insert("doc_users", email="alex@example.com", name="Alex Morgan", is_primary=1)


def load(store: Store, data: Mapping[str, Any]) -> None:
    """`users`: email, name, primary. `documents`: id, title, owner, content (blocks), shared: email, role;
    comments."""
    unknown = set(data) - {"users", "documents", "now"}
    if unknown:
        raise ValueError(f"unknown {', '.join(sorted(unknown))}; known: documents, now, users")
    for user in data.get("users", []):
        store.insert(
            "doc_users",
            email=user["email"],
            name=user.get("name", user["email"].partition("@")[0]),
            is_primary=int(bool(user.get("primary"))),
        )
    prepare(store)
    for entry in data.get("documents", []):
        _document(store, entry)


def _document(store: Store, entry: Mapping[str, Any]) -> None:
    owner = entry.get("owner") or store.value("SELECT email FROM doc_users ORDER BY is_primary DESC, email LIMIT 1")
    blocks = entry.get("content", [])
    tabs = [new_tab("t.0", "Tab 1")]
    tabs = compose(tabs, [blocks] if isinstance(blocks, str) else list(blocks), lambda kind: new_id(store, kind))
    row = create(store, entry["title"], owner, entry.get("id"), tabs)
    for share in entry.get("shared", []):
        if share["role"] not in ("reader", "commenter", "writer"):
            raise ValueError(f"role {share['role']!r}: reader, commenter or writer")
        store.insert("doc_access", document=row["id"], email=share["email"], role=share["role"])
    if entry.get("comments") or entry.get("suggestions"):
        _talk(store, row["id"], tabs, entry, owner)


def _talk(store: Store, document: str, tabs: list[Any], entry: Mapping[str, Any], owner: str) -> None:
    """Each `on` a text of the body, by `author`: comments with `replies` and `resolved`, and suggestions to `replace`
    it or to `insert` something behind it."""
    model: dict[str, Any] = {"title": "", "tabs": tabs, "comments": []}
    now = show_time(store)

    def do(user: str, request: dict[str, Any], suggest: bool = False) -> dict[str, Any]:
        nonlocal model
        model, replies, _ = apply_batch(model, [request], lambda kind: new_id(store, kind), user, now, suggest)
        return replies[0]

    for one in entry.get("comments", []):
        author = one.get("author", owner)
        spot = {"range": _where(tabs, one["on"]), "content": one["content"]}
        made = do(author, {"insertComment": spot})["insertComment"]["commentThread"]["commentId"]
        for reply in one.get("replies", []):
            post = {"content": reply["content"]}
            do(reply.get("author", owner), {"addCommentReply": {"commentId": made, "post": post}})
        if one.get("resolved"):
            do(owner, {"addCommentReply": {"commentId": made, "post": {"commentAction": "RESOLVE"}}})
    for one in entry.get("suggestions", []):
        do(one.get("author", owner), _suggested(model["tabs"], one), suggest=True)
    save_talk(store, document, model)


def _suggested(tabs: list[Any], one: Mapping[str, Any]) -> dict[str, Any]:
    if ("replace" in one) == ("insert" in one):
        raise ValueError(f"suggestion on {one['on']!r}: give one of replace and insert")
    if "insert" in one:
        end = _where(tabs, one["on"])["endIndex"]
        return {"insertText": {"location": {"index": end}, "text": one["insert"]}}
    criteria = {"text": one["on"], "matchCase": True}
    _where(tabs, one["on"])
    return {"replaceAllText": {"containsText": criteria, "replaceText": one["replace"]}}


def _where(tabs: list[Any], text: str) -> dict[str, int]:
    for spot in paragraphs(tabs[0]["documentTab"]["body"]["content"]):
        before, found, _ = paragraph_text(spot.paragraph).partition(text)
        if found:
            start = spot.start + utf16.width(before)
            return {"startIndex": start, "endIndex": start + utf16.width(found)}
    raise ValueError(f"comment on {text!r}: the document has no such text")


def office(random: Random) -> Mapping[str, Any]:
    """Larkspur makes a task tracker; Alex runs its product."""
    features = random.sample(_FEATURES, 4)
    values: dict[str, object] = {f"feature{number}": name for number, name in enumerate(features)}
    values["moved"] = features[3].capitalize()
    for quarter in range(1, 5):
        values |= {f"revenue{quarter}": random.randint(180, 420), f"growth{quarter}": random.randint(2, 9)}
    for number, vendor in enumerate(random.sample(_VENDORS, 3)):
        values |= {f"vendor{number}": vendor, f"cost{number}": random.randint(3, 40) * 250}
    return read_world(_WORLDS / "office.json", **values, day=random.randint(8, 24))


def newsroom(random: Random) -> Mapping[str, Any]:
    """The Harbour Gazette; Ines edits it."""
    return read_world(
        _WORLDS / "newsroom.json",
        count=random.randint(120, 480),
        cost=random.randint(11, 39) / 10,
        closing=random.choice(("Monday", "Tuesday")),
    )


SCENARIOS = scenarios(load, office, newsroom)
