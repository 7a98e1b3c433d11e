"""Put scores into words: never without coverage and interval, and with what was mixed into them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchflow_core.contracts import EvaluationResult

__all__ = ["score_report"]

_SHOWN = 8


def score_report(result: EvaluationResult) -> Iterator[str]:
    """The score and what must be known about it; with several arms that of each, and what holds for all."""
    if result.arms:
        yield f"Scores of {len(result.arms)} arms, coverage {result.scored}/{result.total}:"
    else:
        yield f"Score: {result.text}"
    for name, arm in result.arms.items():
        yield f"  {name}: {arm.text}"
        yield from (f"    {line}" for line in _lines(arm))
    yield from (f"  {line}" for line in _lines(result))


def _lines(result: EvaluationResult) -> Iterator[str]:
    if not result.arms:  # else each says it for itself
        yield from _about_score(result)
    at_k = result.statistics.get("pass_at_k") or {}
    if len(at_k) > 1:
        tasks = sum(bool(task.passes) for task in result.tasks.values())
        for title, found in (("pass@k", at_k), ("pass^k", result.statistics["pass_hat_k"])):
            yield f"{title}: " + ", ".join(_at(k, value, tasks) for k, value in found.items())
    flaky = [] if result.arms else result.statistics.get("flaky_tasks") or []
    if flaky:
        some = ", ".join(f"{row['task']} {row['passed']}/{row['scored']}" for row in flaky[:_SHOWN])
        more = f" and {len(flaky) - _SHOWN} more" if len(flaky) > _SHOWN else ""
        yield f"flaky, passed in some trials only: {some}{more}"
    yield from _usage(result)
    yield from (f"note: {line}" for line in _mixed(result))


def _about_score(result: EvaluationResult) -> Iterator[str]:
    if result.mean_reward is not None:
        error = result.reward_error
        spread = "" if error is None else f" ± {error:.2g} (standard error, {len(result.tasks)} tasks)"
        yield f"mean reward {result.mean_reward:.3g}{spread}"
    if result.contested:
        choices = ", ".join(
            f"{choice} {'–' if value is None else f'{value:.1%}'}" for choice, value in result.contested_scores.items()
        )
        yield f"contested: {result.contested} of {result.total}; the score is, by --contested: {choices}"
    if result.unscored_by_kind:
        yield "unscored: " + ", ".join(f"{n} {kind}" for kind, n in sorted(result.unscored_by_kind.items()))
    yield from (f"error: {n} × {name}" for name, n in sorted(result.error_categories.items()))


def _at(k: str, found: dict[str, Any], tasks: int) -> str:
    partly = "" if found["tasks"] == tasks else f" (over {found['tasks']:.0f} of {tasks} tasks)"
    return f"{k}: {found['value']:.1%}{partly}"


def _usage(result: EvaluationResult) -> Iterator[str]:
    parts = []
    for name, form in (("total_tokens", "{:,.0f} tokens"), ("total_cost_usd", "${:,.2f}")):
        if name in result.usage:
            known = int(result.usage[f"{name}_known"])
            seen = result.total - result.unscored_by_kind.get("not-run", 0)
            parts.append(form.format(result.usage[name]) + (f" (known for {known} of {seen})" if known < seen else ""))
    if parts:
        yield "used: " + ", ".join(parts)


def _mixed(result: EvaluationResult) -> Iterator[str]:
    """What was put into one mean and does not belong there."""
    for what, counts in (("image fidelity", result.fidelity), ("verifier isolation", result.isolation)):
        if len(counts) > 1:
            parts = ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
            yield f"{what} differs between rollouts: {parts}."
    if set(result.fidelity) == {"substituted"}:
        yield f"all {result.scored} ran on a substituted image: not comparable with exact ones."
    for name, part in ({} if result.arms else result.strata).items():
        yield f"{name}: {part['passed']}/{part['scored']} ({part['score_ratio']:.1%})"
