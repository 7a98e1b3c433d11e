"""Options of the user, checked before anything starts."""

from __future__ import annotations

from benchflow_core.contracts.sandboxes import SandboxContext, SandboxProvider
from benchflow_core.errors import UsageError

__all__ = ["open_provider"]


def open_provider(context: SandboxContext) -> SandboxProvider:
    _check_options(context)
    from benchflow_sandbox_local.provider import LocalProvider

    return LocalProvider(context)


def _check_options(context: SandboxContext) -> None:
    known = {"stage": ("1", "2", "3"), "network": ("proxy", "host"), "nesting": ("yes", "no"), "dir": ()}
    for name, value in context.options.items():
        if name not in known:
            raise UsageError(f"The embedded sandbox has no option {name!r}.", remedy=f"It has: {', '.join(known)}.")
        if known[name] and value not in known[name]:
            raise UsageError(f"{name}={value!r} is not possible.", remedy=f"Choose one of {', '.join(known[name])}.")
