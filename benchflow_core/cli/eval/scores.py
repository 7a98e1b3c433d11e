"""How a score is put into words: never without its coverage, its interval, and what was mixed into it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchflow_core.evaluation.summary import EvaluationResult

__all__ = ["percent", "score_lines", "score_report", "score_text"]

_SHOWN = 8


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def score_report(result: EvaluationResult) -> Iterator[str]:
    """The score and what must be known about it; with several arms that of each, and what holds for all."""
    if not result.arms:
        yield f"Score: {score_text(result)}"
    else:
        yield f"Scores of {len(result.arms)} arms, coverage {result.scored}/{result.total}:"
    for name, arm in result.arms.items():
        yield f"  {name}: {score_text(arm)}"
        yield from (f"    {line}" for line in score_lines(arm))
    yield from (f"  {line}" for line in score_lines(result))


def score_text(result: EvaluationResult) -> str:
    """One line: score, interval, coverage, and the bounds where that is short. Of one arm."""
    if not result.scored:
        return f"no score: 0 of {result.total} rollouts could be scored"
    low, high = result.score_interval or (0.0, 1.0)
    text = f"{result.passed}/{result.scored} ({percent(result.score)}), 95 % interval {percent(low)} to {percent(high)}"
    text += f", coverage {result.scored}/{result.total}"
    if result.unscored and result.bounds:
        worst, best = result.bounds
        text += f" (all rollouts: between {percent(worst)} and {percent(best)})"
    return text


def score_lines(result: EvaluationResult) -> Iterator[str]:
    """What a reader of the score must know, and what else the rollouts say."""
    from benchflow_core.evaluation.metrics import mixed_lines

    if result.mean_reward is not None:
        error = result.reward_error
        spread = "" if error is None else f" ± {error:.2g} (standard error, {len(result.tasks)} tasks)"
        yield f"mean reward {result.mean_reward:.3g}{spread}"
    if result.contested and not result.arms:
        choices = ", ".join(f"{choice} {percent(value)}" for choice, value in result.contested_scores.items())
        yield f"contested: {result.contested} of {result.total}; the score is, by --contested: {choices}"
    if not result.arms:  # else each says it for itself
        yield from _errors(result)
    at_k = result.at_k()
    if len(at_k["pass_at_k"]) > 1:
        for title, name in (("pass@k", "pass_at_k"), ("pass^k", "pass_hat_k")):
            yield f"{title}: " + ", ".join(_at(k, found, len(result.trials)) for k, found in at_k[name].items())
    flaky = [] if result.arms else result.flaky()
    if flaky:
        some = ", ".join(f"{row['task']} {row['passed']}/{row['scored']}" for row in flaky[:_SHOWN])
        more = f" and {len(flaky) - _SHOWN} more" if len(flaky) > _SHOWN else ""
        yield f"flaky, passed in some trials only: {some}{more}"
    yield from _usage(result)
    yield from (f"note: {line.strip()}" for line in mixed_lines(result))


def _errors(result: EvaluationResult) -> Iterator[str]:
    if result.unscored_by_kind:
        yield "unscored: " + ", ".join(f"{n} {kind}" for kind, n in sorted(result.unscored_by_kind.items()))
    yield from (f"error: {n} × {name}" for name, n in sorted(result.error_categories.items()))


def _at(k: str, found: dict[str, float], tasks: int) -> str:
    partly = "" if found["tasks"] == tasks else f" (over {found['tasks']:.0f} of {tasks} tasks)"
    return f"{k}: {percent(found['value'])}{partly}"


def _usage(result: EvaluationResult) -> Iterator[str]:
    parts = []
    for name, form in (("total_tokens", "{:,.0f} tokens"), ("total_cost_usd", "${:,.2f}")):
        if name in result.usage:
            known = int(result.usage[f"{name}_known"])
            seen = result.total - result.unscored_by_kind.get("not-run", 0)
            parts.append(form.format(result.usage[name]) + (f" (known for {known} of {seen})" if known < seen else ""))
    if parts:
        yield "used: " + ", ".join(parts)
