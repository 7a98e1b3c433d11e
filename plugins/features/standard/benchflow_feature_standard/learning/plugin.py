"""The hook of the feature."""

from __future__ import annotations

from benchflow_core.contracts import CommandSpec, FeatureSpec
from benchflow_core.hookspecs import hookimpl

_HERE = "benchflow_feature_standard.learning"


@hookimpl
def benchflow_feature() -> FeatureSpec:
    return FeatureSpec(
        summary="rollouts of a job learn from each other (job_mode: sequential-shared)",
        settings=f"{_HERE}.settings:LearningSettings",
        plan=f"{_HERE}.run:plan",
        after=("skills",),
        job=f"{_HERE}.job:LearningJob",
        keys={"lock": ("learner",), "summary": ("learner",)},
    )


@hookimpl
def benchflow_command() -> CommandSpec:
    return CommandSpec(summary="see and steer what rollouts learned", commands={"learner": f"{_HERE}.commands:learner"})
