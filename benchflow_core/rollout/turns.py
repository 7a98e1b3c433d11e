"""One turn: a prompt to a live session, recorded from both ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts import events as ev
from benchflow_core.contracts.agents import PromptOutcome, Session
from benchflow_core.contracts.drivers import TurnRecord
from benchflow_core.errors import AgentError, AgentTimeout
from benchflow_core.results.clock import Stopwatch
from benchflow_core.rollout import finish
from benchflow_core.rollout.deadline import deadline
from benchflow_core.rollout.record import Record
from benchflow_core.rollout.session_checks import check_outcome
from benchflow_core.rollout.sessions import LiveSession

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["run_turn"]


async def run_turn(rollout: Rollout, live: LiveSession, prompt: str, scene: str) -> TurnRecord:
    """Events of the turn carry its scene, role, number and session. Its end is recorded however it ends."""
    assert live.session is not None
    record, role, number = rollout.record, live.role.name, rollout.turn
    live.place = {"scene": scene, "role": role, "turn": number, "session": live.session.id}
    where: dict[str, Any] = {"rollout": rollout, "scene": scene, "role": role, "turn": number}
    before, watch = record.log.count, Stopwatch()
    record.prompts.append({"scene": scene, "role": role, "turn": number, "prompt": prompt})
    record.event("turn_started", {"prompt": prompt}, **live.place)
    record.tell(ev.TurnStarted, prompt=prompt, **where)
    limit, reason, usage, used = live.role.timeout_sec, "error", None, 0
    late = f"turn {number} of '{role}' took longer than {limit} s."
    try:
        async with deadline(limit, lambda: AgentTimeout(late, details={"reason": "turn", "timeout_sec": limit})):
            outcome = await _accepted(rollout, live.session, prompt)
        check_outcome(outcome)
        reason, usage = outcome.stop_reason, outcome.usage
    except AgentError as error:
        ended = not isinstance(error, AgentTimeout)
        raise await rollout.models.turn_failure(live, ended=ended) or error from error
    finally:
        used = record.counts.by_turn.get(number, 0)
        said = {"stop_reason": reason, "seconds": watch.seconds, "usage": finish.usage_json(usage)}
        record.event("turn_finished", said, **live.place)
        record.tell(ev.TurnFinished, stop_reason=reason, seconds=watch.seconds, n_tool_calls=used, **where)
    if failure := await rollout.models.turn_failure(live, ended=reason != "cancelled"):
        raise failure
    finish.add_usage(rollout, role, usage)
    spent = await rollout.models.turn_usage(role) or usage
    return TurnRecord(scene, role, number, prompt, outcome, _Slice(record, before, number), used, spent)


async def _accepted(rollout: Rollout, session: Session, prompt: str) -> PromptOutcome:
    """Prompt, and remember that the agent took a prompt: what fails from now on is scored."""
    before, rollout.prompt_accepted = rollout.prompt_accepted, True
    try:
        return await session.prompt(prompt)
    except AgentError as error:
        rollout.prompt_accepted = before or error.details.get("delivered", True)
        raise


class _Slice(Sequence[Mapping[str, Any]]):
    """A turn's events, read back only when a driver looks at them."""

    def __init__(self, record: Record, since: int, turn: int) -> None:
        self._record, self._since, self._until, self._turn = record, since, record.log.count, turn

    def __len__(self) -> int:
        return len(self._read())

    def __getitem__(self, index: Any) -> Any:
        return self._read()[index]

    def _read(self) -> list[Mapping[str, Any]]:
        events = self._record.slice(self._since)
        return [e for e in events if e["seq"] <= self._until and e.get("turn") == self._turn]
