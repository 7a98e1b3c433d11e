"""What goes into a verification and what comes out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchflow_core.contracts.sandboxes import ImageRef, Sandbox, SandboxProvider, StartRequest
from benchflow_core.contracts.tasks import Rewards, Step, Task, VerifierSettings
from benchflow_core.contracts.verifiers import TestOutcome, VerifierSpec
from benchflow_core.errors import VerifierError
from benchflow_core.quick import dataclass
from benchflow_core.world.handover import Handover

if TYPE_CHECKING:
    from benchflow_core.contracts.gateways import ModelEndpoint
    from benchflow_core.plugins import Loaded

__all__ = ["Verdict", "VerifyRequest"]


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
