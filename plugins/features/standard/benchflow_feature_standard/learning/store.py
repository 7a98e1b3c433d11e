"""What rollouts learn from each other: a versioned store of memory and skills.

A folder holds `learner_store.json`, the index, and `generations/<n>/{memory,skills}`, what each generation knows.
A generation is complete before the index names it, and the index is replaced in one step: however a process ends, the
store is what it was before an offer or what it is after it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final, Literal

from benchflow_core.errors import ConfigurationError
from benchflow_feature_standard.files import cannot_write, replace_file

__all__ = ["LEARNER_FILE", "Generation", "LearnerStore", "Step", "StepVerdict"]

LEARNER_FILE: Final = "learner_store.json"
STORE_VERSION: Final = 1
PARTS: Final = ("memory", "skills")
_FOLDER: Final = "generations"
_LOCK: Final = ".learner.lock"
_LONGEST: Final = 1 << 20
"""Bytes of a file that a diff shows."""

StepVerdict = Literal["stamped", "unchanged", "reverted", "unscored", "restored"]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True)
class Generation:
    """One state of what is known."""

    number: int
    digest: str
    reward: float | None = None
    """Of the rollout that made it; the bar for those after it. The empty beginning has none."""
    parent: int | None = None
    rollout: str | None = None
    task: str | None = None
    at: str = field(default_factory=_now)


@dataclass(frozen=True)
class Step:
    """One offer, or one change by hand."""

    number: int
    verdict: StepVerdict
    began: int
    """The generation it started from."""
    generation: int
    """The generation in force after it."""
    rollout: str | None = None
    task: str | None = None
    reward: float | None = None
    best: float | None = None
    """The bar after it."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """Path to `added`, `changed` or `removed`, of what was offered, whether it was taken or not."""
    at: str = field(default_factory=_now)


class LearnerStore:
    """Offer it what a rollout left: no worse than the best, that becomes a generation; else it is dropped."""

    def __init__(self, root: str | Path, generations: Sequence[Generation], steps: Sequence[Step], head: int) -> None:
        self.root = Path(root)
        self.generations, self.steps, self.head = list(generations), list(steps), head

    @classmethod
    def open(cls, root: str | Path, *, start: Path | None = None) -> LearnerStore:
        """Open the store of a folder. A new one begins with nothing, or with the `memory/` and `skills/` of `start`."""
        root = Path(root)
        if not (root / LEARNER_FILE).exists():
            store = cls(root, [], [], 0)
            with store._alone():
                if not store.generations:
                    store._stamp(start, number=0)
                    store.save()
            return store
        return cls.read(root)

    @classmethod
    def read(cls, root: str | Path) -> LearnerStore:
        """Read a store that is there."""
        root, path = Path(root), Path(root) / LEARNER_FILE
        try:
            value = json.loads(path.read_text("utf-8"))
            if value["version"] != STORE_VERSION:
                raise ConfigurationError(
                    f"{path} is of version {value['version']}, and this one reads {STORE_VERSION}."
                )
            generations = [Generation(**row) for row in value["generations"]]
            steps = [Step(**row) for row in value["steps"]]
            head = int(value["head"])
        except FileNotFoundError:
            raise ConfigurationError(
                f"{root} holds no learner store.", remedy="Run a job with job_mode: sequential-shared."
            ) from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(f"{path} cannot be read: {error!r}.") from error
        store = cls(root, generations, steps, head)
        for generation in generations:
            if not store.folder(generation.number).is_dir():
                raise ConfigurationError(f"{store.folder(generation.number)} is missing.", remedy="Restore it.")
        return store

    # --- looking -------------------------------------------------------------------------------------------

    @property
    def generation(self) -> Generation:
        """The one in force."""
        return self.generations[self.head]

    @property
    def best(self) -> float | None:
        return self.generation.reward

    @property
    def current(self) -> Path:
        """The folder of what is known now."""
        return self.folder(self.head)

    def folder(self, number: int) -> Path:
        return self.root / _FOLDER / f"{number:04d}"

    def known(self, rollout: str) -> Step | None:
        """Return the last step of a rollout, if it was offered."""
        return next((step for step in reversed(self.steps) if step.rollout == rollout), None)

    def log(self) -> list[Step]:
        return list(self.steps)

    def changes(self, base: Path | int, other: Path | int) -> dict[str, str]:
        """Return what differs between two generations, or folders."""
        before, after = self._files(base), self._files(other)
        found = {}
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                found[name] = "added" if name not in before else "removed" if name not in after else "changed"
        return found

    def diff(self, base: int, other: int) -> str:
        """Return a unified diff of two generations."""
        for number in (base, other):
            self._check(number)
        lines: list[str] = []
        for name in self.changes(base, other):
            left, right = (_lines(self.folder(n) / name) for n in (base, other))
            lines += unified_diff(left, right, f"{base}/{name}", f"{other}/{name}", lineterm="")
        return "".join(f"{line}\n" for line in lines)

    # --- changing ------------------------------------------------------------------------------------------

    def offer(self, reward: float | None, state: Path | None, *, rollout: str, task: str | None = None) -> Step:
        """Take what a rollout left, or not, by the reward it reached.

        A second offer of the same rollout changes nothing, unless the first had no score.
        """
        with self._alone():
            earlier = self.known(rollout)
            if earlier is not None and (earlier.verdict != "unscored" or reward is None):
                return earlier
            return self._take(reward, state, rollout, task)

    def _take(self, reward: float | None, state: Path | None, rollout: str, task: str | None) -> Step:
        began, best = self.head, self.best
        changes = self.changes(began, state) if state is not None else {}
        verdict: StepVerdict = "unscored" if reward is None else "unchanged"
        if reward is not None and best is not None and reward < best:
            verdict = "reverted"
        elif reward is not None and (changes or best is None or reward > best):
            self._stamp(state or self.current, reward=reward, parent=began, rollout=rollout, task=task)
            verdict = "stamped"
        return self._note(verdict, began, rollout=rollout, task=task, reward=reward, changes=changes)

    def restore(self, number: int) -> Step:
        """Go back, or forward, to a generation: later rollouts start from it, and are measured by its reward."""
        with self._alone():
            self._check(number)
            began, changes = self.head, self.changes(self.head, number)
            self.head = number
            return self._note("restored", began, changes=changes)

    def save(self) -> None:
        """Write the index."""
        value = {
            "version": STORE_VERSION,
            "head": self.head,
            "best": self.best,
            "generations": [asdict(g) for g in self.generations],
            "steps": [asdict(s) for s in self.steps],
        }
        replace_file(self.root / LEARNER_FILE, f"{json.dumps(value, indent=2, ensure_ascii=False)}\n".encode())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the store, and read what others changed before."""
        path = self.root / _LOCK
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            handle = path.open("ab")
        except OSError as error:
            raise cannot_write(path, error) from error
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if (self.root / LEARNER_FILE).exists():
                now_there = self.read(self.root)
                self.generations, self.steps, self.head = now_there.generations, now_there.steps, now_there.head
            yield

    # --- parts ---------------------------------------------------------------------------------------------

    def _note(self, verdict: StepVerdict, began: int, **more: Any) -> Step:
        step = Step(len(self.steps) + 1, verdict, began, self.head, best=self.best, **more)
        self.steps.append(step)
        self.save()
        return step

    def _stamp(self, state: Path | None, *, number: int | None = None, **more: Any) -> None:
        """Make a generation: its folder in one step, then its row. A leftover of that name was never in the index."""
        number = len(self.generations) if number is None else number
        folder = self.folder(number)
        staged = folder.with_name(f".{folder.name}.new")
        try:
            for old in (staged, folder):
                shutil.rmtree(old, ignore_errors=True)
            for part in PARTS:
                (staged / part).mkdir(parents=True)
                if state is not None:
                    for file in _regular(state / part):
                        target = staged / part / file.relative_to(state / part)
                        target.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copyfile(file, target)
                        target.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
            staged.rename(folder)
        except OSError as error:
            raise cannot_write(folder, error) from error
        digest = hashlib.sha256(repr(sorted(self._files(folder).items())).encode()).hexdigest()
        self.generations.append(Generation(number, f"sha256:{digest}", **more))
        self.head = number

    def _files(self, place: Path | int) -> dict[str, str]:
        """Return paths with the hashes of their bytes."""
        root = self.folder(place) if isinstance(place, int) else place
        found = {}
        for part in PARTS:
            for file in _regular(root / part):
                found[file.relative_to(root).as_posix()] = hashlib.sha256(file.read_bytes()).hexdigest()
        return found

    def _check(self, number: int) -> None:
        if not 0 <= number < len(self.generations):
            last = len(self.generations) - 1
            raise ConfigurationError(f"there is no generation {number}.", remedy=f"There are 0 to {last}.")


def _regular(root: Path) -> Iterator[Path]:
    """Give files, never through a link: what a box left is not trusted."""
    if root.is_symlink():
        return
    for folder, _, names in os.walk(root):  # does not enter linked folders
        for path in (Path(folder, name) for name in names):
            if path.is_file() and not path.is_symlink():
                yield path


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        return []
    data = path.read_bytes()
    return data.decode().splitlines() if _is_text(data) else [f"(binary, {len(data)} bytes)"]


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return len(data) <= _LONGEST and b"\0" not in data
