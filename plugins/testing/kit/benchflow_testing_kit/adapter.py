"""Adapters: reading a task format, purely, and with nothing but `TaskError` for what is wrong with it."""

from __future__ import annotations

import dataclasses
import math
import os
import random
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchflow_core.contracts import AdapterSpec, Finding, RewardDialect, RewardFiles, ScaffoldRequest, Task
from benchflow_core.errors import RewardInvalid, RewardMissing, TaskError, VerifierError
from benchflow_testing_kit.audit import effects
from benchflow_testing_kit.host import tree_digest
from benchflow_testing_kit.plugin import PluginConformance

__all__ = ["AdapterConformance"]

_MUTATIONS = (
    b"",
    b"\x00" * 64,
    b"\xff\xfe\x80 not text",
    b"[[[[[[[[[[",
    b"{" * 2000,
    b"a: [b\n- c: }\n",
    b"= = =\n[x\n",
)
_REWARDS = (
    b"",
    b"not a number",
    b"\xff\xfe",
    b"{",
    b"[]",
    b"null",
    b'{"reward": "high"}',
    b"1e999",
    b"nan",
    b'{"reward": null}',
)


class AdapterConformance(PluginConformance):
    """Fixtures: `plugin`, `good_tasks` (folders of the format), and `bad_tasks` (broken ones, may be empty)."""

    kind: ClassVar[str] = "adapter"
    settings: ClassVar[frozenset[str]] = PluginConformance.settings | {"good_tasks", "bad_tasks"}

    @pytest.fixture
    def good_tasks(self) -> Sequence[Path]:
        pytest.fail(f"{type(self).__name__} needs a fixture `good_tasks`: sample task folders, small ones.")

    @pytest.fixture
    def bad_tasks(self) -> Sequence[Path]:
        return ()

    @pytest.fixture
    def copies(self, good_tasks: Sequence[Path], tmp_path: Path) -> list[Path]:
        """Tasks that a test may spoil. Their folder is one level down: what lies beside is outside the task."""
        assert good_tasks, "the fixture `good_tasks` gave none"
        return [
            Path(shutil.copytree(task, tmp_path / str(n) / task.name, symlinks=True))
            for n, task in enumerate(good_tasks)
        ]

    def test_detects_its_own_format_and_no_other(self, spec: AdapterSpec, copies: list[Path], tmp_path: Path) -> None:
        others = {"empty": {}, "python": {"setup.py": b"x = 1"}, "noise": {"a": b"\xff\x00", "b/c.toml": b"= ="}}
        for name, files in others.items():
            (tmp_path / "others" / name).mkdir(parents=True)
            for relative, content in files.items():
                path = tmp_path / "others" / name / relative
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
        (tmp_path / "others" / "file").write_text("no folder")
        for task in copies:
            assert spec.detect(task) is True, f"{task.name} is not detected"
        for name in (*others, "file", "missing"):
            assert spec.detect(tmp_path / "others" / name) is False, f"{name} is taken for a task"

    def test_loading_is_pure(self, spec: AdapterSpec, copies: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
        for task in copies:
            spec.load(task)  # imports whatever it needs
            before, variables = tree_digest(task.parent), dict(os.environ)
            with effects() as found:
                spec.detect(task)
                spec.load(task)
            assert not found, f"loading {task.name} does more than read: {found}"
            assert tree_digest(task.parent) == before and dict(os.environ) == variables

    def test_loading_gives_the_same_every_time(self, spec: AdapterSpec, copies: list[Path]) -> None:
        for task in copies:
            first, second = spec.load(task), spec.load(task)
            assert _comparable(first) == _comparable(second)
            assert type(first.dialect) is type(second.dialect)

    def test_task_is_complete(self, spec: AdapterSpec, copies: list[Path]) -> None:
        for folder in copies:
            task = spec.load(folder)
            assert isinstance(task, Task) and task.name.strip() and task.format.strip()
            assert task.instruction.strip() or (all(step.instruction.strip() for step in task.steps) and task.steps)
            assert task.path.samefile(folder)

    def test_paths_stay_inside_the_task(self, spec: AdapterSpec, copies: list[Path]) -> None:
        for folder in copies:
            for where, path in _paths(spec.load(folder)):
                assert path.exists(), f"{where} does not exist: {path}"
                assert path.resolve().is_relative_to(folder.resolve()), f"{where} is outside the task: {path}"

    def test_host_variables_are_not_read(
        self, spec: AdapterSpec, copies: list[Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`${NAME}` stays as it is written: it is resolved at launch, and only if the user allowed it."""
        names = {"HOME", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
        for file in (f for task in copies for f in _files(task)):
            names |= set(re.findall(r"\$\{(\w+)", file.read_text(errors="replace")))
        for name in names - {"HOME"}:
            monkeypatch.setenv(name, "kit-canary-value")
        for task in copies:
            assert "kit-canary-value" not in repr(spec.load(task))

    def test_broken_tasks_are_refused_with_the_file_named(self, spec: AdapterSpec, bad_tasks: Sequence[Path]) -> None:
        if not bad_tasks:
            pytest.skip("no fixture `bad_tasks`")
        for folder in bad_tasks:
            with pytest.raises(TaskError) as caught:
                spec.load(folder)
            names = {path.name for path in folder.rglob("*")} | {spec.signature}
            assert any(name in str(caught.value) for name in names), f"no file is named: {caught.value}"

    def test_spoilt_files_give_nothing_but_task_errors(self, spec: AdapterSpec, copies: list[Path]) -> None:
        noise = random.Random(1)
        for folder in copies:
            for file in _files(folder):
                good = file.read_bytes()
                spoilt = (*_MUTATIONS, noise.randbytes(200), good[: len(good) // 2], good + noise.randbytes(40), None)
                for content in spoilt:
                    if content is None:
                        file.unlink()
                    else:
                        file.write_bytes(content)
                    self._load_or_refuse(spec, folder, f"{file.name} = {content!r:.40}")
                file.write_bytes(good)

    @staticmethod
    def _load_or_refuse(spec: AdapterSpec, folder: Path, what: str) -> None:
        try:
            spec.detect(folder)
            spec.load(folder)
        except TaskError as error:
            assert str(error).strip()
        except Exception as error:
            pytest.fail(f"{folder.name} with {what} raises {type(error).__name__}, not TaskError: {error}")
        if spec.lint is not None:
            found = spec.lint(folder)
            assert all(isinstance(f, Finding) for f in found), f"lint with {what}"

    def test_links_out_of_the_task_are_refused(self, spec: AdapterSpec, copies: list[Path], tmp_path: Path) -> None:
        """A file that loading depends on, and every folder that the task points to, moved out and linked back."""
        refused = 0
        for folder in copies:
            original = spec.load(folder)
            used = {path for _, path in _paths(original) if path.resolve() != folder.resolve()}
            for path in sorted(used | {f for f in _files(folder) if _matters(spec, folder, f)}):
                outside = tmp_path / "outside"
                shutil.move(path, outside)
                path.symlink_to(outside)
                if not _refused(spec, folder):
                    pytest.fail(f"{path.relative_to(folder)} leads out of the task, and the task is loaded")
                refused += 1
                path.unlink()
                shutil.move(outside, path)
        assert refused, "loading depends on no file of the task"

    def test_dialect_tells_missing_from_invalid(self, spec: AdapterSpec, copies: list[Path]) -> None:
        dialect = spec.load(copies[0]).dialect
        assert dialect.name and all(name and not name.startswith("/") for name in dialect.wants)
        if not dialect.wants:  # the exit code is all it reads, or a verifier scores without it
            _scored_by_exit_code(dialect)
            return
        with pytest.raises(RewardMissing):
            dialect.parse(RewardFiles(files={}, exit_code=1))
        for name in dialect.wants:
            with pytest.raises((RewardInvalid, RewardMissing)):
                dialect.parse(RewardFiles(files={}, exit_code=0, unreadable={name: "a link"}))
            with pytest.raises(RewardInvalid) as caught:
                dialect.parse(RewardFiles(files={name: b"\xff garbage \x00"}, exit_code=0))
            assert name in str(caught.value), "the message names the file"

    def test_dialect_gives_finite_numbers_or_refuses(self, spec: AdapterSpec, copies: list[Path]) -> None:
        dialect, noise = spec.load(copies[0]).dialect, random.Random(2)
        contents = (*_REWARDS, *(noise.randbytes(n) for n in range(1, 40)), b"1", b"0.5\n", b'{"reward": 1.0}')
        for name in dialect.wants:
            for content in contents:
                try:
                    rewards = dialect.parse(RewardFiles(files={name: content}, exit_code=0))
                except VerifierError:
                    continue
                assert all(isinstance(k, str) and math.isfinite(v) for k, v in rewards.items()), (content, rewards)

    def test_dialect_combines_steps(self, spec: AdapterSpec, copies: list[Path]) -> None:
        dialect = spec.load(copies[0]).dialect
        combined = dialect.combine([{"reward": 1.0}, {"reward": 1.0}])
        assert combined["reward"] == 1.0
        assert dialect.combine([{"reward": 0.0}, {"reward": 0.0}])["reward"] == 0.0
        for steps in ([], [None], [{"reward": 1.0}, None]):
            try:
                assert all(math.isfinite(v) for v in dialect.combine(steps).values())
            except VerifierError:
                continue

    def test_new_task_of_the_format_loads(self, spec: AdapterSpec, tmp_path: Path) -> None:
        if spec.scaffold is None:
            pytest.skip("the adapter has no scaffold")
        for solution, with_pytest in ((True, True), (False, False)):
            folder = tmp_path / f"new-{solution}-{with_pytest}"
            with effects() as found:
                made = spec.scaffold(ScaffoldRequest(name=folder.name, solution=solution, pytest=with_pytest))
            assert not found, f"the scaffold writes by itself: {found}"
            for relative, text in made.files.items():
                (folder / relative).parent.mkdir(parents=True, exist_ok=True)
                (folder / relative).write_text(text)
            assert spec.detect(folder)
            assert (spec.load(folder).solution is not None) is solution


def _scored_by_exit_code(dialect: RewardDialect) -> None:
    """One that ended as it should earns no less than one that failed; or there is no number at all."""
    found: list[float | None] = []
    for code in (0, 1, -9):
        try:
            found.append(dialect.parse(RewardFiles(files={}, exit_code=code))["reward"])
        except VerifierError:
            found.append(None)
    passed, failed, killed = found
    assert passed is None or failed is None or passed > failed, f"exit codes 0 and 1 earn {passed} and {failed}"
    assert killed is None or (passed is not None and killed < passed), f"a killed verifier earns {killed}"


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _comparable(task: Task) -> dict[str, Any]:
    """Everything but the dialect, an object that need not know how to compare itself."""
    return {field.name: getattr(task, field.name) for field in dataclasses.fields(Task) if field.name != "dialect"}


def _matters(spec: AdapterSpec, folder: Path, file: Path) -> bool:
    """Whether loading looks into the file: without it there is another task, or none."""
    before, content = _comparable(spec.load(folder)), file.read_bytes()
    file.write_bytes(b"")
    try:
        return _comparable(spec.load(folder)) != before
    except TaskError:
        return True
    finally:
        file.write_bytes(content)


def _refused(spec: AdapterSpec, folder: Path) -> bool:
    try:
        spec.load(folder)
    except TaskError:
        return True
    return False


def _paths(value: Any, where: str = "task") -> Iterator[tuple[str, Path]]:
    """Every path in a task, however deep."""
    if isinstance(value, Path):
        yield where, value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _paths(getattr(value, field.name), f"{where}.{field.name}")
    elif isinstance(value, tuple | list):
        for n, item in enumerate(value):
            yield from _paths(item, f"{where}[{n}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _paths(item, f"{where}[{key!r}]")
