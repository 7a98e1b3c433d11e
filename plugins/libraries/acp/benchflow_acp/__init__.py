"""A client of the Agent Client Protocol: `open_session` drives an agent's process over its standard streams."""

from __future__ import annotations

from benchflow_acp.handshake import open_session
from benchflow_acp.session import AcpSession

__all__ = ["AcpSession", "open_session"]
