"""The user's own login goes into the box by explicit wish, and is gone before anything is captured.

The gateway is not on the way then: nothing is counted or recorded by it, and the result says so.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts import (
    AgentSpec,
    AuthOption,
    FeatureBox,
    FeaturePlan,
    FeatureRun,
    PlanView,
    RunView,
    upload_secret,
)
from benchflow_core.errors import ConfigurationError, InfrastructureError, SandboxLost

__all__ = ["LoginPlan", "LoginRun", "plan"]

if TYPE_CHECKING:
    from benchflow_feature_standard.logins.settings import LoginSettings

FLAG = "native-auth"
_SHORTEST_TOKEN = 16


@dataclass(frozen=True, kw_only=True)
class LoginPlan(FeaturePlan):
    """Which login each role brings."""

    options: Mapping[str, tuple[str, AuthOption]] = field(default_factory=dict)
    """Role to the name of its agent and the login."""

    def open(self, run: RunView) -> LoginRun:
        return LoginRun(self, run)


def plan(settings: LoginSettings, view: PlanView) -> LoginPlan | None:
    """Find the logins, without reading them."""
    if settings.auth != "native":
        return None
    auth = {name: native_option(name, agent.spec, view.env) for name, agent in view.agents.items() if agent.spec.wires}
    options = {role.name: (role.agent, auth[role.agent]) for role in view.roles.values() if role.agent in auth}
    return LoginPlan(auth=auth, options=options)


def native_option(name: str, spec: AgentSpec, env: Mapping[str, str]) -> AuthOption:
    """Return the first login of an agent that is there on this host; nothing is read yet."""
    offered = [option for option in spec.auth if option.native]
    for option in offered:
        variables = all(env.get(variable) for variable in option.env)
        if variables and all(_on_host(path, env).is_file() for path in list(option.files)[:1]):
            return option
    ways = " or ".join(", ".join([*option.env, *list(option.files)[:1]]) for option in offered)
    if not offered:
        raise ConfigurationError(f"agent '{name}' has no login that could be brought.", remedy="Leave out --auth.")
    raise ConfigurationError(
        f"--auth native: no login for agent '{name}' on this host ({ways}).",
        remedy="Log in with the agent's own program.",
    )


class LoginRun(FeatureRun):
    """The login files of one rollout that are in its box at the moment."""

    def __init__(self, planned: LoginPlan, run: RunView) -> None:
        self._plan, self._run = planned, run
        self._files: dict[str, tuple[bytes, str]] = {}

    @asynccontextmanager
    async def session(self, box: FeatureBox, role: str) -> AsyncIterator[Mapping[str, str]]:
        """Copy the files, owned by the agent's user with mode 0600, and give the variables for its process."""
        if role not in self._plan.options:
            yield {}
            return
        agent, option = self._plan.options[role]
        variables = {name: self._run.env[name] for name in option.env}
        files = self._read(option, box, role)
        self._run.secret(*variables.values(), *(token for content, _ in files.values() for token in _tokens(content)))
        self._files |= files
        self._run.flag(FLAG)
        self._run.notice(
            f"agent '{agent}' used a login of this host ({option.name}): no gateway counted its model calls"
        )
        try:
            await _bring(box, files)
            yield variables
        finally:
            self._files = {path: kept for path, kept in self._files.items() if path not in files}
            await _remove(box, files)

    @asynccontextmanager
    async def verification(self, box: FeatureBox, folder: Path) -> AsyncIterator[None]:
        """Take the files out of the box while it is captured and verified; sessions that live on get them back."""
        await _remove(box, self._files)
        try:
            yield
        finally:
            await _bring(box, self._files)

    def _read(self, option: AuthOption, box: FeatureBox, role: str) -> dict[str, tuple[bytes, str]]:
        home, found = box.home_of(role).rstrip("/"), {}
        for source, target in option.files.items():
            path = _on_host(source, self._run.env)
            if path.is_file():
                found[f"{home}/{target}"] = (path.read_bytes(), box.user or "root")
        return found


async def _bring(box: FeatureBox, files: Mapping[str, tuple[bytes, str]]) -> None:
    for path, (content, user) in files.items():
        await upload_secret(box.sandbox, content, path, user)


async def _remove(box: FeatureBox, files: Mapping[str, Any]) -> None:
    if not files:
        return
    try:
        done = await box.sandbox.exec(("rm", "-f", "--", *files), user="root", cwd="/", timeout=60)
    except SandboxLost:
        return
    if done.exit_code:
        raise InfrastructureError("the host's login could not be removed from the box.", retryable=False)


def _on_host(path: str, env: Mapping[str, str]) -> Path:
    home = env.get("HOME") or str(Path.home())
    return Path(home, path[2:]) if path.startswith("~/") else Path(path)


def _tokens(content: bytes) -> Iterator[str]:
    """Give whatever in a login file could be a secret: its longer texts."""
    try:
        pending: list[Any] = [json.loads(content)]
    except ValueError:
        pending = content.decode("utf-8", "replace").split()
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str) and len(value) >= _SHORTEST_TOKEN:
            yield value
