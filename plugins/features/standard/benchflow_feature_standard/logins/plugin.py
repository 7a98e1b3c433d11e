"""The hook of the package."""

from __future__ import annotations

from benchflow_core.contracts import FeatureSpec
from benchflow_core.hookspecs import hookimpl


@hookimpl
def benchflow_feature() -> FeatureSpec:
    return FeatureSpec(
        summary="agents use a login of this host instead of the gateway (--auth native)",
        settings="benchflow_feature_standard.logins.settings:LoginSettings",
        plan="benchflow_feature_standard.logins.logins:plan",
    )
