"""Annotations of a field of settings: what it is on a command line, in a file, and in a comparison of two jobs.

A feature declares its settings as a pydantic model whose fields carry these; the field's docstring is its help::

    class ReplaySettings(Settings):
        replay: Annotated[Path | None, Option(metavar="DIR", path="folder")] = None
        \"\"\"Answer from what a job recorded.\"\"\"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from benchflow_core.errors import ConfigurationError
from benchflow_core.quick import dataclass

__all__ = [
    "Alias",
    "Also",
    "Axis",
    "Blocks",
    "Internal",
    "OfOneRollout",
    "Option",
    "Recorded",
    "Secret",
    "Table",
    "Texts",
    "Treatment",
]

_SECRET_NAME: Final = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|AUTH(?!OR(?!IZ))", re.IGNORECASE)
_WITHHELD: Final = "$withheld"


def secret_names(env: Iterable[str]) -> list[str]:
    """Return the variables that hold a secret, judged by their name."""
    return [name for name in env if _SECRET_NAME.search(name)]


class Option:
    """The setting is an option of `bench eval create`; without a spelling it is `--` and the field's name."""

    def __init__(
        self,
        *spellings: str,
        help: str | None = None,
        metavar: str | None = None,
        complete: str | None = None,
        path: Literal["any", "folder"] | None = None,
        repeat: bool = False,
    ) -> None:
        self.spellings, self.metavar = spellings, metavar
        self.help = help
        """Instead of the field's docstring, for an option that says the opposite of the field."""
        self.complete = complete
        """A kind of plugin whose names complete the value, or `task` for a path to one."""
        self.path = path
        """The value is a path; of a `folder` that is there, or of `any`thing."""
        self.repeat = repeat
        """One value for each time the option is given: a value is not split at its commas."""

    def spelling(self, name: str) -> str:
        """Return the long spelling that messages name, for the field of this name."""
        return next((word for word in self.spellings if word.startswith("--")), f"--{name.replace('_', '-')}")


class Alias:
    """Other names of the setting in job files and as a keyword in Python."""

    def __init__(self, *names: str) -> None:
        self.names = names


@dataclass(frozen=True)
class Axis:
    """Several values make an axis of this name in the job's matrix, and each value an arm."""

    name: str


@dataclass(frozen=True)
class Recorded:
    """The name of the setting in `config.json`, where that is not the field's own."""

    name: str


class Treatment:
    """Two jobs differ in this setting on purpose when somebody compares them."""


class Blocks:
    """Scores made under different values are not on one scale: there is no verdict without being allowed."""


class Internal:
    """The setting is filled in by the core or by Python code: it is no key of a job file."""


class OfOneRollout:
    """A feature's job gives each rollout a value of its own: it is not in `config.json`, and makes no other plan."""


class Also:
    """The setting can be written in another shape too: the function that reads it, and the JSON Schema of that shape.

    The function gets every value and returns those that have the field's own shape as they are. A `ConfigurationError`
    of it is told with the place of the value.
    """

    def __init__(self, read: Callable[[Any], Any], schema: Mapping[str, Any]) -> None:
        self._read, self._schema = read, schema

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        def read(value: Any) -> Any:
            try:
                return self._read(value)
            except ConfigurationError as error:
                raise ValueError(error.message) from error

        return core_schema.no_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Any:
        own = handler(core)
        either: list[Any] = own.pop("anyOf", None) or [own]
        return {"anyOf": [*either, dict(self._schema)]}


class Secret:
    """Variables whose name says secret are not written down: only the name is, and reading asks the environment."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        inner = handler(source)
        written = core_schema.wrap_serializer_function_ser_schema(_withhold, info_arg=True, schema=inner)
        return core_schema.with_info_before_validator_function(_restore, inner, serialization=written)


def _withhold(variables: Mapping[str, str], write: Any, info: Any) -> dict[str, Any]:
    """Write the variables; `secret` of the context says what stands for a secret one, and None leaves it out."""
    found = dict(variables)
    replace = (info.context or {}).get("secret", lambda name, value: {_WITHHELD: name})
    for name in secret_names(found):
        if (written := replace(name, found.pop(name))) is not None:
            found[name] = written
    return found


def _restore(variables: Any, info: Any) -> Any:
    """Take what was withheld from `env` of the context."""
    if not info.context or not isinstance(variables, Mapping):
        return variables
    return {name: _given(value, info.context["env"]) for name, value in variables.items()}


def _given(value: Any, env: Mapping[str, str]) -> Any:
    if not isinstance(value, Mapping) or set(value) != {_WITHHELD}:
        return value
    name = str(value[_WITHHELD])
    if name not in env:
        raise ConfigurationError(f"{name} was given to the agent and is not written down.", remedy=f"Set {name} again.")
    return env[name]


def _as_texts(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _as_table(value: Any) -> Any:
    """YAML reads `false` and `3` as something else than text."""
    return {str(key): _text(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float | str) else value


Texts = Annotated[Sequence[str], Also(_as_texts, {"type": "string"})]
"""A list of text that may also be written as one text."""
Table = Annotated[
    Mapping[str, str],
    Also(_as_table, {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
]
"""Name to text; a file may also write a number, or true."""
