"""A model as a user: it knows the task, reveals it bit by bit, and says when it is content."""

from __future__ import annotations

from typing import Final

from benchflow_core.contracts.drivers import Episode
from benchflow_core.drive.users import BaseUser, RoundResult
from benchflow_core.errors import ConfigurationError
from benchflow_core.gateway.talk import ask

__all__ = ["ModelUser"]

_DONE: Final = "DONE"
_PERSONA: Final = (
    "You are a person who asks a software agent for help. Speak as that person would: briefly, in plain words, without "
    "doing the work yourself. Reveal details only as the agent needs them. Answer with your next message to the agent "
    f"and nothing else, or with the single word {_DONE} when you are content with its work."
)


class ModelUser(BaseUser):
    """Speaks through the gateway, so its tokens are counted; the model is the rollout's unless the task names one."""

    def __init__(self, persona: str = _PERSONA, *, max_tokens: int = 1024) -> None:
        self._persona, self._max_tokens = persona, max_tokens
        self._episode: Episode | None = None
        self._talk: list[tuple[str, str]] = []

    def attach(self, episode: Episode) -> None:
        self._episode, self._talk = episode, []

    async def setup(self, instruction: str, solution: str | None = None) -> None:
        known = f"The task is:\n{instruction}"
        if solution:
            known += f"\n\nA reference solution, which you may hint at and never quote:\n{solution}"
        self._talk.append(("user", f"{known}\n\nWrite your first message to the agent."))

    async def run(self, round: int, instruction: str, round_result: RoundResult | None = None) -> str | None:
        if self._episode is None:
            raise ConfigurationError("a model user works inside a rollout only.")
        if round_result is not None:
            self._talk.append(("user", _told(round_result)))
        endpoint = await self._episode.model("user")
        said = (await ask(endpoint, self._talk, system=self._persona, max_tokens=self._max_tokens)).strip()
        self._talk.append(("assistant", said))
        return None if said.strip(" .!") == _DONE else said


def _told(result: RoundResult) -> str:
    """What the agent said in its turn: the user is no tester and hears nothing of the tests."""
    parts = []
    for event in result.trajectory:
        if event["kind"] == "agent_message_chunk":
            content = (event.get("data") or {}).get("content") or {}
            parts.append(str(content.get("text", "")) if isinstance(content, dict) else "")
    return f"The agent answered:\n{''.join(parts).strip() or '(nothing)'}\n\nWrite your next message, or {_DONE}."
