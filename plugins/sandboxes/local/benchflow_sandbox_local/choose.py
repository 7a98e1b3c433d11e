"""Options of the user, checked before anything starts."""

from __future__ import annotations

from benchflow_core.contracts.sandboxes import SandboxContext, SandboxProvider

__all__ = ["open_provider"]


def open_provider(context: SandboxContext) -> SandboxProvider:
    from benchflow_sandbox_local.refusing import check_options

    check_options(context.options)
    from benchflow_sandbox_local.provider import LocalProvider

    return LocalProvider(context)
