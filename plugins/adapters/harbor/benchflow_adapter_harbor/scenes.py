"""Roles, scenes and a simulated user, as a `task.md` declares them: the task's own drive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Annotated, Any

from benchflow_adapter_harbor.prompts import Prompts
from benchflow_adapter_harbor.readers import any_table, filled_text, limit, list_of, optional, reader_of, text_table
from benchflow_adapter_harbor.report import Report, Where, dotted
from benchflow_core.contracts.quick import dataclass

_APPEND = ("base", "role", "scene", "turn")
_REPLACE = ("turn", "scene", "role", "base")


def _env(value: Any, where: Where, report: Report) -> Any:
    """Read variables; numbers and such are taken as they are written."""
    if not isinstance(value, Mapping):
        return text_table(value, where, report)
    return {str(key): str(item) for key, item in value.items()}


_Limit = Annotated[float | None, optional(limit)]


@dataclass(frozen=True, slots=True)
class RoleTable:
    agent: Annotated[str, filled_text]
    model: str | None = None
    reasoning_effort: str | None = None
    env: Annotated[Mapping[str, str], optional(_env)] = field(default_factory=dict)
    timeout_sec: _Limit = None
    idle_timeout_sec: _Limit = None
    skills_dir: str | None = None
    capabilities: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TurnTable:
    role: Annotated[str, filled_text]
    prompt: str | None = None
    short = "role"


@dataclass(frozen=True, slots=True)
class SceneTable:
    name: Annotated[str | None, optional(filled_text)] = None
    roles: tuple[str, ...] | None = None
    turns: tuple[TurnTable, ...] | None = None
    skills_dir: str | None = None


_role, _scene = reader_of(RoleTable), reader_of(SceneTable)


def read_drive(
    data: Mapping[str, Any], block: Mapping[str, Any], prompts: Prompts, report: Report
) -> dict[str, Any] | None:
    """Scenes with their prompts composed, and the simulated user; `None` when the document asks for neither.

    A turn without a prompt gets the task's instruction.
    """
    # BenchFlow takes whatever keys stand here, so an unknown one is only mentioned.
    report = Report(report.file, report.line_of, strict=False, problems=report.problems, notices=report.notices)
    roles = _read_roles(data.get("agents"), report)
    scenes = list_of(_scene)(data.get("scenes") or [], ("scenes",), report)
    order, append = _composition(block.get("prompt"), report)
    drive: dict[str, Any] = {}
    if isinstance(scenes, tuple) and scenes:
        drive["scenes"] = [_compose(scene, i, roles, prompts, order, append, report) for i, scene in enumerate(scenes)]
    user = _read_user(data.get("user"), block, prompts, report)
    if user:
        drive["user"] = user
    return drive or None


def _read_roles(agents: Any, report: Report) -> dict[str, RoleTable]:
    if agents is None:
        return {}
    if not isinstance(agents, Mapping) or not isinstance(agents.get("roles", {}), Mapping):
        report.problem(("agents",), "agents must hold a table 'roles'")
        return {}
    for key in agents:
        if key != "roles":
            report.unknown(("agents", str(key)), ["roles"])
    found = {str(n): _role(r, ("agents", "roles", str(n)), report) for n, r in (agents.get("roles") or {}).items()}
    return {name: role for name, role in found.items() if isinstance(role, RoleTable)}


def _compose(
    scene: SceneTable,
    i: int,
    roles: dict[str, RoleTable],
    prompts: Prompts,
    order: tuple[str, ...],
    append: bool,
    report: Report,
) -> dict[str, Any]:
    name = scene.name or f"scene-{i}"
    named = dict.fromkeys(turn.role for turn in scene.turns or ()) or roles
    members = list(scene.roles) if scene.roles is not None else list(named)
    for role in members:
        if role not in roles:
            report.problem(("scenes", i), f"scene '{name}' names the role '{role}', which agents.roles does not have")
    turns = scene.turns or tuple(TurnTable(role) for role in members)
    for j, turn in enumerate(turns):
        if turn.role not in members:
            report.problem(
                ("scenes", i, "turns", j), f"turn {j + 1} is for role '{turn.role}', which is not in scene '{name}'"
            )
    return {
        "name": name,
        "roles": [{"name": role, **asdict(roles[role])} for role in members if role in roles],
        "turns": [{"role": t.role, "prompt": _prompt(t, name, prompts, order, append)} for t in turns],
        "skills_dir": scene.skills_dir,
    }


def _prompt(turn: TurnTable, scene: str, prompts: Prompts, order: tuple[str, ...], append: bool) -> str | None:
    """The first that is there in replace order, or all of them joined."""
    parts = {
        "base": prompts.base,
        "role": prompts.roles.get(turn.role),
        "scene": prompts.scenes.get(scene),
        "turn": turn.prompt,
    }
    there = [text.strip() for part in order if (text := parts[part]) and text.strip()]
    composed = "\n\n".join(there if append else there[:1])
    return None if composed == prompts.base.strip() else composed


def _composition(policy: Any, report: Report) -> tuple[tuple[str, ...], bool]:
    where: Where = ("benchflow", "prompt")
    if policy is None:
        return _REPLACE, False
    if not isinstance(policy, Mapping) or policy.get("composition", "replace") not in ("append", "replace"):
        report.problem(where, f"{dotted(where)}.composition must be append or replace")
        return _REPLACE, False
    append = policy.get("composition") == "append"
    order = policy.get("order", list(_APPEND if append else _REPLACE))
    if not isinstance(order, list) or not order or not all(part in _APPEND for part in order):
        report.problem((*where, "order"), f"{dotted(where)}.order must list some of {', '.join(_APPEND)}")
        return _REPLACE, append
    return tuple(order), append


def _read_user(user: Any, block: Mapping[str, Any], prompts: Prompts, report: Report) -> dict[str, Any]:
    """As written: the driver that plays the user decides what it can do with it."""
    found = any_table(user, ("user",), report) if user is not None else {}
    described = dict(found) if isinstance(found, Mapping) else {}
    if prompts.persona is not None:
        described["persona"] = prompts.persona
    for key in ("nudges", "teams"):
        if key in block:
            described[key] = block[key]
    return described
