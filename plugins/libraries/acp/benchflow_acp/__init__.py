"""An ACP client over any process: `open_session` gives a session that can be prompted, cancelled and closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchflow_core.lazy import names_of

if TYPE_CHECKING:
    from benchflow_core.acp.command import command_agent
    from benchflow_core.acp.handshake import open_session
    from benchflow_core.acp.options import AcpOptions, ClientFiles
    from benchflow_core.acp.session import AcpSession

__all__ = ["AcpOptions", "AcpSession", "ClientFiles", "command_agent", "open_session"]

__getattr__ = names_of(
    __name__,
    {
        "command": "command_agent",
        "handshake": "open_session",
        "options": "AcpOptions ClientFiles",
        "session": "AcpSession",
    },
)
