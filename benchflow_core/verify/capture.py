"""The agent's state, captured once: the snapshot, the plan for it, and the texts of which only a part will be seen."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from benchflow_core.contracts.common import Capability
from benchflow_core.contracts.sandboxes import Change, Sandbox, Snapshot
from benchflow_core.errors import InfrastructureError
from benchflow_core.quick import dataclass
from benchflow_core.verify import texts
from benchflow_core.verify.author import AuthorText
from benchflow_core.verify.boxes import pinned_env, verifier_home
from benchflow_core.verify.contents import read_bytes, read_text
from benchflow_core.verify.findings import Finding
from benchflow_core.verify.ground import ACCOUNTS, DEFAULT_PATH, Ground, parent_of
from benchflow_core.verify.logins import Effect, look
from benchflow_core.verify.origin import classify
from benchflow_core.verify.plan import Plan
from benchflow_core.verify.request import VerifyRequest
from benchflow_core.world.sockets import listening_sockets

__all__ = ["Captured", "Texts", "author_text", "capture"]

_MOST = 50
_MOST_REPOSITORIES = 200
_PROVIDED_BYTES = 1024 * 1024


@dataclass(slots=True)
class Texts:
    """By path, what of these files may be seen in the verifier's box."""

    path_files: dict[str, list[str]] = field(default_factory=dict)
    editable: dict[str, str] = field(default_factory=dict)
    configs: dict[str, bytes] = field(default_factory=dict)
    logins: dict[str, str] = field(default_factory=dict)
    effect: Effect = field(default_factory=Effect)
    hosts: str | None = None
    accounts: str | None = None


@dataclass(frozen=True, slots=True)
class Captured:
    snapshot: Snapshot
    ground: Ground
    plan: Plan
    texts: Texts
    ports: list[int]
    sockets: list[str]
    findings: list[Finding]
    provided: Mapping[str, Path]
    """Files of the task's own, and where they came from."""


async def capture(request: VerifyRequest) -> Captured:
    """Take the snapshot and decide about everything in it."""
    findings: list[Finding] = []
    author = author_text(request)
    ports: list[int] = []
    sockets: list[str] = []
    if Capability.PORTS in request.capabilities:
        sockets = await listening_sockets(request.sandbox, author.means_server)
        ports = _to_forward(await _agents_ports(request), author, findings)
    snapshot = await request.sandbox.snapshot(f"verify-{secrets.token_hex(4)}")
    try:
        if snapshot.changes is None:
            raise InfrastructureError("the sandbox declares 'changes', but its snapshot does not list them.")
        provided = await _provided(request, snapshot.changes)
        ground = _ground(request, author, provided)
        plan = classify(snapshot.changes, ground)
        findings += plan.findings
        found = await _read_texts(request.sandbox, plan, findings)
        if found.logins:
            env = pinned_env(request, request.image, request.start)
            found.effect = await look(request.sandbox, env, request.user, author)
    except BaseException:
        await request.provider.forget(snapshot)
        raise
    return Captured(snapshot, ground, plan, found, ports, sockets, findings, provided)


def author_text(request: VerifyRequest) -> AuthorText:
    step = request.step.instruction if request.step else ""
    instruction = f"{request.task.instruction}\n{step}"
    return AuthorText(instruction, request.settings.tests, request.settings.script)


async def _agents_ports(request: VerifyRequest) -> list[int]:
    """The world's own ports come from the world: what an agent serves there instead is not carried over."""
    worlds = request.world.ports if request.world else ()
    return [port for port in await request.sandbox.listening() if port not in worlds]


def _to_forward(ports: Sequence[int], author: AuthorText, findings: list[Finding]) -> list[int]:
    own = [port for port in ports if author.tests_serve(port)]
    why = "the tests serve this port themselves"
    findings += [Finding("port-not-forwarded", f"tcp/{port}", "noted", why) for port in own]
    return [port for port in ports if port not in own]


def _ground(request: VerifyRequest, author: AuthorText, provided: Collection[str]) -> Ground:
    settings = request.settings
    env = {**request.image.env, **request.start.env, **request.env}
    return Ground(
        workdir=request.workdir.rstrip("/") or "/",
        home=verifier_home(request),
        path=_split(env.get("PATH", DEFAULT_PATH)),
        tests=settings.tests_target.rstrip("/"),
        logs=settings.logs_target.rstrip("/"),
        author=author,
        keep=settings.keep_changes,
        python_path=_split(env.get("PYTHONPATH", "")),
        library_path=_split(env.get("LD_LIBRARY_PATH", "")),
        user=(request.user or "root").partition(":")[0],
        provided=frozenset(provided),
    )


async def _provided(request: VerifyRequest, changes: Sequence[Change]) -> dict[str, Path]:
    """Files that the task laid into the working directory and that did not change, with their source."""
    task, step, workdir = request.task, request.step, request.workdir.rstrip("/")
    folders = [task.environment.context] if task.environment.upload_context else []
    folders += [s.workdir_files for s in task.steps[: task.steps.index(step) + 1]] if step in task.steps else []
    files = [(folder, path) for folder in folders if folder for path in folder.rglob("*") if path.is_file()]
    given = {f"{workdir}/{path.relative_to(folder).as_posix()}": path for folder, path in files}
    same: dict[str, Path] = {}
    for change in changes:
        source = given.get(change.path)
        if source is None or change.size != source.stat().st_size or change.size > _PROVIDED_BYTES:
            continue
        if await read_bytes(request.sandbox, change.path) == source.read_bytes():
            same[change.path] = source
    return same


async def _read_texts(box: Sandbox, plan: Plan, findings: list[Finding]) -> Texts:
    """From the agent's box, whose processes go on: only what will be written anew may be taken from there."""
    found = Texts()
    for path in plan.path_files[:_MOST]:
        await _read_path_file(box, path, found, findings)
    for path in plan.configs[:_MOST]:
        found.configs[path] = await read_bytes(box, path) or b""
    for path in plan.logins[:_MOST]:
        found.logins[path] = await read_text(box, path) or ""
    plan.git_configs[:] = dict.fromkeys(plan.git_configs)
    for path in plan.git_configs[_MOST_REPOSITORIES:]:
        plan.revert[path] = None
        findings.append(Finding("git-config", path, "set-aside", "there is too much of it to be read"))
    del plan.git_configs[_MOST_REPOSITORIES:]
    if plan.hosts:
        found.hosts = await read_text(box, "/etc/hosts")
    if plan.accounts:
        found.accounts = await read_text(box, ACCOUNTS)
    return found


async def _read_path_file(box: Sandbox, path: str, found: Texts, findings: list[Finding]) -> None:
    text = await read_text(box, path) or ""
    found.path_files[path] = texts.path_lines(text)
    if any(line.lstrip().startswith("import") for line in text.splitlines()):
        why = "its paths count, its other lines are code that would run at every start"
        findings.append(Finding("interpreter-hook", path, "disarmed", why))
    if texts.brings_distutils(text):
        found.editable["distutils"] = f"{parent_of(path)}/setuptools/_distutils"
    for module in texts.editable_modules(text)[:_MOST]:
        source = await read_text(box, f"{parent_of(path)}/{module}.py") or ""
        found.editable |= texts.editable_places(source)


def _split(value: str) -> tuple[str, ...]:
    return tuple(entry.rstrip("/") or "/" for entry in value.split(":") if entry.startswith("/"))
