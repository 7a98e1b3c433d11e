"""The native in-memory task: what every adapter loads into and everything else reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, Protocol

from benchflow_core.contracts.common import McpServer
from benchflow_core.contracts.sandboxes import NetworkPolicy, Resources
from benchflow_core.quick import dataclass

__all__ = [
    "Artifact",
    "CollectHook",
    "Healthcheck",
    "RewardDialect",
    "RewardFiles",
    "Rewards",
    "SetupCommand",
    "Solution",
    "Step",
    "Task",
    "TaskEnvironment",
    "VerifierSettings",
]

Rewards = dict[str, float]
"""Name to number; `reward` is the score."""


@dataclass(frozen=True, slots=True)
class RewardFiles:
    """The verifier's output, read once after every verifier process was dead."""

    files: Mapping[str, bytes]
    """Relative path below the verifier's log folder to content; only what `RewardDialect.wants` asked for."""
    exit_code: int
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Path to reason: a link, a device, over the size limit."""


class RewardDialect(Protocol):
    """How one task format turns verifier output into numbers. Owned by the adapter."""

    name: str
    wants: tuple[str, ...]
    """The files it may look at, e.g. `("reward.json", "reward.txt")`."""

    def parse(self, found: RewardFiles) -> Rewards:
        """Rewards, or `RewardMissing` / `RewardInvalid` with the file and its offending content."""

    def combine(self, steps: Sequence[Rewards | None]) -> Rewards:
        """The reward of a multi-step task from its executed steps, in order; `None` where a step has none."""


@dataclass(frozen=True, slots=True)
class Healthcheck:
    """Docker's semantics: probes during `start_period` that fail do not count."""

    command: str
    interval: float = 5.0
    timeout: float = 30.0
    start_period: float = 0.0
    start_interval: float = 5.0
    retries: int = 3


@dataclass(frozen=True, slots=True)
class SetupCommand:
    """Runs in the box after start and before the agent."""

    command: str
    timeout: float = 600.0
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    service: str = "main"


@dataclass(frozen=True, slots=True)
class Artifact:
    """Something to bring out of the box."""

    source: str
    destination: str | None = None
    exclude: tuple[str, ...] = ()
    service: str = "main"


@dataclass(frozen=True, slots=True)
class CollectHook:
    """A command that runs after the agent and before the verifier, best effort."""

    command: str
    service: str = "main"
    timeout: float = 60.0
    user: str | None = None


@dataclass(frozen=True, slots=True)
class TaskEnvironment:
    """The box a task asks for."""

    context: Path | None = None
    dockerfile: Path | None = None
    image: str | None = None
    compose: Path | None = None
    os: Literal["linux", "windows"] = "linux"
    build_timeout: float = 600.0
    resources: Resources = field(default_factory=Resources)
    network: NetworkPolicy = field(default_factory=NetworkPolicy)
    env: Mapping[str, str] = field(default_factory=dict)
    """As written: `${VAR}` and `${VAR:-default}` are resolved at launch, and only for variables the user allowed."""
    workdir: str | None = None
    healthcheck: Healthcheck | None = None
    mcp_servers: tuple[McpServer, ...] = ()
    skills_dir: str | None = None
    """Absolute: a folder in the image. Relative: a folder of the task."""
    setup: tuple[SetupCommand, ...] = ()
    upload_context: bool = False
    """A prebuilt image with neither Dockerfile nor compose file: the context is copied into the working directory."""
    allow_substitute: bool = False
    """The task says it also runs on another file system than the one it names."""


@dataclass(frozen=True, slots=True)
class VerifierSettings:
    """How a task, or one step of it, is verified."""

    method: str = "test-script"
    """Chosen among installed verifiers by `VerifierSpec.methods`, so a task never names a plugin."""
    tests: tuple[Path, ...] = ()
    """Folders laid over each other in order at `tests_target`."""
    tests_target: str = "/tests"
    tests_links: tuple[str, ...] = ()
    """Other names of `tests_target` in the box, made as links to it while the verifier runs."""
    script: str = "test.sh"
    """Relative to `tests_target`."""
    logs_target: str = "/logs/verifier"
    timeout: float = 600.0
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    network: NetworkPolicy | None = None
    service: str = "main"
    isolation: str | None = None
    """The policy that the task demands. `None`: the strongest that sandbox and task allow."""
    environment: TaskEnvironment | None = None
    """The verifier's own image, for `separate`."""
    collect: tuple[CollectHook, ...] = ()
    keep_changes: tuple[str, ...] = ()
    """Globs of programs or libraries that the agent is meant to change: not put back under `fresh`."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """For the verifier: judge model, rubric, criteria …"""


@dataclass(frozen=True, slots=True)
class Solution:
    """The reference solution."""

    dir: Path
    target: str = "/solution"
    script: str = "solve.sh"
    env: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a multi-step task: its own prompt, limits and verification, in the same box."""

    name: str
    instruction: str
    agent_timeout: float | None = None
    agent_user: str | None = None
    agent_network: NetworkPolicy | None = None
    verifier: VerifierSettings = field(default_factory=VerifierSettings)
    solution: Solution | None = None
    workdir_files: Path | None = None
    """Copied into the working directory before the step; `setup.sh` in it is run."""
    healthcheck: Healthcheck | None = None
    artifacts: tuple[Artifact, ...] = ()
    min_reward: float | Mapping[str, float] | None = None
    """Below this the following steps are not run."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task. Loading one runs nothing and builds nothing."""

    name: str
    path: Path
    format: str
    """The format's own name for itself, e.g. `harbor`; recorded, never compared."""
    instruction: str
    dialect: RewardDialect
    environment: TaskEnvironment = field(default_factory=TaskEnvironment)
    verifier: VerifierSettings = field(default_factory=VerifierSettings)
    solution: Solution | None = None
    agent_timeout: float | None = None
    """`None`: no limit of the task's own."""
    agent_user: str | None = None
    agent_network: NetworkPolicy | None = None
    prompt_prefix: str = ""
    steps: tuple[Step, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    prior_conversation: Path | None = None
    """What was said before the agent comes in. Only reference and null agents play such a task yet."""
    locked_paths: tuple[str, ...] = ("/solution", "/tests")
    """Never readable by an agent without oracle access."""
    drive: Mapping[str, Any] | None = None
    """How the task itself wants to be played. `loop`: a driver that is installed, as `--loop-strategy` names it
    (`name:k=3`); what the user names wins. `scenes`: each with `name`, `roles` and `turns`. `user`: a simulated one.
    Anything else is refused."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    version: str | None = None
    description: str = ""
    keywords: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    """What counts for findings and hashing where it is not the whole folder."""
    notices: tuple[str, ...] = ()
    """What loading noticed: deprecated or unknown keys, each with file and line."""
