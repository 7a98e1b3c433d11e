"""A scripted model for tests, speaking the wires of real providers on loopback.

::

    from benchflow_testing import LocalModel, Step

    async with LocalModel() as model:
        model.script("greet", [Step("Hello."), Step("Bye.")])
        ...  # point an agent at model.base_url and prompt it with: [[fake:greet]]
        assert [seen.scenario for seen in model.log] == ["greet", "greet"]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchflow_testing.script import Script, Step
    from benchflow_testing.server import LocalModel, Seen

__all__ = ["LocalModel", "Script", "Seen", "Step"]

_HOME = {"LocalModel": "server", "Seen": "server", "Script": "script", "Step": "script"}


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
