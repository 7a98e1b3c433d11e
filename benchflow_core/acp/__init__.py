"""An ACP client over any process: `open_session` gives a session that can be prompted, cancelled and closed."""

from benchflow_core.acp.command import command_agent
from benchflow_core.acp.handshake import open_session
from benchflow_core.acp.options import AcpOptions, ClientFiles
from benchflow_core.acp.session import AcpSession

__all__ = ["AcpOptions", "AcpSession", "ClientFiles", "command_agent", "open_session"]
