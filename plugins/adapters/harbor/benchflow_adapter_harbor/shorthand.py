"""Short forms of `task.md` frontmatter, written out: `name`, `image`, paths for `verifier` and `oracle`, profiles."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import PurePosixPath
from typing import Any

from benchflow_adapter_harbor.report import Report

_ROLE = {"agent": "codex-acp", "model": "gpt-5.5", "reasoning_effort": "xhigh", "capabilities": ["code-edit", "tests"]}
_REVIEWER = {"agent": "claude-agent-acp", "model": "claude-sonnet-4-6", "capabilities": ["review"]}

PROFILES: Mapping[str, Mapping[str, Any]] = {
    "code-change": {
        "schema_version": "1.3",
        "metadata": {"category": "code-change"},
        "agent": {"timeout_sec": 7200, "network_mode": "no-network"},
        "verifier": {"timeout_sec": 1200, "user": "root"},
        "sandbox": {
            "docker_image": "ubuntu:24.04",
            "network_mode": "no-network",
            "cpus": 4,
            "memory_mb": 8192,
            "storage_mb": 10240,
            "workdir": "/repo",
        },
        "benchflow": {"prompt": {"composition": "append", "order": ["base", "role", "scene", "turn"]}},
    },
    "harbor-compatible": {
        "schema_version": "1.3",
        "metadata": {"category": "harbor-compatible"},
        "sandbox": {"cpus": 1, "memory_mb": 2048},
    },
    "reward-kit": {"benchflow": {"verifier": {"spec": "verifier/verifier.md"}}},
    "multi-agent": {
        "agents": {"roles": {"architect": _ROLE, "implementer": _ROLE, "reviewer": _REVIEWER}},
        "scenes": [
            {"name": "design", "turns": [{"role": "architect"}]},
            {"name": "implement", "turns": [{"role": "implementer"}]},
            {"name": "review", "turns": [{"role": "reviewer"}]},
        ],
    },
    "acceptance-live": {},
    "leaderboard-local": {},
}
"""Defaults a document asks for by name. The last two only describe how BenchFlow's own acceptance runs are filed."""


def expand(data: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """The frontmatter without its short forms. What is written out wins over every short form and profile."""
    raw = dict(data)
    expanded: dict[str, Any] = {}
    for name in _profiles(raw, report):
        expanded = merge(expanded, PROFILES[name])
    name, image = raw.pop("name", None), raw.pop("image", None)
    folders = {key: raw.pop(key) for key in ("verifier", "oracle") if isinstance(raw.get(key), str)}
    expanded = merge(expanded, raw)
    _set(expanded, ("task", "name"), _task_name(name, report), given=raw)
    box = "environment" if "environment" in raw else "sandbox"
    _set(expanded, (box, "docker_image"), _text(image, "image", report), given=raw)
    for key, folder in folders.items():
        _set(expanded, ("benchflow", key, "path"), _folder(folder, key, report), given=raw)
    return expanded


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = deepcopy(dict(base))
    for key, value in over.items():
        both = isinstance(merged.get(key), Mapping) and isinstance(value, Mapping)
        merged[key] = merge(merged[key], value) if both else deepcopy(value)
    return merged


def _profiles(raw: dict[str, Any], report: Report) -> list[str]:
    names: list[str] = []
    for key in ("profile", "profiles"):
        value = raw.pop(key, None)
        for name in value if isinstance(value, list) else [value] if value is not None else []:
            if isinstance(name, str) and name.strip() in PROFILES:
                names.append(name.strip())
            else:
                report.problem((key,), f"unknown profile {name!r}", remedy=f"Known: {', '.join(sorted(PROFILES))}.")
    return list(dict.fromkeys(names))


def _task_name(value: Any, report: Report) -> str | None:
    name = _text(value, "name", report)
    return name if name is None or "/" in name else f"benchflow/{name}"


def _text(value: Any, key: str, report: Report) -> str | None:
    if value is None or (isinstance(value, str) and value.strip()):
        return value.strip() if value else None
    report.problem((key,), f"{key} must be text that is not empty, got {value!r}")
    return None


def _folder(value: str, key: str, report: Report) -> str | None:
    path = PurePosixPath(value.strip())
    if value.strip() and not path.is_absolute() and ".." not in path.parts:
        return path.as_posix()
    report.problem((key,), f"{key} must be a table or a folder of the task, got {value!r}")
    return None


def _set(data: dict[str, Any], place: tuple[str, ...], value: str | None, *, given: Mapping[str, Any]) -> None:
    """Fill in a value, unless the author wrote it in full."""
    if value is None:
        return
    written: Any = given
    for key in place:
        written = written.get(key) if isinstance(written, Mapping) else None
    if written is not None:
        return
    for key in place[:-1]:
        if not isinstance(data.setdefault(key, {}), dict):
            return
        data = data[key]
    data[place[-1]] = value
