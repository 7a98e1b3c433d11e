"""Options of a command line, made from the fields of the models; and what was typed, in the shapes of a job file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import click
from pydantic import BaseModel  # noqa: TID253

from benchflow_core.contracts.settings import Also, Axis, Option
from benchflow_core.errors import UsageError
from benchflow_core.settings.compose import marked
from benchflow_core.settings.words import key_values, names

__all__ = ["given_settings", "setting_options"]

Complete = Callable[[str], Callable[..., Any]]
"""From what completes a value to the function that does."""


def setting_options(
    kind: type[BaseModel], complete: Complete, only: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command the options of a model, in the order of its fields."""
    found = [
        option for name in marked(kind, Option) if not only or name in only for option in _options(kind, name, complete)
    ]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(found):
            function = option(function)
        return function

    return decorate


def _options(kind: type[BaseModel], name: str, complete: Complete) -> Iterator[Callable[[Any], Any]]:
    field = kind.model_fields[name]
    hint, notes = _plain(field.annotation)
    notes += field.metadata
    if parts := _parts(hint):
        for part, option in parts.items():
            yield click.option(f"--{name}-{part}", f"{name}_{part}", metavar=option.metavar, help=option.help)
        return
    option = next(note for note in notes if isinstance(note, Option))
    default = field.default
    more: dict[str, Any] = {"type": _type(hint, notes, option)}
    if hint is bool:
        more = {"is_flag": True, "flag_value": not default, "default": default}
    elif _is_list(hint) or any(isinstance(note, Axis) for note in notes):
        more = {"multiple": True}
    elif default:
        more |= {"default": int(default) if isinstance(default, float) else default, "show_default": True}
    if option.complete:
        more["shell_complete"] = complete(option.complete)
    text = " ".join((option.help or field.description or "").split())
    spellings = option.spellings or (option.spelling(name),)
    yield click.option(*spellings, name, metavar=option.metavar, help=text, **more)


def _type(hint: Any, notes: Sequence[Any], option: Option) -> Any:
    """Return how click reads one value; whether a number is in its bounds is the model's to say."""
    if option.path:
        return click.Path(exists=option.path == "folder", file_okay=option.path != "folder")
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    return hint if hint in (int, float) and not any(isinstance(note, Also) for note in notes) else str


def _plain(hint: Any) -> tuple[Any, list[Any]]:
    """Return a type without `None` and annotations, and the annotations."""
    notes: list[Any] = []
    while True:
        if get_origin(hint) is Annotated:
            for note in hint.__metadata__:
                notes += getattr(note, "metadata", [note])
            hint = get_args(hint)[0]
        elif NoneType in (inner := get_args(hint)) and len(inner) == 2:
            hint = next(one for one in inner if one is not NoneType)
        else:
            return hint, notes


def _parts(hint: Any) -> dict[str, Option]:
    """Return the fields of a dataclass that are options by themselves."""
    if not (isinstance(hint, type) and is_dataclass(hint)):
        return {}
    found = {name: _plain(inner)[1] for name, inner in get_type_hints(hint, include_extras=True).items()}
    return {name: note for name, notes in found.items() for note in notes if isinstance(note, Option)}


def _is_list(hint: Any) -> bool:
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Sequence | Mapping)


def given_settings(kind: type[BaseModel], ctx: click.Context) -> dict[str, Any]:
    """Return the settings that were typed, without those that only have their default."""
    default = (click.core.ParameterSource.DEFAULT, click.core.ParameterSource.DEFAULT_MAP)
    typed = {name: value for name, value in ctx.params.items() if ctx.get_parameter_source(name) not in default}
    found: dict[str, Any] = {}
    for name, option in marked(kind, Option).items():
        hint, _ = _plain(kind.model_fields[name].annotation)
        parts = {part: typed[f"{name}_{part}"] for part in _parts(hint) if f"{name}_{part}" in typed}
        if name in typed or parts:
            found[name] = parts or _shaped(hint, option.spelling(name), option, typed[name])
    return found


def _shaped(hint: Any, spelling: str, option: Option, value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    if option.repeat:
        return list(value)
    if _is_list(hint) and issubclass(get_origin(hint), Mapping):
        return key_values(value, spelling, "KEY=VALUE" if option.metavar == "K=V" else str(option.metavar))
    several = names(value)
    known = get_args(hint) if get_origin(hint) is Literal else several
    if odd := [one for one in several if one not in known]:
        raise UsageError(f"{spelling} '{odd[0]}': expected one of {', '.join(known)}.")
    return several
