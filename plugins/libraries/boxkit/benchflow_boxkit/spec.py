"""The spec of a cloud's plugin. Its modules are imported when they are asked for: the entry point stays light."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import import_module
from typing import Any, Final

from benchflow_core.contracts import (
    Availability,
    Capability,
    Check,
    ImageRequest,
    Lease,
    SandboxContext,
    SandboxProvider,
    SandboxSpec,
)

__all__ = ["CAPABILITIES", "VIEWS", "cloud_spec"]

CAPABILITIES: Final = frozenset(
    {
        Capability.USERS,
        Capability.SNAPSHOT,
        Capability.RESTORE,
        Capability.CHANGES,
        Capability.CHANGES_CARRIED,
        Capability.PORTS,
        Capability.NETWORK_PUBLIC,
        Capability.NETWORK_NONE,
        Capability.NETWORK_ALLOWLIST,
        Capability.NETWORK_DYNAMIC,
        Capability.IMAGE_BUILD,
        Capability.IMAGE_PREBUILT,
    }
)
"""What the box kit makes of any vendor whose boxes can be cut off from the network while they run."""
VIEWS: Final[dict[str, str]] = {
    Capability.ACCESS_VIEW: "where root of a box may mount, which is tried when it is first asked for",
}
"""The caveat of a vendor that declares `Capability.ACCESS_VIEW`: the box kit makes views from mounts in the box.
Where boxes hold a server of the vendor's own that does whatever a program asks, `shut_ports` of the vendor names it."""
_THREAT_MODEL: Final = (
    "Boxes run on {0}'s machines, apart from each other and from this host by {0}'s walls; this host shows a "
    "box nothing but the servers that were exposed to it. The agent is root in its own box and can break the "
    "supervisor in it: that ends its rollout, and what a verifier's box gets is still the image and a list of changes "
    "read here."
)


def cloud_spec(
    package: str,
    vendor: str,
    *,
    capabilities: frozenset[str],
    requires: tuple[str, ...],
    caveats: Mapping[str, str] | None = None,
    refuse_image: Callable[[ImageRequest], None] | None = None,
) -> SandboxSpec:
    """Make the spec of a cloud from the modules `provider`, `settings` (`read_settings`, `credentials`), `leases`
    and `checks` of `package`.

    `refuse_image` raises for what the vendor cannot build, before anything starts.
    """

    def module(name: str) -> Any:
        return import_module(f"{package}.{name}")

    def open_(context: SandboxContext) -> SandboxProvider:
        from benchflow_boxkit.provider import BoxProvider

        return BoxProvider(context, module("provider").VENDOR(context))

    def available() -> Availability:
        found: Availability = module("settings").credentials(os.environ).availability()
        return found

    def check() -> list[Check]:
        from benchflow_boxkit.accounts import account_checks

        remedy = f"Check {', '.join(requires)} and the network."
        return account_checks(module("settings").read_settings, module("checks").describe, remedy=remedy)

    async def list_leases() -> AsyncIterator[Lease]:
        account = module("leases").account(os.environ)
        try:
            async for lease in account.leases():
                yield lease
        finally:
            await account.close()

    async def reap(lease: Lease) -> None:
        account = module("leases").account(os.environ)
        try:
            await account.remove(lease)
        finally:
            await account.close()

    def refuse(options: Mapping[str, str], env: Mapping[str, str], request: ImageRequest) -> None:
        module("settings").read_settings(env, options)
        if refuse_image is not None:
            refuse_image(request)

    return SandboxSpec(
        summary=f"{vendor}'s cloud sandboxes",
        open=open_,
        capabilities=capabilities,
        available=available,
        check=check,
        list_leases=list_leases,
        reap=reap,
        on_host=False,
        requires=requires,
        refuse=refuse,
        caveats=caveats or {},
        threat_model=_THREAT_MODEL.format(vendor),
    )
