"""Verifiers: turn the state an agent left behind into rewards. Callable again on a finished rollout."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from benchflow_core.contracts.common import CheckFn, no_checks
from benchflow_core.contracts.tasks import RewardFiles, Rewards, Step, Task, VerifierSettings
from benchflow_core.errors import ConfigurationError
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.gateways import ModelEndpoint
    from benchflow_core.contracts.sandboxes import Sandbox

__all__ = ["TestOutcome", "VerifierSpec", "VerifyContext", "VerifyResult"]


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """One test or criterion, where the verifier knows them apart."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    name: str
    status: Literal["passed", "failed", "skipped", "error"]
    message: str = ""
    score: float | None = None


async def _no_model(talk: Sequence[tuple[str, str]], system: str) -> str:
    raise ConfigurationError("no model was named for the judge.")


@dataclass(frozen=True, slots=True)
class VerifyContext:
    """What a verifier gets. The box is already the right one for the isolation policy, its environment pinned."""

    task: Task
    step: Step | None
    settings: VerifierSettings
    sandbox: Sandbox
    workdir: str
    env: Mapping[str, str]
    """Pinned and complete: pass it to every exec."""
    user: str | None
    output_dir: Path
    """On the host: what the verifier leaves for people goes here."""
    emit: Callable[[str, Mapping[str, Any]], None]
    """A line for the event log: kind and data."""
    model: Callable[[str], Awaitable[ModelEndpoint]]
    """`await context.model("judge")`: a model through the gateway, so that its tokens count."""
    collect: Callable[[int], Awaitable[RewardFiles]] = field(kw_only=True)
    """The last thing a verifier does in its box, once: `found = await context.collect(exit_code)` kills every process
    there, brings the contents of `settings.logs_target` to `output_dir`, and returns what the task's dialect reads."""
    trajectory: Path | None = None
    """The rollout's `events.jsonl` so far, on the host. A line has `kind` and `data`: what a driver gave with
    `Episode.reward` is of the kind `reward`, with `value`, `source` and `step_index`. A line with a `session` is what
    an agent sent: a driver's own kinds (`Episode.note`) count only without one."""
    ask: Callable[[Sequence[tuple[str, str]], str], Awaitable[str]] = _no_model
    """(talk of `("user" | "assistant", text)`, system prompt) to the answer of the judge's model, over whatever wire it
    has; only with `VerifierSpec.needs_model`."""


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The verdict."""

    rewards: Rewards
    tests: tuple[TestOutcome, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class VerifierSpec:
    """A verifier.

    Example::

        @hookimpl
        def benchflow_verifier() -> VerifierSpec:
            return VerifierSpec(summary="run the test script", methods=frozenset({"test-script"}), verify=run_script)
    """

    summary: str
    methods: frozenset[str]
    """What tasks ask for: `test-script`, `llm-judge`, `reward-kit` …"""
    verify: Callable[[VerifyContext], Awaitable[VerifyResult]]
    """Raises `VerifierError` or one of its kinds when there is no verdict."""
    needs_box: bool = True
    """False: it reads only captured artifacts, and no box is started for it."""
    needs: frozenset[str] = frozenset()
    needs_model: bool = False
    """It asks the model that the task's `params` name as `model`: whether that can be reached is checked beforehand."""
    check: CheckFn = no_checks
