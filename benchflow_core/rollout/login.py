"""`--auth native`: the user's own login goes into the box, by explicit wish, and is gone before anything is captured.

The gateway is not on the way then: nothing is counted or recorded by it, and the result says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.agents import AgentContext, AgentSpec, AuthOption
from benchflow_core.contracts.common import private_folder
from benchflow_core.errors import ConfigurationError, InfrastructureError, SandboxLost

if TYPE_CHECKING:
    from benchflow_core.contracts.sandboxes import Sandbox
    from benchflow_core.rollout.rollout import Rollout

__all__ = ["FLAG", "Logins", "native_option", "upload_secret"]

FLAG = "native-auth"
_SHORTEST_TOKEN = 16


def native_option(name: str, spec: AgentSpec, env: Mapping[str, str]) -> AuthOption:
    """The first way of this agent to bring a login of the host's that is there; nothing is read yet."""
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


class Logins:
    """The credentials of one rollout that are in its box at the moment."""

    def __init__(self, rollout: Rollout) -> None:
        self._rollout = rollout
        self._files: dict[str, tuple[bytes, str]] = {}

    async def bring(self, name: str, spec: AgentSpec, context: AgentContext) -> dict[str, str]:
        """Copies the files, 0600 and owned by the agent's user, and gives the variables for its process."""
        rollout, option = self._rollout, context.auth
        assert option is not None
        env = {variable: rollout.host.env[variable] for variable in option.env}
        rollout.host.redactor.add(env.values())
        for source, target in option.files.items():
            path = _on_host(source, rollout.host.env)
            if path.is_file():
                content = path.read_bytes()
                rollout.host.redactor.add(_tokens(content))
                self._files[f"{context.home.rstrip('/')}/{target}"] = (content, context.user)
        await self.restore()
        if FLAG not in rollout.result.flags:
            rollout.result.flags.append(FLAG)
        rollout.notice(f"agent '{name}' used a login of this host ({option.name}): no gateway counted its model calls")
        return env

    async def restore(self) -> None:
        """Put everything (back) into the box."""
        for path, (content, user) in self._files.items():
            await upload_secret(self._rollout.sandbox, content, path, user)

    async def withdraw(self, *, forget: bool = True) -> None:
        """Take everything out of the box. `forget`: it does not come back."""
        paths = list(self._files)
        if forget:
            self._files = {}
        if not paths:
            return
        try:
            done = await self._rollout.sandbox.exec(("rm", "-f", "--", *paths), user="root", cwd="/", timeout=60)
        except SandboxLost:
            return
        if done.exit_code:
            raise InfrastructureError("the host's login could not be removed from the box.", retryable=False)


async def upload_secret(box: Sandbox, content: bytes, path: str, user: str) -> None:
    """Put a file into the box that only its user can read, here and there."""
    with private_folder() as folder:
        (folder / "secret").write_bytes(content)
        await box.upload(folder / "secret", path, user=user, mode=0o600)


def _on_host(path: str, env: Mapping[str, str]) -> Path:
    home = env.get("HOME") or str(Path.home())
    return Path(home, path[2:]) if path.startswith("~/") else Path(path)


def _tokens(content: bytes) -> Iterator[str]:
    """Whatever in a login file could be a secret: its longer texts."""
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
