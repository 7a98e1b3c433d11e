"""The verdicts of a rollout that was scored more than once: all in `verdicts/`; `result.json` says which counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from benchflow_core import __version__
from benchflow_core.contracts.tasks import Rewards
from benchflow_core.quick import dataclass
from benchflow_core.results.clock import now
from benchflow_core.results.files import read_json, write_json
from benchflow_core.results.layout import RolloutDir
from benchflow_core.results.models import VERDICT, marked

__all__ = ["Rescored", "count", "keep", "next_number", "number_of", "use_verdicts"]

FOLDER: Final = "verdicts"
_VERSION: Final = "1.0"
_OF_A_VERDICT: Final = marked(VERDICT)


@dataclass(frozen=True)
class Rescored:
    """What became of one rollout."""

    rollout: Path
    before: Rewards | None
    after: Rewards | None
    problem: str | None = None
    """Why there is no new verdict; the earlier one stands."""
    verdict: int = 1
    """The one that counts."""

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "rollout": str(self.rollout)}


def number_of(result: Mapping[str, Any]) -> int:
    """Which verdict counts in a result."""
    return int((result.get("verdict") or {}).get("number", 1))


def next_number(folder: Path) -> int:
    found = [int(path.name.partition(".")[0]) for path in (folder / FOLDER).glob("[0-9]*")]
    return max(found, default=1) + 1


def keep(folder: Path, before: Mapping[str, Any], new: Mapping[str, Any], number: int, digest: str) -> None:
    """Write the new verdict, and the first one where that was not done yet."""
    first = folder / FOLDER / "1.json"
    if not first.exists():
        write_json(first, _verdict(before, 1, str(before.get("task_digest")), RolloutDir(folder).verifier.name))
    found = _verdict(new, number, digest, f"{FOLDER}/{number}/{RolloutDir(folder).verifier.name}")
    more = {"usage_details": new["agent_result"]["usage_details"], "notices": new["notices"]}
    write_json(folder / FOLDER / f"{number}.json", {**found, **more})


def _verdict(result: Mapping[str, Any], number: int, digest: str, output: str) -> dict[str, Any]:
    return {
        "schema_version": _VERSION,
        "number": number,
        "at": result.get("finished_at") or now(),
        "core_version": result.get("core_version") or __version__,
        "plugins": [plugin for plugin in result.get("plugins") or () if plugin["kind"] in ("verifier", "adapter")],
        "task_digest": digest,
        "output": output,
        **{key: result.get(key) for key in _OF_A_VERDICT},
    }


def count(folder: Path, number: int) -> dict[str, Any]:
    """Write `result.json` anew with the verdict that counts."""
    path = RolloutDir(folder).result
    result: dict[str, Any] = read_json(path)
    found = read_json(folder / FOLDER / f"{number}.json")
    known = sum(1 for _ in (folder / FOLDER).glob("[0-9]*.json"))
    result |= {key: found[key] for key in _OF_A_VERDICT}
    result["verdict"] = {"number": number, "of": known, "at": found["at"], "task_digest": found["task_digest"]}
    write_json(path, result)
    return result


def use_verdicts(rollouts: Iterable[Path], number: int) -> list[Rescored]:
    """Let another verdict of the rollouts count, where they have it."""
    found = []
    for rollout in rollouts:
        before = read_json(RolloutDir(rollout).result)
        if (rollout / FOLDER / f"{number}.json").is_file():
            after = count(rollout, number)
            found.append(Rescored(rollout, before.get("rewards"), after["rewards"], None, number))
        elif number > 1:
            same = before.get("rewards")
            found.append(Rescored(rollout, same, same, f"it has no verdict {number}.", number_of(before)))
    return found
