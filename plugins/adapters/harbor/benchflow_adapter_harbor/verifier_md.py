"""`verifier.md`: the strategies a task can be judged by, and the one that is chosen."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from benchflow_adapter_harbor.files import read_text
from benchflow_adapter_harbor.frontmatter import split_document
from benchflow_adapter_harbor.options import plain
from benchflow_adapter_harbor.report import Report, Where, dotted
from benchflow_core.contracts.quick import dataclass

_ROLE = re.compile(r"^##[ \t]+role:([A-Za-z0-9_.-]+)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_SUFFIXES = {".js", ".mjs", ".py", ".rb", ".sh", ".ts"}
_REQUIRED = {
    "script": ("command",),
    "reward-kit": ("root",),
    "llm-judge": ("rubric",),
    "agent-judge": ("role", "isolation", "inputs"),
    "ors-episode": ("inputs",),
}
_RELATIVE = ("root", "criteria", "entrypoint", "context_file")
_OUTPUTS = {"reward_text": "/logs/verifier/reward.txt", "reward_json": "/logs/verifier/reward.json"}


@dataclass(frozen=True)
class Strategy:
    """The chosen way to verify."""

    method: str
    params: dict[str, Any]
    script: str | None
    """The file that must be there, below the verifier folder."""
    policy: dict[str, Any]
    """How metrics become a score."""
    notices: tuple[str, ...]


def read_strategy(folder: Path, root: Path) -> Strategy | None:
    """From `verifier.md` in the folder; `None` without one."""
    file = folder / "verifier.md"
    if not file.is_file():
        return None
    document = split_document(read_text(file, root), file)
    report = Report(file, document.line_of, strict=True)
    verifier = document.data.get("verifier")
    strategies = verifier.get("strategies") if isinstance(verifier, Mapping) else None
    if not isinstance(verifier, Mapping) or not isinstance(strategies, Mapping) or not strategies:
        report.problem(("verifier",), "verifier.strategies must name at least one strategy", code="missing-key")
        report.raise_first()
        return None
    prompts = _role_prompts(document.body)
    for name, config in strategies.items():
        _check(config, ("verifier", "strategies", str(name)), prompts, report)
    name = verifier.get("default_strategy", next(iter(strategies)))
    if name not in strategies:
        known = ", ".join(map(str, strategies))
        report.problem(
            ("verifier", "default_strategy"), f"there is no strategy {name!r}", remedy=f"There are: {known}."
        )
    policy = _policy(verifier.get("outputs"), report)
    report.raise_first()
    return _chosen(str(name), strategies[name], verifier, prompts, policy, report)


def _chosen(
    name: str,
    config: Mapping[str, Any],
    verifier: Mapping[str, Any],
    prompts: dict[str, str],
    policy: dict[str, Any],
    report: Report,
) -> Strategy:
    kind = config["type"]
    if kind == "script":
        method, params, script = "test-script", *_command(config["command"])
    else:
        settings = {key: plain(value) for key, value in config.items() if key != "type"}
        method, params, script = kind, {**settings, "strategy": name}, None
        if verifier.get("rubric") is not None:
            params["rubric_document"] = plain(verifier["rubric"])
        if prompts:
            params["role_prompts"] = prompts
    return Strategy(method, params, script, policy, tuple(report.notices))


def _command(command: str) -> tuple[dict[str, Any], str | None]:
    """One file alone is the script itself; anything longer is run by a shell in the verifier folder."""
    tokens = shlex.split(command)
    local = next((t for t in tokens if _is_local_file(t)), None)
    script = None if local is None else PurePosixPath(local).as_posix()
    return ({}, script) if script and len(tokens) == 1 else ({"command": command}, script)


def _is_local_file(token: str) -> bool:
    path = PurePosixPath(token)
    if token.startswith("-") or "://" in token or path.is_absolute() or any(c.isspace() for c in token):
        return False
    return "/" in token or path.suffix in _SUFFIXES


def _role_prompts(body: str) -> dict[str, str]:
    marks = list(_ROLE.finditer(body))
    ends = [mark.start() for mark in marks[1:]] + [len(body)]
    return {mark[1]: body[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=False)}


def _check(config: Any, where: Where, prompts: dict[str, str], report: Report) -> None:
    kind = config.get("type") if isinstance(config, Mapping) else None
    if not isinstance(config, Mapping) or not isinstance(kind, str) or kind not in _REQUIRED:
        report.problem((*where, "type"), f"{dotted(where)}.type must be one of {', '.join(_REQUIRED)}, got {kind!r}")
        return
    for key in _REQUIRED[kind]:
        value = config.get(key)
        many = key == "inputs"
        good = (
            isinstance(value, list) and value and all(isinstance(v, str) and v for v in value)
            if many
            else isinstance(value, str)
        )
        if not value or not good:
            report.problem(
                (*where, key), f"{dotted(where)}.{key} must be {'a list of paths' if many else 'text'} for {kind}"
            )
    for key in _RELATIVE:
        value = config.get(key)
        if value is not None and (not isinstance(value, str) or not _stays_inside(value)):
            report.problem((*where, key), f"{dotted(where)}.{key} must be a path inside the verifier folder")
    _check_kind(kind, config, where, prompts, report)


def _check_kind(kind: str, config: Mapping[str, Any], where: Where, prompts: dict[str, str], report: Report) -> None:
    if kind == "script" and isinstance(config.get("command"), str):
        _check_command(config["command"], (*where, "command"), report)
    elif kind == "llm-judge" and "context" in config and "context_file" in config:
        report.problem(where, f"{dotted(where)} has both context and context_file", remedy="Keep one.")
    elif kind == "agent-judge":
        if isinstance(config.get("role"), str) and config["role"] not in prompts:
            report.problem((*where, "role"), f"there is no section '## role:{config['role']}' for {dotted(where)}")
        if config.get("isolation") not in (None, "verifier-only"):
            report.problem((*where, "isolation"), f"{dotted(where)}.isolation must be verifier-only")
    elif kind == "ors-episode" and config.get("format", "auto") not in ("json", "jsonl", "auto"):
        report.problem((*where, "format"), f"{dotted(where)}.format must be json, jsonl or auto")


def _check_command(command: str, where: Where, report: Report) -> None:
    try:
        first = shlex.split(command)[0]
    except (ValueError, IndexError):
        report.problem(where, f"{dotted(where)} is not a command a shell understands: {command!r}")
        return
    if first.startswith("/") or ("/" in first and not _stays_inside(first)):
        report.problem(where, f"{dotted(where)} must start with a program, or a path inside the verifier folder")


def _stays_inside(value: str) -> bool:
    path = PurePosixPath(value)
    return not path.is_absolute() and ".." not in path.parts


def _policy(outputs: Any, report: Report) -> dict[str, Any]:
    if outputs is None:
        return {}
    where: Where = ("verifier", "outputs")
    policy = outputs.get("aggregate_policy") if isinstance(outputs, Mapping) else outputs
    if not isinstance(outputs, Mapping) or not isinstance(policy or {}, Mapping):
        report.problem(where, "verifier.outputs and its aggregate_policy must be tables")
        return {}
    for key, usual in _OUTPUTS.items():
        if outputs.get(key, usual) != usual:
            report.notice((*where, key), f"{dotted((*where, key))} is not used: rewards are read from {usual}")
    found: dict[str, Any] = plain(policy or {})
    return found
