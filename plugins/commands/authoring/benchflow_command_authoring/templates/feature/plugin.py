"""The hook: what the feature is, and where its parts are."""

from __future__ import annotations

from benchflow_core.contracts import FeatureSpec
from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_feature() -> FeatureSpec:
    return FeatureSpec(
        summary="a text that agents find in their box",
        settings="{{module}}.settings:TextSettings",
        plan="{{module}}.text:plan",
        keys={"result": ("{{identifier}}_characters",)},
    )
