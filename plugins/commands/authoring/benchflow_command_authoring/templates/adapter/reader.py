"""Reads a task. Pure: nothing is written, nothing of the task is run, and what is wrong is a `TaskError`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchflow_core.contracts import RewardFiles, Rewards, Solution, Task, TaskEnvironment, VerifierSettings
from benchflow_core.errors import RewardInvalid, RewardMissing, TaskError

KNOWN = {"name", "instruction", "image", "tests", "solution"}


class Dialect:
    """`reward.txt` holds one number between 0 and 1; the mean counts over steps."""

    name = "{{name}}"
    wants: tuple[str, ...] = ("reward.txt",)

    def parse(self, found: RewardFiles) -> Rewards:
        if "reward.txt" in found.unreadable:
            raise RewardInvalid(f"reward.txt cannot be read: {found.unreadable['reward.txt']}.")
        if "reward.txt" not in found.files:
            raise RewardMissing(f"The tests ended with {found.exit_code} and left no reward.txt.")
        try:
            value = float(found.files["reward.txt"].decode())
        except ValueError as error:
            raise RewardInvalid("reward.txt does not hold a number.") from error
        if not 0.0 <= value <= 1.0:
            raise RewardInvalid(f"reward.txt holds {value:g}, which is not between 0 and 1.")
        return {"reward": value}

    def combine(self, steps: Sequence[Rewards | None]) -> Rewards:
        values = [step["reward"] if step else 0.0 for step in steps]
        return {"reward": sum(values) / len(values)} if values else {}


def read_task(folder: Path, file: Path) -> Task:
    data = _read(folder, file)
    unknown = sorted(set(data) - KNOWN)
    tests = _folder(folder, file, data.get("tests", "tests"))
    solution = _folder(folder, file, data["solution"]) if "solution" in data else None
    return Task(
        name=_text(data, "name", file),
        path=folder,
        format="{{name}}",
        instruction=_text(data, "instruction", file),
        dialect=Dialect(),
        environment=TaskEnvironment(image=_text(data, "image", file), workdir="/app"),
        verifier=VerifierSettings(tests=(tests,)),
        solution=Solution(dir=solution) if solution else None,
        notices=tuple(f"{file}: unknown key {key!r}" for key in unknown),
    )


def _read(folder: Path, file: Path) -> dict[str, Any]:
    _inside(folder, file)
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise TaskError(f"{file} does not exist.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise TaskError(f"{file} cannot be read as JSON: {error}.") from error
    if not isinstance(data, dict):
        raise TaskError(f"{file} holds {type(data).__name__}, not an object.")
    return data


def _text(data: dict[str, Any], key: str, file: Path) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value.strip():
        raise TaskError(f"{file}: {key!r} is missing or no text.", remedy=f'Add "{key}": "…".')
    return value


def _folder(folder: Path, file: Path, name: Any) -> Path:
    path = folder / name if isinstance(name, str) and name else folder
    _inside(folder, path)
    if path == folder or not path.is_dir():
        raise TaskError(f"{file}: {name!r} is not a folder of the task.")
    return path


def _inside(folder: Path, path: Path) -> None:
    """A link, or `..`, must not lead out of the task."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise TaskError(f"{path} leads out of the task folder.", remedy="Copy it into the task.")
