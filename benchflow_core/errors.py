"""What can go wrong, by type. Retry and scoring look at the type, never at the text of a message.

Raise the narrowest class that is true. `message` says what happened and where; `remedy` says what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar

__all__ = [
    "AgentCrashed",
    "AgentError",
    "AgentProtocolError",
    "AgentStartError",
    "AgentTimeout",
    "BenchflowError",
    "BuildError",
    "Cancelled",
    "CapabilityMissing",
    "ConfigurationError",
    "ConnectionLost",
    "CredentialRefused",
    "ErrorKind",
    "InfrastructureError",
    "PluginError",
    "PluginFailed",
    "ProviderError",
    "ProviderRateLimited",
    "RewardInvalid",
    "RewardMissing",
    "SandboxLost",
    "SandboxQuotaExceeded",
    "SandboxRateLimited",
    "SandboxStartError",
    "TaskError",
    "TransferRefused",
    "TransportError",
    "UnknownModel",
    "UsageError",
    "VerifierError",
    "VerifierTimeout",
    "WorkerDiffers",
    "WorkerLost",
    "error_from_json",
    "error_names",
]


class ErrorKind(StrEnum):
    """The seven types of design §6. Each decides how a rollout counts and whether it is tried again."""

    INFRASTRUCTURE = "infrastructure"
    PROVIDER = "provider"
    AGENT = "agent"
    VERIFIER = "verifier"
    TASK = "task"
    CONFIGURATION = "configuration"
    CANCELLED = "cancelled"


class BenchflowError(Exception):
    """Base of every expected failure. Anything else that escapes is a defect."""

    kind: ClassVar[ErrorKind] = ErrorKind.INFRASTRUCTURE
    retryable: bool = False
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        remedy: str | None = None,
        retryable: bool | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.details = details or {}
        if retryable is not None:
            self.retryable = retryable

    @property
    def code(self) -> str:
        """A stable name for files and statistics: the class name in snake case."""
        return _code(type(self))

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}" if self.remedy else self.message

    def to_json(self) -> dict[str, Any]:
        """What results and `--json` carry."""
        return {
            "kind": self.kind.value,
            "code": self.code,
            "message": self.message,
            "remedy": self.remedy,
            "retryable": self.retryable,
            "details": self.details,
        }


# --- configuration: what the user asked for cannot be done -------------------------------------------------


class ConfigurationError(BenchflowError):
    """The request itself is wrong. Nothing was started."""

    kind = ErrorKind.CONFIGURATION


class UsageError(ConfigurationError):
    """A command line that cannot be understood; exit code 2."""

    exit_code = 2


class CapabilityMissing(ConfigurationError):
    """The plan asks for something the chosen sandbox, agent or verifier does not declare."""


class PluginError(ConfigurationError):
    """A plugin that was asked for is unknown, ambiguous, blocked, broken or incompatible."""


class WorkerDiffers(ConfigurationError):
    """A worker has other versions or tasks than the job was planned with: the job stops and says so."""


# --- task ---------------------------------------------------------------------------------------------------


class TaskError(BenchflowError):
    """The task's own files are wrong: file, line and expectation belong in the message."""

    kind = ErrorKind.TASK


# --- infrastructure: unscored, retried as a whole -----------------------------------------------------------


class InfrastructureError(BenchflowError):
    """Our side or the sandbox vendor failed. Never a zero."""

    kind = ErrorKind.INFRASTRUCTURE
    retryable = True


class PluginFailed(InfrastructureError):
    """Code of a plugin raised what it should not have, or returned the wrong thing: a defect of the plugin."""

    retryable = False


class BuildError(InfrastructureError):
    """The image could not be built. `details['log']` holds the tail of the build log."""

    retryable = False


class SandboxStartError(InfrastructureError):
    """The box did not come up."""


class SandboxRateLimited(SandboxStartError):
    """The vendor takes no more requests now; `details['retry_after']` in seconds where it said so."""


class SandboxQuotaExceeded(SandboxStartError):
    """The account's limit of boxes, processors, memory or disk is used up; others have to end first."""


class AgentStartError(InfrastructureError):
    """The agent failed before it took its first prompt: at its launch, its session or its settings.

    Nobody was asked anything yet, so that nothing is scored.
    """


class SandboxLost(InfrastructureError):
    """A running box went away without being asked to."""


class WorkerLost(InfrastructureError):
    """The process or the node that ran a rollout went away, or says nothing any more."""


class ExecutorLost(WorkerLost):
    """No worker is left and none can be had: the job stops and says so."""


class TransportError(InfrastructureError):
    """The byte stream to a process in the box broke."""


class ConnectionLost(TransportError, ConnectionError):
    """The connection to an agent broke, and not because the agent ended."""


class TransferRefused(InfrastructureError):
    """A download held links, traversal or more than its limits allow: hostile or broken, not worth a retry."""

    retryable = False


# --- provider -----------------------------------------------------------------------------------------------


class ProviderError(BenchflowError):
    """The model's side failed."""

    kind = ErrorKind.PROVIDER
    retryable = True


class ProviderRateLimited(ProviderError):
    """Too many requests; `details['retry_after']` in seconds where the provider said so."""


class CredentialRefused(ProviderError):
    """The key was refused: the job stops and says so."""

    retryable = False


class UnknownModel(ProviderError):
    """The provider does not know the model: the job stops and says so."""

    retryable = False


# --- agent --------------------------------------------------------------------------------------------------


class AgentError(BenchflowError):
    """The agent failed on its own account. The box is verified as it stands."""

    kind = ErrorKind.AGENT


class AgentTimeout(AgentError, TimeoutError):
    """The agent used up its time; `details` tells wall-clock or idle."""


class AgentCrashed(AgentError, ConnectionError):
    """The agent's process ended during a turn; `details` has its exit code and the tail of stderr."""


class AgentProtocolError(AgentError):
    """The agent broke its protocol, or answered a request with an error."""


# --- verifier -----------------------------------------------------------------------------------------------


class VerifierError(BenchflowError):
    """The verifier failed; verified once more on the captured state, then by design §6."""

    kind = ErrorKind.VERIFIER


class VerifierTimeout(VerifierError):
    """The verifier used up its time."""


class RewardMissing(VerifierError):
    """The verifier ended without a reward."""


class RewardInvalid(VerifierError):
    """A reward was written that the task's dialect does not accept."""


# --- cancelled ----------------------------------------------------------------------------------------------


class Cancelled(BenchflowError):
    """Stopped by the user or by a budget."""

    kind = ErrorKind.CANCELLED
    exit_code = 130


def error_from_json(value: Mapping[str, Any]) -> BenchflowError:
    """What `to_json` wrote, as an error of its class; of its kind, where the class is a plugin's and not known here."""
    classes = {_code(c): c for c in _all_errors()}
    of_kind = next(c for c in _all_errors() if c.kind == value["kind"])
    return classes.get(value["code"], of_kind)(
        value["message"], remedy=value["remedy"], retryable=value["retryable"], details=dict(value["details"])
    )


def error_names() -> frozenset[str]:
    """The types and codes that a result can carry, as far as classes are known."""
    return frozenset({*ErrorKind, *(_code(error) for error in _all_errors())})


def _all_errors() -> Iterator[type[BenchflowError]]:
    left: list[type[BenchflowError]] = [BenchflowError]
    while left:
        yield (error := left.pop(0))
        left += error.__subclasses__()


def _code(error: type[BenchflowError]) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in error.__name__).lstrip("_")
