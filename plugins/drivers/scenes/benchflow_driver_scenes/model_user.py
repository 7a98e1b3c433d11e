"""A model as a user: it knows the task, reveals it bit by bit, and says when it is content."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from benchflow_core.contracts import BaseUser, Episode, RoundResult
from benchflow_core.errors import ConfigurationError

__all__ = ["ModelUser"]

_DONE: Final = "DONE"
_PERSONA: Final = (
    "You are a person who asks a software agent for help. Speak as that person would: briefly, in plain words, without "
    "doing the work yourself. Reveal details only as the agent needs them. Answer with your next message to the agent "
    f"and nothing else, or with the single word {_DONE} when you are content with its work."
)
_ASKED: Final = (
    "The agent has a question for you. Answer with one JSON object and nothing else, with these fields, or with the "
    "single word DECLINE:"
)
_FENCE: Final = re.compile(r"^```\w*\n|\n?```$")


class ModelUser(BaseUser):
    """A model as a user, through the gateway, so that its tokens count: the rollout's unless another is named."""

    needs_model = True

    def __init__(self, persona: str | None = None, *, model: str | None = None, max_tokens: int = 1024) -> None:
        """`persona`: who it is, beside what every such user is told."""
        self._persona = f"{_PERSONA}\n\n{persona}" if persona else _PERSONA
        self.model_name, self._max_tokens = model, max_tokens
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
        if round_result is not None:
            self._talk.append(("user", _agents_words(round_result)))
        said = await self._say()
        return None if said.strip(" .!") == _DONE else said

    async def on_ask(self, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Answer in the fields that the agent asks for. What is no JSON object declines."""
        fields = json.dumps(request.get("requestedSchema") or {}, ensure_ascii=False)
        self._talk.append(("user", f"{_ASKED}\n{fields}\n\nThe question:\n{request.get('message', '')}"))
        try:
            answer = json.loads(_FENCE.sub("", await self._say()))
        except ValueError:
            return None
        return answer if isinstance(answer, dict) else None

    async def _say(self) -> str:
        if self._episode is None:
            raise ConfigurationError("a model user works inside a rollout only.")
        said = (await self._episode.ask_model("user", self._talk, self._persona, max_tokens=self._max_tokens)).strip()
        self._talk.append(("assistant", said))
        return said


def _agents_words(result: RoundResult) -> str:
    """Return what the agent said in its turn: the user is no tester and hears nothing of the tests."""
    parts = []
    for event in result.trajectory:
        if event["kind"] == "agent_message_chunk":
            content = (event.get("data") or {}).get("content") or {}
            parts.append(str(content.get("text", "")) if isinstance(content, dict) else "")
    return f"The agent answered:\n{''.join(parts).strip() or '(nothing)'}\n\nWrite your next message, or {_DONE}."
