"""What the machines of every vendor have in common: signs of life, connections that may fail, removal."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeVar

from benchflow_boxkit.failures import Missing
from benchflow_core.contracts.sandboxes import ByteStream, NetworkPolicy
from benchflow_core.errors import InfrastructureError, SandboxLost, SandboxStartError

__all__ = ["CloudMachine", "made_or_gone"]

T = TypeVar("T")
_REMOVALS = 3


class CloudMachine(ABC):
    """A box of a vendor's. A subclass says how it is kept, reached, looked up and removed.

    Its methods with an underscore raise `Missing` for a box that is gone, and the classes of `benchflow_core.errors`.
    """

    def __init__(self, notices: tuple[str, ...], beat: float) -> None:
        """`beat`: seconds between two signs of life."""
        self.notices = notices
        self._beat, self._deleted, self._removed = beat, False, False
        self._alive = asyncio.ensure_future(self._stay())

    @property
    @abstractmethod
    def id(self) -> str:
        """The vendor's name for it."""

    @abstractmethod
    async def _keep(self) -> bool:
        """A sign of life: while it comes, the vendor keeps the box. False: it is not needed any more."""

    @abstractmethod
    async def _attach(self) -> ByteStream:
        """Run `package.ATTACH` as root."""

    @abstractmethod
    async def _runs(self) -> bool:
        """Does the vendor say that the box runs? Asked only where a connection failed."""

    @abstractmethod
    async def _remove(self) -> None:
        """Remove the box. Raises `Missing` when it no longer exists."""

    @abstractmethod
    async def _set_public(self, public: bool) -> None:
        """Let it reach the internet, or nothing."""

    async def _stay(self) -> None:
        while True:
            await asyncio.sleep(self._beat)
            with contextlib.suppress(Missing, InfrastructureError):
                if not await self._keep():
                    return

    async def connect(self) -> ByteStream:
        try:
            if self._deleted:
                raise Missing
            return await self._attach()
        except Missing as error:
            raise SandboxLost(f"Box {self.id} is gone.") from error
        except InfrastructureError as error:
            if self._deleted or not await self._may_run():
                raise SandboxLost(f"Box {self.id} is gone.") from error
            raise

    async def _may_run(self) -> bool:
        try:
            return await self._runs()
        except Missing:
            return False
        except InfrastructureError:
            return True

    async def set_network(self, policy: NetworkPolicy) -> None:
        try:
            await self._set_public(policy.mode == "public")
        except Missing as error:
            raise SandboxLost(f"Box {self.id} is gone.") from error

    async def logs(self, tail: int) -> bytes:
        """Return no logs: a cloud box never runs the image's own program."""
        return b""

    async def delete(self) -> None:
        """Delete the box; a second call does nothing."""
        if self._removed:
            return
        self._deleted = True
        self._alive.cancel()
        for attempt in range(_REMOVALS):
            try:
                with contextlib.suppress(Missing):
                    await self._remove()
                self._removed = True
                return
            except InfrastructureError:
                if attempt + 1 == _REMOVALS:
                    raise
                await asyncio.sleep(0.5)


async def made_or_gone(make: Callable[[], Awaitable[T]], remove: Callable[[T], Awaitable[object]]) -> T:
    """Return the answer to a request for a box. When the caller is cancelled, what it makes is removed."""
    making = asyncio.ensure_future(make())

    async def gone() -> None:
        with contextlib.suppress(Exception):
            await remove(await making)

    try:
        return await asyncio.shield(making)
    except Missing as error:
        raise SandboxStartError(str(error), retryable=False) from error
    except asyncio.CancelledError:
        await asyncio.shield(gone())
        raise
