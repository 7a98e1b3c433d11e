"""Agents: what is measured. A spec is data plus a pure `prepare`; the core executes what it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from benchflow_core.contracts.common import CheckFn, Layer, McpServer, Runtime, Usage, no_checks
from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from benchflow_core.contracts.gateways import Exchange, ModelEndpoint, Wire
    from benchflow_core.contracts.sandboxes import Sandbox
    from benchflow_core.contracts.tasks import Step, Task

__all__ = [
    "AgentContext",
    "AgentOption",
    "AgentSpec",
    "AuthOption",
    "Companion",
    "Launch",
    "PermissionPolicy",
    "PromptOutcome",
    "Session",
    "SessionContext",
    "SessionEvent",
    "read_skill",
]

PermissionPolicy = Literal["allow", "reject", "ask"]
"""`allow`: do not ask, or get a yes. `ask`: ask, and get a yes unless the driver's user says no. `reject`: get a no."""


@dataclass(frozen=True, slots=True)
class AuthOption:
    """One way an agent can be authorised; alternatives are tried in order."""

    name: str
    """`api-key`, `token`, `host-login` …"""
    env: tuple[str, ...] = ()
    """Variables that must all be set."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Host login: file on the host (`~` allowed) to path below the agent's home. This is the explicit `native` mode."""
    native: bool = False
    """The credential goes into the box and the gateway is skipped; only on `--auth native`."""
    hint: str = ""
    acp_method: str | None = None
    """ACP authentication method to call where the agent offers it."""


@dataclass(frozen=True, slots=True)
class AgentContext:
    """Everything `prepare` may use. It must be pure: same context, same launch."""

    workdir: str
    home: str
    user: str
    prefix: str | None
    """Where the agent's first layer is mounted; `None` when it has none."""
    runtimes: Mapping[str, str] = field(default_factory=dict)
    """Runtime name to absolute path of its program in the box."""
    model: str | None = None
    """As the user wrote it, provider prefix included."""
    endpoint: ModelEndpoint | None = None
    """Where the model is reached from inside the box, and with which key. `None`: no gateway."""
    effort: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    """`--agent-env`."""
    options: Mapping[str, str] = field(default_factory=dict)
    mcp_servers: tuple[McpServer, ...] = ()
    skills: tuple[str, ...] = ()
    """Skill folders, already in the box."""
    web_tools: bool = True
    """False: the agent's own web search and fetch tools must be off."""
    permissions: PermissionPolicy = "allow"
    auth: AuthOption | None = None
    role: str = "agent"
    """The part it plays, in scenes of several."""


@dataclass(frozen=True, slots=True)
class Companion:
    """A process the agent needs beside itself, e.g. a gateway of its own. Ready when its probe exits 0."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    ready: tuple[str, ...] = ()
    ready_timeout: float = 60.0


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start the agent. Secrets belong in `env` or in `files`, never in `argv`."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Absolute path to content, written with mode 0600 as the agent's user."""
    companions: tuple[Companion, ...] = ()
    cwd: str | None = None
    session_meta: Mapping[str, Any] = field(default_factory=dict)
    """`_meta` of session/new."""
    session_mode: str | None = None
    """ACP mode to set after session/new, instead of the spec's: where it depends on the context."""


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """One thing that happened in a turn, in ACP's words: `agent_message_chunk`, `tool_call`, `usage_update` …

    `data` is the update as it came. A session that is not ACP uses the same kinds.
    """

    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PromptOutcome:
    """How a turn ended."""

    stop_reason: str
    """ACP's: `end_turn`, `max_tokens`, `max_turn_requests`, `refusal`, `cancelled`."""
    usage: Usage | None = None
    """What the agent itself reports; the gateway's count wins where there is one."""
    data: Mapping[str, Any] = field(default_factory=dict)


class Session(Protocol):
    """A live conversation with an agent."""

    @property
    def id(self) -> str: ...

    async def prompt(self, text: str) -> PromptOutcome:
        """One turn. Events go to `SessionContext.emit` while it runs. Raises `AgentError` or `ProviderError`."""

    async def cancel(self) -> None:
        """Ask the running turn to stop; `prompt` then returns `cancelled` or is given up after a grace time."""

    async def close(self) -> None:
        """End the session and its process. Safe to call again."""


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What `connect` gets: for agents that are not plain ACP (a script, an in-process library)."""

    sandbox: Sandbox
    task: Task
    step: Step | None
    agent: AgentContext
    emit: Callable[[SessionEvent], None]
    log_dir: str
    """In the box: `/logs/agent`."""
    solution_env: Mapping[str, str] = field(default_factory=dict)
    """The solution's variables, templates resolved; only for `purpose="reference"`."""


@dataclass(frozen=True, slots=True)
class AgentOption:
    """What an agent takes as `--agent-option NAME=VALUE`."""

    help: str
    required: bool = False
    env: str = ""
    """A variable, of the host or of `--agent-env`, that may give it instead."""
    parse: Callable[[str], Any] = str
    """Called with the value while planning: `ValueError` refuses it."""


def _agent_purpose(_: Exchange) -> str:
    return "agent"


def read_skill(call: Mapping[str, Any]) -> str | None:
    """The skill that a tool call loads, where skills are files to read; also a call whose kind says so."""
    given = call.get("rawInput")
    if call.get("kind") == "skill":
        named = [given.get(key) for key in ("skill", "name")] if isinstance(given, Mapping) else []
        return next((str(name) for name in named if name), str(call.get("title") or "skill"))
    if call.get("kind") != "read":
        return None
    for location in call.get("locations") or ():
        path = str(location.get("path", "")) if isinstance(location, Mapping) else ""
        if path.endswith("/SKILL.md"):
            return path.split("/")[-2]
    return None


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent.

    Example::

        @hookimpl
        def benchflow_agent() -> AgentSpec:
            return AgentSpec(
                summary="OpenCode over ACP",
                prepare=lambda c: Launch(argv=(f"{c.prefix}/bin/opencode", "acp"), env={…}),
                layers=(Layer(key="opencode-ai@1.18.33", prefix="/opt/benchflow/agents/opencode", install=(…)),),
                wires=("chat", "messages"),
            )
    """

    summary: str
    name: str = ""
    """Which of its entry points lists call it by, where it has several; the others are aliases."""
    prepare: Callable[[AgentContext], Launch] | None = None
    """Pure. `None` only together with `connect` or `opens`."""
    session: str = "benchflow_acp:open_session"
    """`package.module:function`, which talks to the process that `prepare` describes: an async
    `(process, SessionOptions) -> Session`. The default speaks ACP.
    The agent's distribution depends on the package that it names."""
    connect: Callable[[SessionContext], Awaitable[Session]] | None = None
    """For an agent without a process of its own in the box."""
    opens: Callable[[str], AgentSpec | None] | None = None
    """For an agent that is named by what it runs (`cmd:…`, `./agent.toml`): gets a name that no plugin has, and returns
    `None` where it is not meant."""
    wrap: Callable[[AgentSpec], AgentSpec] | None = None
    """For `this/<agent>`: gives the wrapped agent's spec back, changed."""
    purpose: Literal["normal", "reference", "null"] = "normal"
    """`reference` plays the task's solution, `null` does nothing: both need no model."""
    default_rank: int | None = None
    layers: tuple[Layer, ...] = ()
    runtimes: tuple[Runtime, ...] = ()
    needs: frozenset[str] = frozenset()
    """Sandbox capabilities."""
    wires: tuple[Wire, ...] = ()
    """Model APIs it can be pointed at, best first. Empty: it needs no model."""
    auth: tuple[AuthOption, ...] = ()
    takes_model: bool | None = None
    """False: a rollout that gives it a model is refused. `None`: not declared, any model is accepted."""
    options: Mapping[str, AgentOption] | None = None
    """By name. Any other is refused, and so is a rollout without one that is required. `None`: not declared, `prepare`
    gets whatever the user gives."""
    default_model: str | None = None
    helper_models: tuple[str, ...] = ()
    """Names (shell patterns) of models that it asks beside the one it was given: for titles, routing, sub-agents.
    `--helper-models` says who answers them; any other name is refused."""
    model_in_session: Literal["", "set_model", "config_option"] = ""
    """How the model is chosen over ACP where the launch does not settle it."""
    model_option: str = "model"
    effort_option: str | None = None
    session_mode: str | None = None
    """ACP mode to set after session/new."""
    mcp: Literal["acp", "launch", ""] = "acp"
    """Servers are handed over in session/new, by `prepare`, or not at all."""
    skill_paths: tuple[str, ...] = ()
    """Where it looks for skills; `~` is the agent's home, relative paths the working directory."""
    skill_call: Callable[[Mapping[str, Any]], str | None] = read_skill
    """The skill that a tool call loads, if it loads one: asked with each `tool_call` and `tool_call_update` as it came,
    until there is an answer. `n_skill_invocations` counts the answers."""
    web_tools_can_be_disabled: bool = False
    errors_are_silent: bool = False
    """It ends a turn normally although its model calls failed: only the gateway's log tells."""
    exchange_purpose: Callable[[Exchange], str] = _agent_purpose
    """`agent`, or what auxiliary call a model request was: `title`, `summary`, `helper` …"""
    handshake_timeout: float = 60.0
    check: CheckFn = no_checks
    version: str = ""
    """Of the agent itself, as pinned."""
    reports_version: bool = False
    """It answers `initialize` with `version`: another one is not what was pinned, and is refused."""
    homepage: str = ""
