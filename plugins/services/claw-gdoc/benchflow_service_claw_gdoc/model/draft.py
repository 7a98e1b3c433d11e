"""A document while a batch changes it: its tabs, their segments, and the ranges that move with the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from benchflow_service_claw_gdoc.model.edit import delete_range, insert_text
from benchflow_service_claw_gdoc.model.suggest import DELETED, INSERTED, all_marked, mark
from benchflow_service_claw_gdoc.model.tree import Content, EditError, Element, content_width

__all__ = ["Draft", "DraftPlace", "Tab"]

NewId = Callable[[str], str]


class Tab:
    """One tab: `properties` and what is in it, in the API's own shape."""

    def __init__(
        self, properties: Element, data: Element, suggestion: str = "", own: frozenset[str] = frozenset()
    ) -> None:
        self.properties = properties
        self.data = data
        self.suggestion = suggestion
        """Not empty: what is done here is suggested, under this id."""
        self.own = own
        """Suggestions of who does it."""

    @property
    def id(self) -> str:
        return str(self.properties["tabId"])

    def segment(self, segment_id: str | None) -> Content:
        if not segment_id:
            body: Content = self.data["body"]["content"]
            return body
        for kind in ("headers", "footers", "footnotes"):
            if segment_id in self.data.get(kind, {}):
                found: Content = self.data[kind][segment_id]["content"]
                return found
        raise EditError(f"Segment with ID {segment_id} was not found.")

    def kind_of(self, segment_id: str | None) -> str:
        """`body`, `headers`, `footers` or `footnotes`."""
        self.segment(segment_id)
        return next((k for k in ("headers", "footers", "footnotes") if segment_id in self.data.get(k, {})), "body")

    def segments(self) -> Iterator[tuple[str, Content]]:
        yield "", self.segment("")
        for kind in ("headers", "footers", "footnotes"):
            for segment_id in list(self.data.get(kind, {})):
                yield segment_id, self.segment(segment_id)

    # -- the ranges that have names

    def ranges(self, segment_id: str) -> Iterator[Element]:
        """Those that move with the text: of names, and of comments."""
        groups = self.data.get("namedRanges", {}).values()
        holders = [named for group in groups for named in group["namedRanges"]]
        for holder in (*holders, *self.data.get("commentAnchors", {}).values()):
            yield from (r for r in holder["ranges"] if r.get("segmentId", "") == segment_id)

    def grew(self, segment_id: str, at: int, count: int) -> None:
        """Text put strictly inside a range belongs to it; at its edges it does not."""
        for one in self.ranges(segment_id):
            if one["startIndex"] >= at:
                one["startIndex"] += count
            if one["endIndex"] > at:
                one["endIndex"] += count

    def shrank(self, segment_id: str, low: int, high: int) -> None:
        for one in self.ranges(segment_id):
            for edge in ("startIndex", "endIndex"):
                one[edge] -= max(0, min(one[edge], high) - low)

    def drop_empty_ranges(self) -> None:
        for name, group in list(self.data.get("namedRanges", {}).items()):
            for named in list(group["namedRanges"]):
                named["ranges"] = [r for r in named["ranges"] if r["startIndex"] < r["endIndex"]]
                if not named["ranges"]:
                    group["namedRanges"].remove(named)
            if not group["namedRanges"]:
                del self.data["namedRanges"][name]
        for name, anchor in list(self.data.get("commentAnchors", {}).items()):
            anchor["ranges"] = [r for r in anchor["ranges"] if r["startIndex"] < r["endIndex"]]
            if not anchor["ranges"]:
                del self.data["commentAnchors"][name]


class DraftPlace:
    """A segment of a tab, and an index or a range in it."""

    def __init__(self, tab: Tab, segment_id: str, low: int, high: int) -> None:
        self.tab = tab
        self.segment_id = segment_id
        self.content = tab.segment(segment_id)
        self.low = low
        self.high = high

    @property
    def index(self) -> int:
        return self.low

    @property
    def kind(self) -> str:
        return self.tab.kind_of(self.segment_id)

    def insert(self, index: int, text: str) -> int:
        count = insert_text(self.content, index, text)
        self.grew(index, count)
        return count

    def grew(self, index: int, count: int) -> None:
        """Something was put in."""
        self.tab.grew(self.segment_id, index, count)
        if self.tab.suggestion and count:
            mark(self.content, index, index + count, INSERTED, self.tab.suggestion)

    def delete(self, low: int, high: int) -> Content:
        if self.tab.suggestion and not all_marked(self.content, low, high, self.tab.own):
            delete_range(deepcopy(self.content), low, high)  # what would be refused is refused now
            mark(self.content, low, high, DELETED, self.tab.suggestion)
            return []
        gone = delete_range(self.content, low, high)
        self.tab.shrank(self.segment_id, low, high)
        return gone


class Draft:
    def __init__(self, document: Element, new_id: NewId, user: str = "", now: str = "") -> None:
        self.document = document
        self.new_id = new_id
        self.user = user
        """Who asks."""
        self.now = now
        self.suggestion = ""
        """Not empty: what the request does is suggested, under this id."""
        self.own: frozenset[str] = frozenset()
        self.settled: dict[str, list[str]] = {}
        """What the request did to suggestions."""

    @property
    def editor(self) -> bool:
        return self.document.get("role", "owner") in ("owner", "writer")

    @property
    def suggestions(self) -> list[Element]:
        threads: list[Element] = self.document.setdefault("suggestions", [])
        return threads

    @property
    def comments(self) -> list[Element]:
        threads: list[Element] = self.document.setdefault("comments", [])
        return threads

    def tabs(self) -> list[Tab]:
        """All of them, children after their parents."""
        found: list[Tab] = []

        def visit(entries: list[Element]) -> None:
            for entry in entries:
                found.append(Tab(entry["tabProperties"], entry["documentTab"], self.suggestion, self.own))
                visit(entry.get("childTabs", []))

        visit(self.document["tabs"])
        return found

    def tab(self, tab_id: str | None) -> Tab:
        tabs = self.tabs()
        if not tab_id:
            return tabs[0]
        for tab in tabs:
            if tab.id == tab_id:
                return tab
        raise EditError(f"Tab with ID {tab_id} was not found.")

    def chosen_tabs(self, criteria: Element | None) -> list[Tab]:
        wanted = (criteria or {}).get("tabIds") or []
        return [self.tab(tab_id) for tab_id in wanted] if wanted else self.tabs()

    # -- where a request points

    def place(self, location: Element) -> DraftPlace:
        """A `Location`: an index where something may be put."""
        tab = self.tab(location.get("tabId"))
        segment_id = location.get("segmentId") or ""
        index = location.get("index", 0)
        if index < 0:
            raise EditError("The index must be greater than or equal to 0.")
        place = DraftPlace(tab, segment_id, index, index)
        if not segment_id and index == 0:
            raise EditError("The insertion index cannot be before the first paragraph of the body: index 1.")
        return place

    def insertion(self, request: Element) -> DraftPlace:
        """`location` or `endOfSegmentLocation`, one of them."""
        if ("location" in request) == ("endOfSegmentLocation" in request):
            raise EditError("Exactly one of location and endOfSegmentLocation must be set.")
        if "location" in request:
            return self.place(request["location"])
        end = request["endOfSegmentLocation"]
        tab = self.tab(end.get("tabId"))
        segment_id = end.get("segmentId") or ""
        last = content_width(tab.segment(segment_id)) - 1
        return DraftPlace(tab, segment_id, last, last)

    def range(self, request: Element, name: str = "range") -> DraftPlace:
        given: Any = request.get(name)
        if not given:
            raise EditError("The range is required.")
        tab = self.tab(given.get("tabId"))
        segment_id = given.get("segmentId") or ""
        low, high = given.get("startIndex", 0), given.get("endIndex", 0)
        place = DraftPlace(tab, segment_id, low, high)
        end = content_width(place.content)
        if low < 0 or high < 0:
            raise EditError("The start and end index must be greater than or equal to 0.")
        if low >= high:
            raise EditError("The range should not be empty.")
        if high > end:
            worst = low if low >= end else high - 1
            raise EditError(f"Index {worst} must be less than the end index of the referenced segment, {end}.")
        return place
