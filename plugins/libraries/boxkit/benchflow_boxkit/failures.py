"""What a vendor's answer means to the core."""

from __future__ import annotations

from collections.abc import Mapping

from benchflow_core.errors import (
    BenchflowError,
    CredentialRefused,
    SandboxQuotaExceeded,
    SandboxRateLimited,
    SandboxStartError,
)

__all__ = ["Missing", "first_line", "out_of_quota", "refusal", "seconds_asked"]


class Missing(Exception):
    """The vendor does not have it, or not any more."""


def first_line(error: BaseException) -> str:
    """Of what an SDK says, short, without a full stop."""
    text = str(error).strip()
    return text.splitlines()[0][:500].rstrip(".") if text else type(error).__name__


def refusal(text: str, status: int | None, *, credentials: str, retry_after: float = 0.0) -> BenchflowError | Missing:
    """`status`: of HTTP, or `None` where no answer came. `credentials`: what to check where they are refused."""
    if status == 404:
        return Missing(text)
    if status == 429:
        return SandboxRateLimited(text, details={"retry_after": retry_after}, retryable=True)
    if status == 401:
        return CredentialRefused(text, remedy=credentials)
    if status in (402, 403):
        return out_of_quota(text)
    return SandboxStartError(text, retryable=status is None or status >= 500 or status == 408)


def out_of_quota(text: str) -> SandboxQuotaExceeded:
    return SandboxQuotaExceeded(
        text,
        remedy="Lower --concurrency, remove boxes with bench sandbox cleanup, or raise the limits.",
        retryable=True,
    )


def seconds_asked(headers: Mapping[str, str]) -> float:
    """How long the vendor wants to be left alone."""
    for name, value in headers.items():
        if name.lower().startswith("retry-after"):
            try:
                return max(0.0, float(value))
            except ValueError:
                continue
    return 0.0
