"""A learning curve as an SVG picture: the reward of each rollout in its order, and the best generation so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Final

from benchflow_feature_standard.files import replace_file
from benchflow_feature_standard.learning.store import LearnerStore, Step

__all__ = ["CURVE_FILE", "draw_curve", "learning_curve"]

CURVE_FILE: Final = "learning_curve.svg"

_WIDTH, _HEIGHT, _LEFT, _TOP = 760, 320, 56, 40
_ACROSS, _DOWN = _WIDTH - _LEFT - 24, _HEIGHT - _TOP - 56
_COLOURS = {"stamped": "#1a7f37", "unchanged": "#6e7781", "reverted": "#cf222e"}
_HEAD = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
    'font-size="12">\n<rect width="100%" height="100%" fill="#fff"/>'
)
Scale = Callable[[float], float]


def draw_curve(store: LearnerStore, target: Path | None = None) -> Path:
    """Write the curve of a store, into its folder if no other place is named."""
    place = target or store.root / CURVE_FILE
    replace_file(place, learning_curve(store.steps, f"Learning curve of {store.root.resolve().name}").encode())
    return place


def learning_curve(steps: Sequence[Step], title: str) -> str:
    """Points are rollouts, coloured by what became of what they learned; the line is the bar they had to reach."""
    rewards = [step.reward for step in steps if step.reward is not None]
    low, high = min([0.0, *rewards]), max([1.0, *rewards])

    def x(number: float) -> float:
        return _LEFT + _ACROSS * (number - 1) / max(len(steps) - 1, 1)

    def y(value: float) -> float:
        return _TOP + _DOWN * (1 - (value - low) / (high - low))

    parts = [_HEAD, f'<text x="{_LEFT}" y="22" font-size="15" font-weight="600">{escape(title)}</text>']
    for value in (low, (low + high) / 2, high):
        parts.append(f'<path d="M{_LEFT},{y(value):.1f}h{_ACROSS}" stroke="#d8dee4"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    return "\n".join([*parts, *_bar(steps, x, y), *_points(steps, x, y), *_legend(), "</svg>", ""])


def _bar(steps: Sequence[Step], x: Scale, y: Scale) -> list[str]:
    places = [(x(step.number), y(step.best)) for step in steps if step.best is not None]
    if not places:
        return []
    path = f"M{places[0][0]:.1f},{places[0][1]:.1f}" + "".join(f"H{px:.1f}V{py:.1f}" for px, py in places[1:])
    return [f'<path d="{path}" fill="none" stroke="#1a7f37" stroke-width="2"/>']


def _points(steps: Sequence[Step], x: Scale, y: Scale) -> list[str]:
    parts = []
    for step in steps:
        if step.reward is not None:
            said = f"{step.task or step.rollout}: {step.reward:g}, {step.verdict}, generation {step.generation}"
            place = f'cx="{x(step.number):.1f}" cy="{y(step.reward):.1f}" fill="{_COLOURS[step.verdict]}"'
            parts.append(f'<circle {place} r="5"><title>{escape(said)}</title></circle>')
    return parts


def _legend() -> list[str]:
    parts = []
    for number, (name, colour) in enumerate(_COLOURS.items()):
        left = _LEFT + 120 * number
        parts.append(f'<circle cx="{left + 6}" cy="{_HEIGHT - 14}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{left + 18}" y="{_HEIGHT - 10}">{name}</text>')
    right = _LEFT + _ACROSS
    return [*parts, f'<text x="{right}" y="{_HEIGHT - 10}" text-anchor="end">rollouts in order →</text>']
