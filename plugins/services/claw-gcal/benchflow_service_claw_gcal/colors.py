"""The palette, and which of its colours is nearest to another."""

from __future__ import annotations

_CALENDAR = (
    "ac725e d06b64 f83a22 fa573c ff7537 ffad46 42d692 16a765 7bd148 b3dc6c fbe983 fad165 "
    "92e1c0 9fe1e7 9fc6e7 4986e7 9a9cff b99aff c2c2c2 cabdbf cca6ac f691b2 cd74e6 a47ae2"
)
_EVENT = "a4bdfc 7ae7bf dbadff ff887c fbd75b ffb878 46d6db e1e1e1 5484ed 51b749 dc2127"


def _palette(text: str) -> dict[str, dict[str, str]]:
    return {str(i): {"background": f"#{one}", "foreground": "#1d1d1d"} for i, one in enumerate(text.split(), 1)}


CALENDAR_COLORS = _palette(_CALENDAR)
EVENT_COLORS = _palette(_EVENT)


def color_of(rgb: str) -> str:
    """The id of the nearest calendar colour."""

    def distance(id: str) -> int:
        other = CALENDAR_COLORS[id]["background"]
        return sum((int(rgb[i : i + 2], 16) - int(other[i : i + 2], 16)) ** 2 for i in (1, 3, 5))

    return min(CALENDAR_COLORS, key=distance)
