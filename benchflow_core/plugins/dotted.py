"""What a spec names by a dotted path, imported when it is needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchflow_core.errors import PluginError
from benchflow_core.plugins.remedies import install_command

__all__ = ["resolve"]


def resolve(path: str, who: str) -> Any:
    """Return what `package.module:name` stands for. The error says which plugin asked, and what to install."""
    module, _, name = path.partition(":")
    package = module.partition(".")[0]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise PluginError(f"{who} needs {path}, which misses the module {error.name!r}.") from error
        missing = package.replace("_", "-")
        raise PluginError(f"{who} needs {missing}.", remedy=f"Run: {install_command(missing)}") from error
    except (ImportError, AttributeError, ValueError) as error:
        raise PluginError(f"{who} names {path!r}, which cannot be imported: {error}.") from error
