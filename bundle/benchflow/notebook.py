"""Show results in notebooks: small tables of escaped text, with no script and no style but a few plain attributes.

Imported by `benchflow` together with the classes of results, it gives them their `_repr_html_`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from benchflow_command_results.compare import Comparison, points

from benchflow_core.evaluation import EvaluationResult
from benchflow_core.rollout import RolloutResult

__all__ = ["html_of", "table"]

_LONGEST = 500
_SHOWN_FAILURES = 20


def _text(value: Any) -> str:
    """Escaped; what would hide or reorder the text around it is shown as what it is."""
    if value is None:
        return ""
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    cut = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} …"
    plain = "".join(c if c.isprintable() else " " if c.isspace() else f"\\u{ord(c):04x}" for c in cut)
    return escape(plain)


def _card(title: Any, facts: Iterable[tuple[str, Any]], *more: str) -> str:
    """A heading, names with values (those without one are left out), and further tables."""
    rows = "".join(
        f'<tr><th style="text-align:left">{_text(name)}</th><td style="text-align:left">{_text(value)}</td></tr>'
        for name, value in facts
        if value is not None and value != ""
    )
    return f"<div><strong>{_text(title)}</strong><table>{rows}</table>{''.join(more)}</div>"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table of escaped text; nothing where there is no row."""
    head = "".join(f'<th style="text-align:left">{_text(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{_text(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if body else ""


def _evaluation(result: EvaluationResult) -> str:
    low, high = result.score_interval or (None, None)
    counts = [(name, getattr(result, name)) for name in ("passed", "failed", "errored", "verifier_errored")]
    facts = [
        ("score", _score(result)),
        ("95 % interval", f"{_percent(low)} to {_percent(high)}" if result.score_interval else None),
        ("coverage", f"{result.scored}/{result.total} scored"),
        ("bounds", " to ".join(map(_percent, result.bounds)) if result.unscored and result.bounds else None),
        ("outcomes", ", ".join(f"{n} {name}" for name, n in counts if n)),
        ("mean reward", result.mean_reward),
        ("unscored", ", ".join(f"{kind} {n}" for kind, n in result.unscored_by_kind.items())),
        ("cost", f"${result.usage['total_cost_usd']:.2f}" if result.usage.get("total_cost_usd") else None),
        ("seconds", round(result.elapsed_sec, 1) or None),
        ("folder", result.job_dir),
    ]
    arms = [(name, _score(arm), f"{arm.scored}/{arm.total}") for name, arm in result.arms.items()]
    failures = [
        (f["task"], f["arm"] if result.arms else None, f["outcome"], f["reason"])
        for f in result.failures[:_SHOWN_FAILURES]
    ]
    tables = table(["arm", "score", "scored"], arms), table(["task", "arm", "outcome", "why"], failures)
    return _card(f"Evaluation {result.job_name}", facts, *tables)


def _score(result: EvaluationResult) -> str:
    return _percent(result.score) if result.scored else "none yet"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _rollout(result: RolloutResult) -> str:
    tokens = result.to_json()["agent_result"]["total_tokens"]
    facts = [
        ("outcome", result.outcome),
        ("rewards", ", ".join(f"{name} {value:g}" for name, value in (result.rewards or {}).items()) or "unscored"),
        *((name, getattr(result, name)) for name in ("agent", "model", "sandbox", "error", "verifier_error")),
        ("flags", ", ".join(result.flags)),
        ("tool calls", result.n_tool_calls),
        ("tokens", tokens),
        ("cost", f"${result.usage.cost_usd:.4f}" if result.usage.cost_usd else None),
        ("seconds", result.timing.get("total")),
        ("folder", result.rollout_dir),
    ]
    tests = [(test.get("name"), test.get("status"), test.get("message")) for test in result.tests[:50]]
    return _card(f"Rollout {result.rollout_name}", facts, table(["test", "status", "message"], tests))


def _comparison(one: Comparison) -> str:
    def signed(value: float) -> str:
        return f"{'-' if value < 0 else '+'}{points(abs(value), one.metric)}"

    facts = [
        ("verdict", one.verdict),
        ("difference", signed(one.difference)),
        ("95 % interval", " to ".join(map(signed, one.interval))),
        ("p", one.p_value),
        ("tasks", f"{one.tasks} paired: {one.better} better, {one.worse} worse"),
    ]
    different = [(d.field, ", ".join(d.base), ", ".join(d.other)) for d in one.different]
    unpaired = [(u["task"], u["reason"]) for u in one.unpaired[:20]]
    tables = table(["setting", "base", "other"], different), table(["not paired", "why"], unpaired)
    return _card(f"{one.other} against {one.base}: {one.outcome}", facts, *tables)


_SHOWN: Mapping[type, Callable[[Any], str]] = {
    EvaluationResult: _evaluation,
    RolloutResult: _rollout,
    Comparison: _comparison,
}
for _class, _function in _SHOWN.items():
    setattr(_class, "_repr_html_", _function)  # noqa: B010 - what a notebook calls, known to no type


def html_of(result: EvaluationResult | Comparison) -> str:
    """Return what a notebook shows of a result."""
    return _SHOWN[type(result)](result)
