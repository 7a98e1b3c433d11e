"""Sessions: what the core tells the client that talks to an agent's process (`AgentSpec.session`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from benchflow_core.contracts.agents import AgentSpec, PermissionPolicy, SessionEvent
from benchflow_core.contracts.common import McpServer
from benchflow_core.contracts.sandboxes import AccessView, Sandbox
from benchflow_core.quick import dataclass

__all__ = ["ClientFiles", "ElicitCallback", "PermissionCallback", "SessionOptions"]

PermissionCallback = Callable[[Mapping[str, Any]], Awaitable[str | None]]
"""Gets the request as it came; returns the id of one of its options, or `None` to leave it to the policy."""

ElicitCallback = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]
"""Gets the request as it came; returns the content to accept with, or `None` to decline."""


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """Let an agent read files and run commands through its client: in the box, as the agent's user and in its view."""

    sandbox: Sandbox
    user: str | None
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)
    view: AccessView | None = None
    files: bool = True
    """Offer to read and write files (in ACP: `fs/*`)."""
    terminal: bool = True
    """Offer to run commands (in ACP: `terminal/*`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """How to open a session and what to do with what comes out of it."""

    cwd: str
    emit: Callable[[SessionEvent], None]
    """Called for each thing as it arrives, in order; reading stops until it returns, so a slow one slows the agent."""
    spec: AgentSpec
    mcp_servers: Sequence[McpServer] = ()
    permissions: PermissionPolicy = "allow"
    on_permission: PermissionCallback | None = None
    """Asked before the policy."""
    elicit: ElicitCallback | None = None
    """Answers the agent's questions. `None`: not offered, and declined when asked nevertheless."""
    model: str | None = None
    effort: str | None = None
    auth_method: str | None = None
    """ACP authentication method to use where the agent offers it."""
    load_session: str | None = None
    """Continue this session instead of starting one; what the agent replays is kept as `replayed_update`."""
    stderr_log: Path | None = None
    """Standard error and stray output, head and tail. Written as it is: secrets are the caller's to redact."""
    handshake_timeout: float | None = None
    """For each request up to the first prompt; `None`: the agent's own `handshake_timeout`."""
    idle_timeout: float | None = None
    """Without any message for this long, and with no tool call open, a turn is given up."""
    cancel_grace: float = 5.0
    """How long a cancelled turn may take to end before the process is killed."""
    max_line_bytes: int = 16 * 1024 * 1024
    session_meta: Mapping[str, Any] = field(default_factory=dict)
    session_mode: str | None = None
    """Mode to set after session/new; `None`: the agent's own `session_mode`."""
    client_files: ClientFiles | None = None
