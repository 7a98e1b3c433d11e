"""The agents' sessions that are open in a rollout, one for each role that was prompted since they were last closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.agents import SessionEvent
from benchflow_core.contracts.drivers import TurnRecord
from benchflow_core.contracts.sandboxes import AccessView
from benchflow_core.errors import BenchflowError, ConfigurationError
from benchflow_core.rollout import access
from benchflow_core.rollout.session_checks import check_update
from benchflow_core.rollout.sessions import LiveSession, open_live_session
from benchflow_core.rollout.turns import run_turn

if TYPE_CHECKING:
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["OpenSessions"]


class OpenSessions:
    """By role."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._live: dict[str, LiveSession] = {}

    def __getitem__(self, role: str) -> LiveSession:
        return self._live[role]

    @property
    def first(self) -> str | None:
        """The role that was opened first."""
        return next(iter(self._live), None)

    def place_of(self, role: str) -> Mapping[str, Any]:
        """Where events of a role belong: its scene, turn and session."""
        return self._live[role].place if role in self._live else {}

    def ids(self) -> dict[str, str]:
        return {role: live.session.id for role, live in self._live.items() if live.session and live.session.id}

    async def open(self, role: str, view: AccessView | None = None) -> LiveSession:
        """The role's session; one that was opened with another view is opened anew."""
        rollout, open_now = self._rollout, self._live.get(role)
        if open_now is not None and (view is None or open_now.view == view):
            return open_now
        if open_now is not None:
            await self._live.pop(role).close()
        if role not in rollout.plan.roles:
            raise ConfigurationError(f"there is no role '{role}'.", remedy=f"Roles: {', '.join(rollout.plan.roles)}.")
        who = rollout.plan.roles[role]
        live = self._live[role] = await open_live_session(
            rollout, who, view or access.role_view(rollout, who), self._heard
        )
        session = live.session.id if live.session else None
        rollout.record.event("session_opened", {"agent": live.agent.name}, role=role, session=session)
        return live

    async def prompt(self, role: str, text: str, scene: str, view: AccessView | None) -> TurnRecord:
        live = await self.open(role, view)
        self._rollout.turn += 1
        return await run_turn(self._rollout, live, text, scene)

    async def close(self, *, leave: bool) -> None:
        """All of them. `leave`: what agents started lives on."""
        rollout, live = self._rollout, list(self._live.values())
        self._live = {}
        failure: BaseException | None = None
        for session in live:
            try:
                await (session.leave(rollout.sandbox) if leave else session.close())
            except BenchflowError as error:
                failure = failure or error
            rollout.host.redactor.tree(rollout.record.dir.agent)
            rollout.record.event("session_closed", {"agent": session.agent.name}, role=session.role.name)
        if failure is not None:
            raise failure

    def _heard(self, live: LiveSession, event: SessionEvent) -> None:
        """Check one update of a session and write it to the log."""
        check_update(event)
        record = self._rollout.record
        record.event(event.kind, event.data, **live.place)
        self._rollout.features.update(live.role.name, live.place.get("turn"), event.kind, event.data)
