"""Read a task and say what is wrong with it. Only the level `live` executes anything of the task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from benchflow_command_authoring.certify import live_check
from benchflow_command_authoring.runtime import runtime_findings
from benchflow_command_authoring.structure import structural_findings
from benchflow_core.contracts import AdapterSpec, Finding, Task
from benchflow_core.contracts.core import Core
from benchflow_core.errors import TaskError

__all__ = ["LEVELS", "LEVEL_ALIASES", "check_task", "live_findings"]

LEVELS: Final = ("schema", "structural", "runtime-capability", "live")
"""Each includes those before it."""

LEVEL_ALIASES: Final = {"acceptance-live": "live"}
"""BenchFlow's older names."""

_NOTICE = re.compile(r"(?P<file>.+?):(?:(?P<line>\d+):)? (?P<message>.+)", re.DOTALL)


def check_task(
    core: Core,
    path: Path,
    level: str = "structural",
    *,
    sandbox: str | None = None,
    allow_substitute: bool = False,
    allow_env: tuple[str, ...] = (),
) -> list[Finding]:
    """Return what was found up to the level, errors first. A task with errors is not run."""
    findings = _findings_without_running(core, path, LEVELS.index(level), sandbox, allow_substitute)
    if level == "live" and not any(finding.severity == "error" for finding in findings):
        work = live_check(core, path, sandbox=sandbox, allow_substitute=allow_substitute, allow_env=allow_env)
        return [*live_findings(core.run(work), path), *findings]
    return findings


def _findings_without_running(
    core: Core, path: Path, depth: int, sandbox: str | None, allow_substitute: bool
) -> list[Finding]:
    try:
        task = core.load_task(path)
    except TaskError as error:
        return _from_error(error, path)
    findings = [_from_notice(notice) for notice in task.notices]
    if depth >= LEVELS.index("structural"):
        findings += _structural(core, task)
    if depth >= LEVELS.index("runtime-capability"):
        findings += runtime_findings(core, task, sandbox, allow_substitute=allow_substitute)
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(findings, key=lambda finding: order[finding.severity])


def live_findings(report: Mapping[str, Any], path: Path) -> list[Finding]:
    """Return what running the reference solution and an idle agent under each isolation policy has shown."""
    severity: Literal["error", "warning"] = "warning" if report["certified"] else "error"
    found = {policy: _live_problem(runs) for policy, runs in report["policies"].items()}
    findings = [
        Finding(severity, f"under {policy}: {wrong}", path, code="live") for policy, wrong in found.items() if wrong
    ]
    if works := [policy for policy, wrong in found.items() if not wrong]:
        where = f"in sandbox '{report['sandbox']}' under {', '.join(works)}"
        findings.append(Finding("info", f"solved earns 1 and untouched does not, {where}", path, code="certified"))
    return findings


def _live_problem(runs: Mapping[str, Any]) -> str | None:
    if runs["works"]:
        return None
    reference, idle = runs["reference"], runs["null"]
    for name, run in (("the reference solution", reference), ("an agent that does nothing", idle)):
        if error := run["error"] or run["verifier_error"]:
            return f"{name} ended with: {error['message'] if isinstance(error, Mapping) else error}"
    if reference["reward"] != 1:
        return f"the reference solution earns {reference['reward']}, not 1"
    return "an agent that does nothing earns 1"


def _structural(core: Core, task: Task) -> list[Finding]:
    try:
        findings = structural_findings(task)
        spec: AdapterSpec = core.adapter_of(task.path).spec
        return findings + (spec.lint(task.path) if spec.lint else [])
    except TaskError as error:
        return _from_error(error, task.path)


def _from_error(error: TaskError, path: Path) -> list[Finding]:
    """Make findings of a refusal; an adapter that found several problems lists them in `details["problems"]`."""
    file = Path(error.details.get("file") or path)
    problems = error.details.get("problems")
    if problems:
        return [
            Finding("error", str(p["message"]), file, p.get("line"), str(p.get("remedy", "")), str(p.get("code", "")))
            for p in problems
        ]
    line, code = error.details.get("line"), error.details.get("code") or error.code
    message = error.message.removeprefix(f"{file}:{line}: " if line else f"{file}: ")
    return [Finding("error", message.rstrip("."), file, line, error.remedy or "", str(code))]


def _from_notice(notice: str) -> Finding:
    found = _NOTICE.fullmatch(notice)
    if found is None:
        return Finding("warning", notice, code="notice")
    line = int(found["line"]) if found["line"] else None
    return Finding("warning", found["message"], Path(found["file"]), line, code="notice")
