"""What of ours exists in one user's account at a vendor: how it is listed, removed and checked."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Final

from benchflow_boxkit.failures import Missing
from benchflow_boxkit.leases import is_dead, lease
from benchflow_boxkit.snapshots import kept_leases, reap_kept
from benchflow_core.contracts.common import Check
from benchflow_core.contracts.sandboxes import Lease
from benchflow_core.errors import BenchflowError, ConfigurationError

__all__ = ["IMAGE_PREFIX", "MARK", "Account", "account_checks", "image_lease"]

MARK: Final = "io.benchflow.box"
"""Label of every box that we make at a vendor; its value is `1`."""
IMAGE_PREFIX: Final = "benchflow-"
"""How the names of our images begin at a vendor."""
_MONTH: Final = 30 * 24 * 3600.0
_SECONDS: Final = 15.0


class Account(ABC):
    """The boxes and images of ours at one vendor. Methods may raise `Missing` for what is gone."""

    vendor: str
    """The plugin's name: `daytona`."""

    @abstractmethod
    def boxes(self) -> AsyncIterator[tuple[str, Mapping[str, str]]]:
        """Yield the name and the labels of every box with the label `MARK`."""

    async def images(self) -> AsyncIterator[Lease]:
        """Yield an `image_lease` for every image of ours that can be removed."""
        nothing: tuple[Lease, ...] = ()
        for image in nothing:
            yield image

    @abstractmethod
    async def remove_box(self, identity: str) -> None: ...

    async def remove_image(self, identity: str) -> None:
        """Remove one of `images`."""

    async def close(self) -> None:
        """Close the vendor's client."""

    async def leases(self) -> AsyncIterator[Lease]:
        """Yield a lease for everything of ours: at the vendor's, and snapshots kept on this host."""
        async for identity, labels in self.boxes():
            yield lease(f"box:{identity}", labels)
        async for image in self.images():
            yield image
        for kept in kept_leases(self.vendor):
            yield kept

    async def remove(self, found: Lease) -> None:
        """Remove what a lease names; nothing happens where it is gone already."""
        if reap_kept(self.vendor, found):
            return
        kind, _, identity = found.id.partition(":")
        try:
            await (self.remove_image if kind == "image" else self.remove_box)(identity)
        except Missing:
            return

    async def remove_dead(self) -> None:
        """Remove the boxes that killed runs left, without waiting for the end of their term."""
        found = [lease(f"box:{identity}", labels) async for identity, labels in self.boxes()]
        for one in found:
            if is_dead(one):
                await self.remove(one)


def image_lease(identity: str, name: str, created: datetime, used: datetime | None) -> Lease:
    """Describe an image that may go when nobody has used it for a month."""
    last = (used or created).timestamp()
    return Lease(f"image:{identity}", "image", {"name": name}, created.timestamp(), expires_at=last + _MONTH)


def account_checks(
    settings: Callable[[Mapping[str, str]], Any], describe: Callable[[Any], Awaitable[str]], *, remedy: str
) -> list[Check]:
    """Check the credentials, and whether the account answers. The credentials themselves are never shown.

    An installed cloud that is not used needs none: that they are missing is a warning. `describe` makes one request.
    """
    try:
        found = settings(os.environ)
    except ConfigurationError as error:
        return [Check("credentials", "warn", error.message, error.remedy or "")]
    return [Check("credentials", "ok", f"set, for {found.place}"), asyncio.run(_answers(found, describe, remedy))]


async def _answers(settings: Any, describe: Callable[[Any], Awaitable[str]], remedy: str) -> Check:
    try:
        async with asyncio.timeout(_SECONDS):
            return Check("account", "ok", f"answers; {await describe(settings)}")
    except BenchflowError as error:
        return Check("account", "fail", error.message, error.remedy or remedy)
    except Missing as error:
        return Check("account", "fail", str(error), remedy)
    except TimeoutError:
        return Check("account", "fail", f"no answer in {_SECONDS:.0f} s", remedy)
