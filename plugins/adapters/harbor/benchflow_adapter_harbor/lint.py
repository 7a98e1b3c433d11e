"""Findings that only these formats have, beyond what loading says."""

from __future__ import annotations

import filecmp
import re
from pathlib import Path

from benchflow_core.contracts.adapters import Finding

_CTRF = re.compile(r"--ctrf[= ]\s*(\S+)")
_CTRF_PATH = "/logs/verifier/ctrf.json"


def lint_harbor(path: Path) -> list[Finding]:
    findings = []
    if not (path / "environment").is_dir():
        what = "environment/ is missing: Harbor itself would not see this task"
        findings.append(Finding("warning", what, path, remedy="Make the folder.", code="no-environment"))
    return findings + _ctrf(path / "tests" / "test.sh")


def lint_taskmd(path: Path) -> list[Finding]:
    findings = []
    for native, legacy in (("verifier", "tests"), ("oracle", "solution")):
        if (path / native).is_dir() and (path / legacy).is_dir() and _differ(path / native, path / legacy):
            what = f"{legacy}/ and {native}/ differ: the one that is used is {native}/"
            remedy = f"Remove {legacy}/ or make the two equal."
            findings.append(Finding("error", what, path / legacy, remedy=remedy, code="drift"))
    return findings + _ctrf(path / "verifier" / "test.sh")


def _differ(one: Path, other: Path) -> bool:
    names = [{f.relative_to(top).as_posix() for f in top.rglob("*") if f.is_file()} for top in (one, other)]
    return names[0] != names[1] or any(not filecmp.cmp(one / n, other / n, shallow=False) for n in names[0])


def _ctrf(script: Path) -> list[Finding]:
    """Readers of results look for the test report in one place."""
    if not script.is_file():
        return []
    findings = []
    for number, line in enumerate(script.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
        found = _CTRF.search(line)
        if found and found[1].strip("\"'") != _CTRF_PATH:
            what = f"the CTRF report goes to {found[1]}, where nobody looks"
            remedy = f"Write it to {_CTRF_PATH}."
            findings.append(Finding("warning", what, script, number, remedy=remedy, code="ctrf-path"))
    return findings
