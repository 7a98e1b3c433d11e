"""Steps, verification and solutions: what runs when, with which files. Everything a step inherits is filled in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchflow_adapter_harbor import boxes
from benchflow_adapter_harbor.config import ArtifactEntry, StepTable, TaskConfig, VerifierTable
from benchflow_adapter_harbor.files import existing_dir, existing_file, inside, problem
from benchflow_adapter_harbor.options import TaskOptions
from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.tasks import (
    Artifact,
    CollectHook,
    Solution,
    Step,
    TaskEnvironment,
    VerifierSettings,
)

_DEFAULT_TIMEOUT = 600.0


@dataclass(frozen=True)
class Phases:
    """The config with the folder it lies in."""

    config: TaskConfig
    options: TaskOptions
    root: Path
    environment: TaskEnvironment
    tests: Path
    tests_target: str = "/tests"
    solution_target: str = "/solution"
    solution_name: str = "solution"
    script_known: bool = False
    """The verifier is described elsewhere: its script is not looked for here."""

    def verifier(self) -> VerifierSettings:
        """How the whole task is verified; for a task with steps only what they share."""
        return self._settings(self.config.verifier, None, None)

    def step(self, table: StepTable, read_instruction: Callable[[Path, Path], str]) -> Step:
        folder = self.root / "steps" / table.name
        if not folder.is_dir():
            raise problem(folder, f"does not exist, but task.toml has a step '{table.name}'", code="missing-step")
        inside(folder, self.root)
        agent, whole = table.agent, self.config.agent
        return Step(
            name=table.name,
            instruction=read_instruction(folder / "instruction.md", self.root),
            agent_timeout=whole.timeout_sec if agent.timeout_sec is None else agent.timeout_sec,
            agent_user=whole.user if agent.user is None else agent.user,
            agent_network=boxes.network(agent.network_mode, agent.allowed_hosts)
            or boxes.network(whole.network_mode, whole.allowed_hosts),
            verifier=self._step_settings(table, folder / "tests"),
            solution=self._step_solution(folder),
            workdir_files=existing_dir(folder / "workdir", self.root),
            healthcheck=boxes.healthcheck(table.healthcheck),
            artifacts=artifacts((*self.config.artifacts, *table.artifacts)),
            min_reward=table.min_reward,
        )

    def _step_settings(self, table: StepTable, tests: Path) -> VerifierSettings:
        own, whole = table.verifier, self.config.verifier
        merged = replace(
            own,
            env={**whole.env, **own.env},
            user=whole.user if own.user is None else own.user,
            network_mode=own.network_mode or whole.network_mode,
            allowed_hosts=own.allowed_hosts if own.network_mode else whole.allowed_hosts,
            collect=(*whole.collect, *own.collect),
            type=own.type or whole.type,
            judge=own.judge or whole.judge,
            service=own.service if own.service != "main" else whole.service,
        )
        return self._settings(merged, table, tests)

    def _settings(self, found: VerifierTable, step: StepTable | None, step_tests: Path | None) -> VerifierSettings:
        folders = tuple(f for f in (self.tests, step_tests) if f and existing_dir(f, self.root))
        isolation, own_box, bundled = self.options.isolation, None, False
        if boxes.is_separate(self.config, step):
            own = boxes.verifier_box(self.config, self.root, step, self.tests, step_tests)
            isolation, own_box, bundled = "separate", own.box, own.bundled
        method = found.type or "test-script"
        script = "test.bat" if (own_box or self.environment).os == "windows" else "test.sh"
        if method == "test-script" and not bundled and not (self.config.steps and step is None):
            self._require_script(folders, script, step)
        return VerifierSettings(
            method=method,
            tests=() if bundled else folders,
            tests_target=self.tests_target,
            script=script,
            timeout=_DEFAULT_TIMEOUT if found.timeout_sec is None else found.timeout_sec,
            env=found.env,
            user=found.user,
            network=boxes.network(found.network_mode, found.allowed_hosts),
            service=found.service,
            isolation=isolation,
            environment=own_box,
            collect=tuple(CollectHook(h.command, h.service, h.timeout_sec, h.user) for h in found.collect),
            keep_changes=self.options.keep_changes,
            params=_params(found),
        )

    def _require_script(self, folders: tuple[Path, ...], script: str, step: StepTable | None) -> None:
        if self.script_known or any(existing_file(folder / script, self.root) for folder in folders):
            return
        expected = self.tests / script
        if step is not None:
            expected = self.root / "steps" / step.name / "tests" / script
        whose = "the task" if step is None else f"step '{step.name}'"
        what = f"does not exist: {whose} has no test"
        raise problem(expected, what, remedy="Write the script that judges the result.", code="missing-tests")

    def _step_solution(self, folder: Path) -> Solution | None:
        """The step's own, else the task's."""
        own = folder / self.solution_name
        if existing_dir(own, self.root) is not None:
            return find_solution(self.config, self.environment, own, self.solution_target, self.root)
        whole = self.root / self.solution_name
        return find_solution(self.config, self.environment, whole, self.solution_target, self.root)


def shared_fields(config: TaskConfig, path: Path) -> dict[str, Any]:
    """What a task has whatever its format: its name, and what is said of the agent."""
    package, agent = config.task, config.agent
    return {
        "name": package.name if package else path.resolve().name,
        "path": path,
        "version": package.version if package else None,
        "description": package.description if package else "",
        "keywords": package.keywords if package else (),
        "agent_timeout": agent.timeout_sec,
        "agent_user": agent.user,
        "agent_network": boxes.network(agent.network_mode, agent.allowed_hosts),
        "prompt_prefix": agent.prompt_prefix or "",
        "artifacts": artifacts(config.artifacts),
    }


def find_solution(
    config: TaskConfig, environment: TaskEnvironment, folder: Path, target: str, root: Path
) -> Solution | None:
    """The reference solution, where its script is there."""
    script = "solve.bat" if environment.os == "windows" else "solve.sh"
    if existing_dir(folder, root) is None or existing_file(folder / script, root) is None:
        return None
    return Solution(folder, target=target, script=script, env=config.solution.env, timeout=config.solution.timeout_sec)


def artifacts(entries: tuple[ArtifactEntry, ...]) -> tuple[Artifact, ...]:
    return tuple(Artifact(e.source, e.destination, e.exclude, e.service or "main") for e in entries)


def _params(found: VerifierTable) -> dict[str, Any]:
    """What only some verifiers look at."""
    params: dict[str, Any] = {}
    if found.type == "llm-judge" or found.judge is not None:
        from benchflow_adapter_harbor.config import JudgeTable

        params.update(asdict(found.judge or JudgeTable()))
    if found.hardening:
        params["hardening"] = dict(found.hardening)
    if found.pytest_plugins:
        params["pytest_plugins"] = list(found.pytest_plugins)
    if found.memory:
        params["memory"] = dict(found.memory)
    return params
