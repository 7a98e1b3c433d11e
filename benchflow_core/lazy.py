"""A package's own names, each imported from its module when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["moved", "names_of"]


def names_of(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package. `homes`: modules, its own or by their whole path, to what each gives."""
    home = {name: module for module, names in homes.items() for name in names.split()}

    def look_up(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = home[name]
        return getattr(import_module(module if "." in module else f"{package}.{module}"), name)

    return look_up


def moved(package: str, name: str, home: str) -> Any:
    """Return a name from the package that it went to, with a warning; the error says what to install."""
    import warnings

    warnings.warn(f"{package}.{name} is now {home}.{name}", DeprecationWarning, stacklevel=3)
    try:
        return getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        missing = home.partition(".")[0]
        if error.name != missing:
            raise
        distribution = missing.replace("_", "-")
        raise ImportError(f"{package}.{name} is now in {distribution}: pip install {distribution}") from None
