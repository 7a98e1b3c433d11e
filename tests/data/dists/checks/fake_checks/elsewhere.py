from benchflow_core.contracts import Availability, Check, SandboxSpec
from benchflow_core.hookspecs import hookimpl


def check():
    print("printed by a check")
    return [Check("engine", "ok", "answers")]


@hookimpl
def benchflow_sandbox():
    return SandboxSpec(
        summary="not on this host",
        open=lambda context: None,
        capabilities=lambda: frozenset({"users"}),
        available=lambda: Availability(False, "no engine answers", "start-the-engine"),
        requires=("FAKE_TOKEN",),
        check=check,
    )
