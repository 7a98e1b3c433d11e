"""What the errors of a vendor's SDK mean to the core: by class and status, never by the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import (
    BenchflowError,
    CredentialRefused,
    InfrastructureError,
    SandboxQuotaExceeded,
    SandboxRateLimited,
    SandboxStartError,
)

__all__ = ["Answer", "Missing", "Translation", "answer_by_class", "first_line", "seconds_asked"]


class Missing(Exception):
    """The vendor does not have it, or not any more."""


def first_line(error: BaseException) -> str:
    """Of what an SDK says, short, without a full stop."""
    text = str(error).strip()
    return text.splitlines()[0][:500].rstrip(".") if text else type(error).__name__


@dataclass(frozen=True, slots=True)
class Answer:
    """A vendor's refusal as HTTP would say it."""

    status: int | None
    """`None` where no answer came."""
    message: str
    retry_after: float = 0.0


class Translation:
    """Turns what one vendor's SDK raises into `Missing` and the errors of the core.

    `answer` reads an error of the SDK and returns `None` for other errors; `transport` are the classes of errors of
    the network below it. `variables` hold the credentials.
    """

    def __init__(
        self,
        vendor: str,
        variables: str,
        answer: Callable[[Exception], Answer | None],
        transport: tuple[type[Exception], ...],
    ) -> None:
        self._vendor, self._answer = vendor, answer
        self._transport: tuple[type[Exception], ...] = (TimeoutError, OSError, *transport)
        self._credentials = f"Check {variables}: bench plugins doctor {vendor.lower()}."

    def __call__(self, what: str) -> AbstractContextManager[None]:
        """Translate what a block raises. `what` was being done, as in `the box cannot be made`."""
        return self._translated(what)

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except (BenchflowError, Missing):
            raise
        except Exception as error:
            if (found := self._answer(error)) is not None:
                raise self.refusal(what, found) from error
            if isinstance(error, self._transport):
                raise InfrastructureError(
                    f"{self._vendor}: {what}: {type(error).__name__} {error}".rstrip() + "."
                ) from error
            raise

    def refusal(self, what: str, answer: Answer) -> BenchflowError | Missing:
        """Return the error for a refusal, by its status."""
        text, status = f"{self._vendor}: {what}: {answer.message}.", answer.status
        if status == 404:
            return Missing(text)
        if status == 429:
            return SandboxRateLimited(text, details={"retry_after": answer.retry_after}, retryable=True)
        if status == 401:
            return CredentialRefused(text, remedy=self._credentials)
        if status in (402, 403):
            return SandboxQuotaExceeded(
                text,
                remedy="Lower --concurrency, remove boxes with bench sandbox cleanup, or raise the limits.",
                retryable=True,
            )
        return SandboxStartError(text, retryable=status is None or status >= 500 or status == 408)


def answer_by_class(error: Exception, statuses: Mapping[type[Exception], int | None]) -> Answer | None:
    """Return the answer for the first class in the table that the error is of, with the first line of its text."""
    for kind, status in statuses.items():
        if isinstance(error, kind):
            return Answer(status, first_line(error))
    return None


def seconds_asked(headers: Mapping[str, str]) -> float:
    """How long the vendor wants to be left alone."""
    for name, value in headers.items():
        if name.lower().startswith("retry-after"):
            try:
                return max(0.0, float(value))
            except ValueError:
                continue
    return 0.0
