"""What a new document is made of."""

from __future__ import annotations

from typing import Any

from benchflow_service_claw_gdoc.model.tree import new_paragraph

__all__ = ["new_document_tab", "new_tab", "section_break"]


def _pt(value: float) -> dict[str, Any]:
    return {"magnitude": value, "unit": "PT"}


_BLACK: dict[str, Any] = {"color": {"rgbColor": {}}}
_GREY: dict[str, Any] = {"color": {"rgbColor": {"red": 0.4, "green": 0.4, "blue": 0.4}}}
_HEADINGS: dict[str, tuple[float, float, float, dict[str, Any]]] = {
    # size, space above, space below, color
    "HEADING_1": (20, 20, 6, _BLACK),
    "HEADING_2": (16, 18, 6, _BLACK),
    "HEADING_3": (14, 16, 4, {"color": {"rgbColor": {"red": 0.2627451, "green": 0.2627451, "blue": 0.2627451}}}),
    "HEADING_4": (12, 14, 4, _GREY),
    "HEADING_5": (11, 12, 4, _GREY),
    "HEADING_6": (11, 12, 4, _GREY),
    "TITLE": (26, 0, 3, _BLACK),
    "SUBTITLE": (15, 0, 16, _GREY),
}


def _named_styles() -> dict[str, Any]:
    normal = {
        "namedStyleType": "NORMAL_TEXT",
        "textStyle": {
            "bold": False,
            "italic": False,
            "underline": False,
            "strikethrough": False,
            "smallCaps": False,
            "backgroundColor": {},
            "foregroundColor": _BLACK,
            "fontSize": _pt(11),
            "weightedFontFamily": {"fontFamily": "Arial", "weight": 400},
            "baselineOffset": "NONE",
        },
        "paragraphStyle": {
            "namedStyleType": "NORMAL_TEXT",
            "alignment": "START",
            "lineSpacing": 115,
            "direction": "LEFT_TO_RIGHT",
            "spacingMode": "COLLAPSE_LISTS",
            "spaceAbove": {"unit": "PT"},
            "spaceBelow": {"unit": "PT"},
            "avoidWidowAndOrphan": True,
        },
    }
    others = [
        {
            "namedStyleType": name,
            "textStyle": {"fontSize": _pt(size), "foregroundColor": color}
            | ({"italic": True} if name == "HEADING_6" else {}),
            "paragraphStyle": {
                "namedStyleType": "NORMAL_TEXT",
                "direction": "LEFT_TO_RIGHT",
                "spaceAbove": _pt(above) if above else {"unit": "PT"},
                "spaceBelow": _pt(below),
                "keepLinesTogether": True,
                "keepWithNext": True,
                "pageBreakBefore": False,
            },
        }
        for name, (size, above, below, color) in _HEADINGS.items()
    ]
    return {"styles": [normal, *others]}


def section_break(kind: str = "CONTINUOUS") -> dict[str, Any]:
    style = {"columnSeparatorStyle": "NONE", "contentDirection": "LEFT_TO_RIGHT", "sectionType": kind}
    return {"sectionBreak": {"sectionStyle": style}}


def new_document_tab() -> dict[str, Any]:
    return {
        "body": {"content": [section_break(), new_paragraph()]},
        "documentStyle": {
            "background": {"color": {}},
            "pageNumberStart": 1,
            "marginTop": _pt(72),
            "marginBottom": _pt(72),
            "marginRight": _pt(72),
            "marginLeft": _pt(72),
            "pageSize": {"height": _pt(792), "width": _pt(612)},
            "marginHeader": _pt(36),
            "marginFooter": _pt(36),
            "useCustomHeaderFooterMargins": True,
            "documentFormat": {"documentMode": "PAGES"},
        },
        "namedStyles": _named_styles(),
    }


def new_tab(tab_id: str, title: str, index: int = 0) -> dict[str, Any]:
    properties: dict[str, Any] = {"tabId": tab_id, "title": title, "index": index}
    return {"tabProperties": properties, "documentTab": new_document_tab()}
