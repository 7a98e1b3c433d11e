"""What every loop keeps: the reward and the tokens of each round, and why it stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchflow_core.contracts import Episode, SoftVerdict, TurnRecord
from benchflow_core.errors import ConfigurationError

__all__ = ["Rounds", "opening", "passed", "refuse_below", "refuse_turns"]


def opening(episode: Episode, params: Mapping[str, Any]) -> tuple[str, str | None]:
    """Who is prompted, and with what first: the one turn of the config, which is mostly the task's instruction."""
    for step in params.get("steps") or ():
        return step.role, step.prompt
    return episode.roles[0], None


def refuse_turns(params: Mapping[str, Any]) -> None:
    """What would never be said."""
    if len(params.get("steps") or ()) > 1:
        raise ConfigurationError(
            "a loop strategy decides every prompt after the first; scenes, several prompts or self-generated skills "
            "cannot be given beside it.",
            remedy="Leave one of them out.",
        )


def refuse_below(least: int, name: str) -> Callable[[Mapping[str, Any]], None]:
    """For `DriverSpec.refuse`: a number of rounds that would do nothing."""

    def refuse(params: Mapping[str, Any]) -> None:
        refuse_turns(params)
        if params[name] < least:
            raise ConfigurationError(f"{name}={params[name]}: at least {least} is needed.")

    return refuse


def passed(verdict: SoftVerdict) -> bool:
    return (verdict.rewards or {}).get("reward", 0.0) >= 1.0


@dataclass
class Rounds:
    """The rounds so far. A round that could not be verified has no reward; one nobody counted has no tokens."""

    strategy: str
    params: Mapping[str, Any]
    rewards: list[float | None] = field(default_factory=list)
    tokens: list[int | None] = field(default_factory=list)

    def add(self, episode: Episode, turn: TurnRecord | None, verdict: SoftVerdict | None) -> None:
        reward = (verdict.rewards or {}).get("reward") if verdict else None
        self.rewards.append(reward)
        self.tokens.append(_tokens(turn) if turn else None)
        if reward is not None:
            episode.reward(reward, source=self.strategy, step=len(self.rewards) - 1)
        self.report(episode, "error")  # unless a later report says otherwise

    def report(self, episode: Episode, stop_reason: str, **more: Any) -> None:
        first = next((n for n, reward in enumerate(self.rewards) if reward is not None and reward >= 1.0), None)
        spent = self.tokens[: first + 1] if first is not None else []
        episode.report(
            {
                "strategy": self.strategy,
                "params": {key: value for key, value in self.params.items() if key != "steps"},
                "iterations_run": len(self.rewards),
                "stop_reason": stop_reason,
                "reward_trajectory": self.rewards,
                "tokens_trajectory": self.tokens,
                "first_pass_iteration": first,
                "tokens_to_pass": sum(n or 0 for n in spent) if spent and None not in spent else None,
                **more,
            }
        )


def _tokens(turn: TurnRecord) -> int | None:
    usage = turn.usage
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens
