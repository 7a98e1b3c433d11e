"""Drop-down chips: definitions of a tab, and chips in the text that choose one of their options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from benchflow_service_claw_gdoc.model.draft import Draft, Tab
from benchflow_service_claw_gdoc.model.fields import named
from benchflow_service_claw_gdoc.model.tree import EditError, Element, paragraphs
from benchflow_service_claw_gdoc.requests.objects import put
from benchflow_service_claw_gdoc.requests.registry import Reply, handles

__all__: list[str] = []

Fields = dict[str, Any]
_COLORS = {"foregroundColor", "backgroundColor"}


def _id(given: str, prefix: str, taken: set[str], fresh: str) -> str:
    if not given:
        return prefix + fresh
    if not re.fullmatch(re.escape(prefix) + r"[a-zA-Z0-9_-]{2,14}", given):
        raise EditError(f"The ID {given} must match ^{prefix}[a-zA-Z0-9_-]{{2,14}}$.")
    if given in taken:
        raise EditError(f"The ID {given} is taken.")
    return given


def _options(draft: Draft, given: list[Fields]) -> list[Fields]:
    if not 2 <= len(given) <= 50:
        raise EditError("A dropdown definition must have at least 2 and at most 50 options.")
    options: list[Fields] = []
    for one in given:
        if set(one.get("textStyle", {})) - _COLORS:
            raise EditError("Only foreground_color and background_color of an option's text style can be set.")
        taken = {option["optionId"] for option in options}
        option_id = _id(one.get("optionId", ""), "dropdownItem.", taken, draft.new_id("dropdownItem"))
        options.append({**one, "optionId": option_id, "displayValue": one.get("displayValue", "")})
    return options


def _definition(tab: Tab, wanted: str) -> Element:
    found = tab.data.get("dropdownDefinitions", {}).get(wanted)
    if found is None:
        raise EditError(f"The dropdown definition with ID {wanted} was not found.")
    definition: Element = found
    return definition


def _chips(tab: Tab) -> Iterator[Element]:
    for _, content in tab.segments():
        for spot in paragraphs(content):
            yield from (inline["dropdown"] for inline in spot.paragraph["elements"] if "dropdown" in inline)


def _select(chip: Element, definition: Element, option_id: str) -> None:
    for option in definition["dropdownDefinitionProperties"]["options"]:
        if option["optionId"] == option_id:
            chip["dropdownProperties"] |= {"selectedOptionId": option_id, "displayValue": option["displayValue"]}
            return
    raise EditError(f"The option with ID {option_id} was not found in the dropdown definition.")


@handles("createDropdownDefinition")
def create_definition(draft: Draft, request: Fields) -> Reply:
    tab, given = draft.tab(request.get("tabId")), request.get("dropdownDefinition", {})
    known = tab.data.setdefault("dropdownDefinitions", {})
    properties = given.get("dropdownDefinitionProperties", {})
    made = {
        "dropdownDefinitionId": _id(
            given.get("dropdownDefinitionId", ""), "kix.", set(known), draft.new_id("dropdownDefinition")
        ),
        "dropdownDefinitionProperties": {
            "title": properties.get("title", ""),
            "options": _options(draft, properties.get("options", [])),
        },
    }
    known[made["dropdownDefinitionId"]] = made
    return {"createDropdownDefinition": {"dropdownDefinition": made}}


@handles("deleteDropdownDefinition")
def delete_definition(draft: Draft, request: Fields) -> Reply:
    tab, wanted = draft.tab(request.get("tabId")), request.get("dropdownDefinitionId", "")
    _definition(tab, wanted)
    if any(chip["dropdownProperties"]["dropdownDefinitionId"] == wanted for chip in _chips(tab)):
        raise EditError(f"The dropdown definition with ID {wanted} is used by a dropdown.")
    del tab.data["dropdownDefinitions"][wanted]
    return None


@handles("updateDropdownDefinitionProperties")
def update_definition(draft: Draft, request: Fields) -> Reply:
    """An option that goes and is chosen somewhere needs a replacement."""
    tab, wanted = draft.tab(request.get("tabId")), request.get("dropdownDefinitionId", "")
    definition, given = _definition(tab, wanted), request.get("dropdownDefinitionProperties", {})
    paths = named(request.get("fields"), ("title", "options"))
    properties = definition["dropdownDefinitionProperties"]
    if "title" in paths:
        properties["title"] = given.get("title", "")
    if "options" not in paths:
        return None
    properties["options"] = _options(draft, given.get("options", []))
    there = {option["optionId"] for option in properties["options"]}
    instead = request.get("selectedOptionIdReplacements", {})
    for chip in _chips(tab):
        if chip["dropdownProperties"]["dropdownDefinitionId"] != wanted:
            continue
        chosen = chip["dropdownProperties"]["selectedOptionId"]
        if chosen not in there and chosen not in instead:
            raise EditError(f"The option with ID {chosen} is selected: a replacement is required.")
        _select(chip, definition, chosen if chosen in there else instead[chosen])
    return None


@handles("insertDropdown")
def insert_dropdown(draft: Draft, request: Fields) -> Reply:
    place, wanted = draft.insertion(request), request.get("dropdownDefinitionId", "")
    definition = _definition(place.tab, wanted)
    chip: Element = {
        "dropdownId": "kix." + draft.new_id("dropdown"),
        "dropdownProperties": {"dropdownDefinitionId": wanted},
        "textStyle": {},
    }
    first = definition["dropdownDefinitionProperties"]["options"][0]["optionId"]
    _select(chip, definition, request.get("selectedOptionId") or first)
    put(place, {"dropdown": chip})
    return {"insertDropdown": {"dropdown": chip}}


@handles("updateDropdownProperties")
def update_dropdown(draft: Draft, request: Fields) -> Reply:
    tab, wanted = draft.tab(request.get("tabId")), request.get("dropdownId", "")
    paths = named(
        request.get("fields"), ("selectedOptionId", "dropdownDefinitionId", "displayValue"), refused=("displayValue",)
    )
    given = request.get("dropdownProperties", {})
    for chip in _chips(tab):
        if chip["dropdownId"] != wanted:
            continue
        have = chip["dropdownProperties"]
        if "dropdownDefinitionId" in paths and given.get("dropdownDefinitionId"):
            have["dropdownDefinitionId"] = given["dropdownDefinitionId"]
        definition = _definition(tab, have["dropdownDefinitionId"])
        option = given.get("selectedOptionId", "") if "selectedOptionId" in paths else have["selectedOptionId"]
        _select(chip, definition, option)
        return None
    raise EditError(f"The dropdown with ID {wanted} was not found.")
