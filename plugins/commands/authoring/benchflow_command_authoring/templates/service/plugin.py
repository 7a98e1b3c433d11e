"""The plugin: how the service is installed, started and found ready."""

from __future__ import annotations

from benchflow_core.contracts import Layer, Runtime, ServiceContext, ServiceSpec
from benchflow_core.hookspecs import hookimpl

VERSION = "0.1.0"
PREFIX = "/opt/benchflow/services/{{name}}"


def command(context: ServiceContext) -> tuple[str, ...]:
    python = context.runtimes.get("python", "python3")
    return (python, f"{context.prefix or PREFIX}/store.py", str(context.port), f"{context.data_dir}/{{name}}.json")


@hookimpl
def benchflow_service() -> ServiceSpec:
    from pathlib import Path

    program = Path(__file__).with_name("store.py").read_bytes()
    return ServiceSpec(
        summary="a small key-value store over HTTP",
        command=command,
        port=9700,
        program="{{name}}",
        layers=(Layer(key=f"{{name}}@{VERSION}", prefix=PREFIX, files={"store.py": program}),),
        runtimes=(Runtime("python", "3.9"),),
    )
