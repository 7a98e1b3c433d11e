"""The hook of the feature."""

from __future__ import annotations

from benchflow_core.contracts import CommandSpec, FeatureSpec
from benchflow_core.hookspecs import hookimpl

_HERE = "benchflow_feature_standard.skills"


@hookimpl
def benchflow_feature() -> FeatureSpec:
    return FeatureSpec(
        summary="skills for agents (--skill-mode, --skills-dir), and a count of those that they call",
        settings=f"{_HERE}.settings:SkillSettings",
        plan=f"{_HERE}.plan:plan",
        applies=lambda task: True,
        keys={"result": ("skill_mode", "n_skill_invocations"), "lock": ("skills",)},
        drift=f"{_HERE}.plan:drift",
    )


@hookimpl
def benchflow_command() -> CommandSpec:
    commands = {"skills": f"{_HERE}.commands:skills", "eval.skills-dir": f"{_HERE}.evaluate:older_skill_eval"}
    return CommandSpec(summary="see, install and evaluate skills", commands=commands)
