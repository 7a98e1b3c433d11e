"""One task of an environment, as the native task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from benchflow_adapter_verifiers.plugin import FILE
from benchflow_core.contracts import (
    McpServer,
    NetworkPolicy,
    Resources,
    RewardFiles,
    Rewards,
    Task,
    TaskEnvironment,
    VerifierSettings,
)
from benchflow_core.errors import RewardMissing, TaskError

__all__ = ["PORT", "load_task"]

PORT: Final = 8450
"""Of the box's loopback: where the environment's tools are."""
_IMAGE: Final = "python:3.12-slim"
_SETUP: Final = 600.0
_SCORING: Final = 900.0


class GivenRewards:
    """The environment's own process gives the reward; no file in a box does."""

    name = "verifiers"
    wants: tuple[str, ...] = ()

    def parse(self, found: RewardFiles) -> Rewards:
        raise RewardMissing("the environment gives the reward, not a file")

    def combine(self, steps: Sequence[Rewards | None]) -> Rewards:
        return {"reward": fmean((step or {}).get("reward", 0.0) for step in steps) if steps else 0.0}


def load_task(path: Path) -> Task:
    file = path / FILE
    if not file.resolve().is_relative_to(path.resolve()):
        raise TaskError(f"{file} leads out of the task.", details={"file": str(file)})
    try:
        data = json.loads(file.read_text("utf-8"))
        return _task(path, data, data["task"])
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise TaskError(
            f"{file} is no task of a Verifiers environment: {type(error).__name__}: {error}.",
            details={"file": str(file)},
        ) from error


def _task(path: Path, data: Mapping[str, Any], task: Mapping[str, Any]) -> Task:
    times = task.get("timeout") or {}
    if task.get("skills"):
        raise ValueError("it brings skills for its own harness, which is not supported")
    agent = times.get("agent")
    own = str(data["spec"]["id"])
    return Task(
        name=path.resolve().name,
        path=path,
        format="verifiers",
        instruction=str(task["instruction"]) or "(The environment opens the conversation.)",
        dialect=GivenRewards(),
        environment=TaskEnvironment(
            image=task.get("image") or _IMAGE,
            allow_substitute=not (task.get("image") or task.get("needs_container")),
            workdir=task.get("workdir") or "/app",
            resources=_resources(task.get("resources") or {}),
            network=_network(task.get("allow") or [], task.get("block") or [], "allow" in task),
            mcp_servers=tuple(
                McpServer(name or own, "http", url=f"http://127.0.0.1:{PORT}/{name}") for name in data["tools"]
            ),
        ),
        verifier=VerifierSettings(
            method="primeintellect", timeout=(times.get("finalize") or _SCORING) + (times.get("scoring") or _SCORING)
        ),
        # Theirs comes first and is exact; ours is there in case their process hangs.
        agent_timeout=None if agent is None else agent + (times.get("setup") or _SETUP),
        agent_user=task.get("user"),
        drive={"loop": "primeintellect"},
        metadata={"data": task["data"], "spec": data["spec"], "seats": data["seats"], "verifiers": data["version"]},
        version=data["version"],
        description=str(task.get("description") or ""),
    )


def _resources(asked: Mapping[str, Any]) -> Resources:
    kind, _, count = str(asked.get("gpu") or "").partition(":")
    number = int(kind or 0) if kind.isdecimal() or not kind else int(count or 1)
    return Resources(
        cpus=asked.get("cpu"),
        memory_mb=_megabytes(asked.get("memory")),
        storage_mb=_megabytes(asked.get("disk")),
        gpus=number,
        gpu_types=() if kind.isdecimal() or not kind else (kind,),
    )


def _megabytes(gigabytes: float | None) -> int | None:
    return None if gigabytes is None else int(gigabytes * 1024)


def _network(allow: Sequence[str], block: Sequence[str], said: bool) -> NetworkPolicy:
    if block:
        raise ValueError(f"it blocks {', '.join(block)} and allows the rest, which no sandbox can enforce")
    if not said or "*" in allow:
        return NetworkPolicy()
    return NetworkPolicy("allowlist", tuple(allow)) if allow else NetworkPolicy("none")
