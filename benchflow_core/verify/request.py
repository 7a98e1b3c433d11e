"""What goes into a verification and what comes out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from benchflow_core.contracts.sandboxes import Change, ImageRef, Sandbox, SandboxProvider, StartRequest
from benchflow_core.contracts.tasks import Rewards, Step, Task, VerifierSettings
from benchflow_core.contracts.verifiers import TestOutcome, VerifierSpec
from benchflow_core.errors import InfrastructureError, VerifierError
from benchflow_core.quick import dataclass
from benchflow_core.verify.findings import Finding
from benchflow_core.world.handover import Handover

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from benchflow_core.contracts.gateways import ModelEndpoint
    from benchflow_core.plugins import Loaded
    from benchflow_core.verify.boxes import Ready

__all__ = ["OpenBox", "Reading", "ReferenceRun", "RunVerifier", "Verdict", "VerifyRequest"]


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


@dataclass(frozen=True, slots=True)
class Reading:
    """One run of the verifier on a captured state, with its repetitions."""

    rewards: Rewards | None = None
    tests: tuple[TestOutcome, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    error: VerifierError | InfrastructureError | None = None
    """Set when there are no rewards."""
    seconds: float = 0.0


OpenBox: TypeAlias = "Callable[[], AbstractAsyncContextManager[Ready]]"
RunVerifier = Callable[[OpenBox, Path, int], Awaitable[Reading]]
"""Run the verifier plugin in such a box, its output in that folder, at most so many times until it gives a reward."""


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """One verification of the state in an agent's box."""

    task: Task
    step: Step | None
    settings: VerifierSettings
    verifier: Loaded
    provider: SandboxProvider
    image: ImageRef
    """What the agent's box was started from."""
    sandbox: Sandbox
    """The agent's box; the agent itself was stopped, what it left running may still run."""
    capabilities: frozenset[str]
    policy: str | None
    """What the user asked for. `None`: the strongest that is possible."""
    start: StartRequest
    """A pattern for the verifier's box."""
    env: Mapping[str, str]
    """The task's variables for the verifier, templates resolved."""
    output_dir: Path
    emit: Callable[[str, Mapping[str, Any]], None]
    model: Callable[[str], Awaitable[ModelEndpoint]]
    workdir: str
    trajectory: Path | None = None
    world: Handover | None = None
    """What the verifier is told of the world the agent acted in."""
    soft: bool = False
    """The agent goes on afterwards."""
    reference: Callable[[], Awaitable[ReferenceRun | None]] | None = None
    """Asked for what the reference solution changes, where readings differ; `None` as answer: there is no solution."""
    reference_run: bool = False
    """It is the reference solution that ran: one reading, and its changes are in the verdict."""

    @property
    def spec(self) -> VerifierSpec:
        spec: VerifierSpec = self.verifier.spec
        return spec

    @property
    def user(self) -> str | None:
        """Who the verifier runs as; `None` for the box's own choice."""
        return self.settings.user or self.image.user


@dataclass(frozen=True, slots=True)
class Verdict:
    """The score, how it came about, and what a reader of it must know."""

    rewards: Rewards | None
    isolation: str
    tests: tuple[TestOutcome, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[dict[str, Any], ...] = ()
    """`code`, `path`, `action`, `why`: see docs/verification.md."""
    notices: tuple[str, ...] = ()
    error: VerifierError | None = None
    """Set when there are no rewards."""
    seconds: float = 0.0
    verification: Mapping[str, Any] = field(default_factory=dict)
    """How the policy came to the score: its readings, whether they differ, and on which changes that depends."""
    changes: tuple[Change, ...] = ()
    """Of a reference run: what differs from the image."""
