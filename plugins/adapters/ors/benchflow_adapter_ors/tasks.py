"""From the tasks that a server lists to a folder per task, and from such a folder to our task."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from benchflow_adapter_ors.address import OrsServer, read_address
from benchflow_adapter_ors.rewards import DEFAULT, POLICIES, OrsRewards
from benchflow_adapter_ors.wire import OrsClient, connected
from benchflow_core.contracts import (
    Fetched,
    McpServer,
    NetworkPolicy,
    SourceRequest,
    Task,
    TaskEnvironment,
    VerifierSettings,
)
from benchflow_core.errors import ConfigurationError, TaskError

__all__ = ["FILE", "PORT", "TaskAddress", "digest", "fetch_tasks", "load_task", "read_place"]

FILE: Final = "ors.json"
PORT: Final = 8470
"""Where the tools are served in the agent's box."""
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {"rewards": tuple(POLICIES), "network": ("none", "public")}
_PATIENCE: Final = 120.0
"""Seconds that a server may take until it lists its tasks."""
_PIECE: Final = 200
_MOST: Final = 100_000


@dataclass(frozen=True)
class TaskAddress:
    """A task of an environment on a server, without its specification: that may hold the answer."""

    server: OrsServer
    environment: str
    split: str
    index: int
    spec: str
    """The digest of the specification."""
    rewards: str = DEFAULT
    """How many rewards become one."""
    image: str = "python:3.12-slim"
    """The agent's box: the tools act on the server, not in it."""
    network: str = "none"
    """Of the box. With `public` an agent may find the server, and with it the answers."""
    secrets: tuple[str, ...] = ()
    """Names of host variables that the environment is given."""

    def __str__(self) -> str:
        return f"task {self.index} of {self.environment}/{self.split} at {self.server}"

    @property
    def name(self) -> str:
        plain = re.sub(r"[^\w.-]+", "-", f"{self.environment}-{self.split}").strip("-.")
        return f"{plain}-{self.index:04d}"


def digest(spec: Any) -> str:
    return hashlib.sha256(json.dumps(spec, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def fetch_tasks(request: SourceRequest) -> Fetched:
    """The tasks as the server lists them now; with a ref, those that had this digest."""
    sha = request.ref
    if sha and not re.fullmatch("[0-9a-f]{64}", sha):
        raise ConfigurationError(f"'{sha}' is no version of an ORS environment.", remedy="Results say `resolved_sha`.")
    if sha is None or not (request.cache_dir / sha).is_dir():
        server, options = read_address(request.uri)
        places = asyncio.run(_list(_base(server, options), options))
        sha = digest([asdict(place) for place in places])
        if request.ref not in (None, sha):
            raise ConfigurationError(f"the tasks of {server} are not those of {request.ref} any more.")
        if not (request.cache_dir / sha).is_dir():
            _write(places, request.cache_dir / sha)
    stamp = {"type": "ors", "uri": request.uri, "requested_ref": request.ref, "path": request.path}
    return Fetched(request.cache_dir / sha, {**stamp, "resolved_sha": sha})


def _base(server: OrsServer, options: Mapping[str, str]) -> TaskAddress:
    """What is the same for all tasks, checked before anybody is asked."""
    known = {"environment": None, "split": None, "image": None, "secrets": None, **_CHOICES}
    for name, value in options.items():
        choice = known.get(name)
        if name not in (*known, "limit") or (choice and value not in choice) or not value:
            said = f"Known: {', '.join(choice or sorted((*known, 'limit')))}."
            raise ConfigurationError(f"an ORS environment cannot be asked for '{name}={value}'.", remedy=said)
    if not re.fullmatch("[1-9][0-9]{0,8}", options.get("limit", "1")):
        raise ConfigurationError(f"'limit={options['limit']}' is no number of tasks.")
    chosen = {name: options[name] for name in ("rewards", "image", "network") if name in options}
    secrets = tuple(name for name in options.get("secrets", "").split(",") if name)
    return TaskAddress(server, "", "", 0, "", secrets=secrets, **chosen)


async def _list(base: TaskAddress, options: Mapping[str, str]) -> list[TaskAddress]:
    server, limit = base.server, int(options["limit"]) if "limit" in options else None
    async with connected(server, patience=_PATIENCE) as wire:
        names = _names(await wire.ask("GET", "/list_environments"), server)
        environment = _one("environment", names, names, options, server)
        splits = await wire.ask("GET", f"/{environment}/splits")
        tests = [s["name"] for s in splits if isinstance(s, dict) and s.get("type") == "test"]
        split = _one("split", _names(splits, server), tests or _names(splits, server), options, server)
        specs = await _specs(wire, environment, split, limit)
    if not specs:
        raise ConfigurationError(f"{environment}/{split} at {server} has no tasks.")
    found = replace(base, environment=environment, split=split)
    return [replace(found, index=index, spec=digest(spec)) for index, spec in enumerate(specs)]


async def _specs(wire: OrsClient, environment: str, split: str, limit: int | None) -> list[Any]:
    """All at once; in pieces where only some are wanted, or the environment knows its tasks by number only."""
    asked = {"split": split}
    if limit is None:
        try:
            return await wire.field(list, "tasks", f"/{environment}/tasks", asked)
        except TaskError as error:
            if error.details.get("status") != 400:
                raise
    count = await wire.field(int, "num_tasks", f"/{environment}/num_tasks", asked)
    wanted, found = min(count, limit or count), list[Any]()
    if wanted > _MOST:
        raise ConfigurationError(f"{environment}/{split} has {count} tasks.", remedy="Say how many: ?limit=100.")
    while len(found) < wanted:
        part = {**asked, "start": len(found), "stop": min(len(found) + _PIECE, wanted)}
        piece = await wire.field(list, "tasks", f"/{environment}/task_range", part)
        if not piece:
            raise TaskError(f"{environment}/{split} says it has {count} tasks, and gives {len(found)}.")
        found += piece
    return found


def _names(found: Any, server: OrsServer) -> list[str]:
    """Of a list of names, or of things that have one."""
    names = [item.get("name") if isinstance(item, dict) else item for item in found] if isinstance(found, list) else []
    if not names or not all(isinstance(name, str) and re.fullmatch(r"[^/\\?#\s]+", name) for name in names):
        raise TaskError(f"{server} names no environments or splits that can be read: {found!r:.120}.")
    return [str(name) for name in names]


def _one(what: str, names: list[str], choice: list[str], options: Mapping[str, str], server: OrsServer) -> str:
    """The one that is named, or the only one to choose."""
    wanted = options.get(what)
    if wanted is None and len(choice) == 1:
        return choice[0]
    if wanted not in names:
        said = f"{server} has no {what} '{wanted}'" if wanted else f"{server} has more than one {what}"
        raise ConfigurationError(f"{said}.", remedy=f"Name one with ?{what}=…: {', '.join(names[:20])}.")
    return wanted


def _write(places: Sequence[TaskAddress], root: Path) -> None:
    root.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=".new-", dir=root.parent))
    try:
        for place in places:
            (staged / place.name).mkdir()
            (staged / place.name / FILE).write_text(json.dumps(asdict(place), indent=2) + "\n", "utf-8")
        staged.chmod(0o755)
        staged.rename(root)
    except OSError:
        if not root.is_dir():  # else another process made the same just now
            raise
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def read_place(path: Path) -> TaskAddress:
    file = path / FILE
    try:
        if not file.resolve().is_relative_to(path.resolve()):
            raise ValueError("it leads out of the task")
        data = json.loads(file.read_text("utf-8"))
        place = TaskAddress(**{**data, "server": OrsServer(**data["server"]), "secrets": tuple(data["secrets"])})
        texts = (place.environment, place.split, place.spec, place.image, place.server.base, *place.secrets)
        if not all(isinstance(text, str) for text in texts) or type(place.index) is not int:
            raise ValueError("a field has the wrong type")
        if place.rewards not in _CHOICES["rewards"] or place.network not in _CHOICES["network"]:
            raise ValueError("`rewards` or `network` is none that is known")
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TaskError(f"{file} is no task of an ORS environment: {said}.", details={"file": str(file)}) from None
    return place


def load_task(path: Path) -> Task:
    """Asks nobody: the prompt and the tools come from the server when a rollout starts."""
    place = read_place(path)
    return Task(
        name=path.resolve().name,
        path=path,
        format="ors",
        instruction=f"The environment gives the prompt when its session starts ({place}).",
        dialect=OrsRewards(),
        environment=TaskEnvironment(
            image=place.image,
            workdir="/app",
            network=NetworkPolicy(mode="public" if place.network == "public" else "none"),
            mcp_servers=(McpServer("environment", "http", url=f"http://127.0.0.1:{PORT}/mcp"),),
            allow_substitute=place.image == TaskAddress.image,
        ),
        verifier=VerifierSettings(method="ors", params={"rewards": place.rewards}),
        drive={"loop": "ors"},
        description=f"{place}.".capitalize(),
    )
