"""Isolation policies: on what, in which boxes and how often a verifier runs, and what comes of it.

`shared` and `separate` are the core's own. A feature brings others with `FeatureSpec.isolation`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from benchflow_core.contracts.sandboxes import Change, ImageRef, Sandbox, SandboxProvider, StartRequest
from benchflow_core.contracts.tasks import Rewards, Step, Task, VerifierSettings
from benchflow_core.contracts.verifiers import TestOutcome
from benchflow_core.errors import InfrastructureError, PluginFailed, VerifierError
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

__all__ = [
    "IsolationPolicy",
    "IsolationRequest",
    "ReferenceRun",
    "RunVerifier",
    "Verdict",
    "VerifyBox",
    "noted",
]

_ROOT: Final = (None, "root", "0", "0:0", "root:root")
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def noted(code: str, path: str, why: str) -> dict[str, Any]:
    """Return a finding: what a reader of the score has to know."""
    return {"code": code, "path": path, "action": "noted", "why": why}


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """What the task's reference solution changes in its box, and what it earns as left."""

    changes: tuple[Change, ...]
    rewards: Rewards | None
    digest: str
    """Of the stored changes."""
    error: str | None = None
    """Why there is nothing to compare with."""

    def to_json(self) -> dict[str, Any]:
        return {"digest": self.digest, "rewards": self.rewards, "error": self.error}


@dataclass(slots=True)
class VerifyBox:
    """A box for one run of the verifier. The core makes its folders new and forwards ports into it."""

    sandbox: Sandbox
    image: ImageRef
    start: StartRequest
    """What it was started from and with: its variables come from there, none out of the box."""
    workdir: str
    env: Mapping[str, str] = field(default_factory=dict)
    """Set over all others."""
    ports: tuple[int, ...] = ()
    """Of the agent's box, to be reached at the same number here."""
    kill: bool = True
    """Kill everything in it before the reward is read."""
    findings: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The score, how it came about, and what a reader of it must know. Also that of a single run of the verifier."""

    rewards: Rewards | None
    isolation: str = ""
    tests: tuple[TestOutcome, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[dict[str, Any], ...] = ()
    """`code`, `path`, `action`, `why`: see docs/verification.md."""
    notices: tuple[str, ...] = ()
    error: VerifierError | InfrastructureError | None = None
    """Set when there are no rewards."""
    seconds: float = 0.0
    verification: Mapping[str, Any] = field(default_factory=dict)
    """How the policy came to the score: its readings, whether they differ, and on which changes that depends."""
    changes: tuple[Change, ...] = ()
    """Of a reference run: what differs from the image."""


OpenBox: TypeAlias = "Callable[[], AbstractAsyncContextManager[VerifyBox]]"
RunVerifier = Callable[[OpenBox, Path, int], Awaitable[Verdict]]
"""Run the verifier in such a box, its output in that folder, at most so many times until it gives a reward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationRequest:
    """One verification of the state in an agent's box, as an isolation policy gets it."""

    task: Task
    step: Step | None
    settings: VerifierSettings
    provider: SandboxProvider
    image: ImageRef
    """What the agent's box was started from."""
    sandbox: Sandbox
    """The agent's box; the agent itself was stopped, what it left running may still run."""
    capabilities: frozenset[str]
    start: StartRequest
    """A pattern for the verifier's box."""
    env: Mapping[str, str]
    """The task's variables for the verifier, templates resolved."""
    output_dir: Path
    emit: Callable[[str, Mapping[str, Any]], None]
    workdir: str
    service_ports: tuple[int, ...] = ()
    """Of the agent's box, but not the agent's."""
    soft: bool = False
    """The agent goes on afterwards."""
    spare: bool = False
    """The sandbox has room for a second box of this size."""
    reference: Callable[[], Awaitable[ReferenceRun | None]] | None = None
    """Asked for what the reference solution changes, where readings differ; `None` as answer: there is no solution."""
    reference_run: bool = False
    """It is the reference solution that ran: one reading, and its changes are in the verdict."""

    @property
    def user(self) -> str | None:
        """Who the verifier runs as; `None` for the box's own choice."""
        return self.settings.user or self.image.user

    @property
    def home(self) -> str:
        """Where the verifier's user lives. Not asked of the box, whose answer would be the agent's."""
        declared = self.start.env.get("HOME") or self.image.env.get("HOME")
        if declared:
            return declared.rstrip("/") or "/"
        return "/root" if self.user in _ROOT else f"/home/{(self.user or '').partition(':')[0]}"

    @property
    def path(self) -> tuple[str, ...]:
        """The folders of the verifier's PATH."""
        entries = {**self.image.env, **self.start.env, **self.env}.get("PATH", _PATH).split(":")
        return tuple(entry.rstrip("/") for entry in entries if entry.startswith("/"))

    def env_in(self, box: VerifyBox) -> dict[str, str]:
        """Return every variable that the verifier gets from us.

        With SHLVL set, a shell whose input is a socket does not take itself for a remote login and read start-up files.
        """
        env = {"SHLVL": "1", **box.image.env, **box.start.env}
        if self.user in _ROOT:
            env.setdefault("HOME", "/root")
        return {**env, **self.env, **box.env}

    @contextlib.asynccontextmanager
    async def box(self, image: ImageRef, start: StartRequest) -> AsyncIterator[Sandbox]:
        """Start a box, and end it. A sandbox that cannot end it keeps the verdict from nobody."""
        box = await self.provider.start(image, start)
        try:
            yield box
        finally:
            try:
                await box.stop()
            except PluginFailed as error:
                self.emit("notice", {"text": error.message})


def _always_possible(task: Task, settings: VerifierSettings, capabilities: frozenset[str]) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class IsolationPolicy:
    """A policy that a feature brings.

    Example::

        IsolationPolicy("benchflow_feature_mine.verify:verify_mine", needs=frozenset({Capability.SNAPSHOT}))
    """

    verify: str
    """`package.module:function`, `async (IsolationRequest, RunVerifier) -> Verdict`."""
    needs: frozenset[str] = frozenset()
    """What the sandbox must declare."""
    why_not: Callable[[Task, VerifierSettings, frozenset[str]], str | None] = _always_possible
    """Why this task cannot be verified so, given the sandbox's capabilities; `None`: it can."""
