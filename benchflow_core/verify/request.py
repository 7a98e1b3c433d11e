"""What goes into a verification, beyond what its isolation policy gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from benchflow_core.contracts.isolation import IsolationRequest
from benchflow_core.contracts.sandboxes import Sandbox
from benchflow_core.contracts.verifiers import VerifierSpec
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.gateways import ModelEndpoint
    from benchflow_core.plugins import Loaded, Registry

__all__ = ["VerifyRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest(IsolationRequest):
    """One verification of the state in an agent's box."""

    verifier: Loaded
    plugins: Registry | None = None
    """Where policies are looked for."""
    policy: str | None
    """What the user asked for. `None`: the strongest that is possible."""
    model: Callable[[str], Awaitable[ModelEndpoint]]
    trajectory: Path | None = None
    around: Callable[[Sandbox, str], AbstractAsyncContextManager[Mapping[str, str]]] | None = None
    """What features bring to a verifier's box with its working directory, around each run; gives variables for it."""

    @property
    def spec(self) -> VerifierSpec:
        spec: VerifierSpec = self.verifier.spec
        return spec
