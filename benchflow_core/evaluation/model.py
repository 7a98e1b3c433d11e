"""The one model behind job files: made from the fields of the config classes, so that an option exists once.

It checks what comes from text and is published as a JSON Schema; Python callers fill the classes themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from benchflow_core.configfile import ConfigFile
from benchflow_core.contracts.scenes import Role, Scene, Turn
from benchflow_core.errors import ConfigurationError
from benchflow_core.evaluation.config import EvaluationConfig, RetryConfig
from benchflow_core.evaluation.matrix import Choice, Matrix
from benchflow_core.evaluation.tasks import Source
from benchflow_core.quick import dataclass
from benchflow_core.world.choice import StateChoice

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

__all__ = ["ALIASES", "LISTS", "TEXT_TABLES", "JobKeys", "check_settings", "job_schema"]

ALIASES = {
    "environment": "sandbox",
    "task_dir": "tasks_dir",
    "task_path": "tasks_dir",
    "agent_idle_timeout_sec": "agent_idle_timeout",
    "include": "include_tasks",
    "exclude": "exclude_tasks",
    "includes": "include_tasks",
    "excludes": "exclude_tasks",
    "n_attempts": "trials",
    "n_concurrent_trials": "concurrency",
}
"""Older words to ours."""

_NOT_WRITTEN = ("source_provenance", "dataset", "arm", "max_user_rounds", "user_timeout", "oracle_access")
"""What the core fills in itself, and what belongs to a user that is Python code."""
TEXT_TABLES = ("agent_env", "agent_options", "sandbox_options", "gateway_options", "executor_options")
"""Name to text; YAML may also write a number, or true."""
LISTS = ("prompts", "sandbox_locked_paths", "include_tasks", "exclude_tasks", "allow_env", "services")
"""Lists of text that may also be written as one text."""
_SHORTER: Mapping[str, dict[str, Any]] = {
    **{name: {"type": "string"} for name in LISTS},
    "source": {"type": "string"},
    "state": {"type": "string"},
    "agent_idle_timeout": {"const": "none"},
    "usage_tracking": {"type": "object", "properties": {"mode": {"enum": ["auto", "required", "off"]}}},
    "loop_strategy": {"type": "object", "properties": {"strategy": {"type": "string"}, "params": {"type": "object"}}},
}
"""Other shapes that are accepted and written out before the model sees them."""
_NESTED: Mapping[tuple[str, ...], type] = {
    ("scenes",): Scene,
    ("scenes", "roles"): Role,
    ("scenes", "turns"): Turn,
    ("source",): Source,
    ("retry",): RetryConfig,
    ("state",): StateChoice,
    ("matrix",): Matrix,
    ("matrix", "agents"): Choice,
    ("matrix", "models"): Choice,
}
"""Where a mapping is an object of ours. What is below a name of the user's in `matrix.scenes` is as in `scenes`."""


@dataclass(kw_only=True)
class JobKeys:
    """What a job file says beside the settings of its rollouts: which tasks, and where results go."""

    tasks_dir: str | None = None
    """A task, or a folder of tasks, relative to where the command runs."""
    source: Source | None = None
    """Tasks of a repository."""
    dataset: str | None = None
    """`name@version` of a dataset registry."""
    registry: str | None = None
    """The dataset registry: a file, a URL, or a repository."""
    ignore_bench_version: bool = False
    """Run a dataset that was validated with another version of BenchFlow."""
    jobs_dir: str = "jobs"
    job_name: str | None = None
    rollout_name: str | None = None
    max_retries: int | None = None
    """Short for `retry: {max_retries: …}`."""
    loop_strategy: str | None = None
    """A driver and its parameters: `name:k=3,feedback=names`."""


def check_settings(values: Mapping[str, Any], file: ConfigFile) -> dict[str, Any]:
    """The values as typed objects, or the first thing that is wrong with them, by file and line."""
    from pydantic import ValidationError

    model = _model()
    try:
        checked = model.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        raise _complaint(error, values, file) from None
    return {name: getattr(checked, name) for name in values}


def job_schema() -> dict[str, Any]:
    """The JSON Schema of a job file, for editors."""
    schema = _model().model_json_schema()
    for name, shorter in _SHORTER.items():
        schema["properties"][name].setdefault("anyOf", [_type_of(schema["properties"][name])]).append(shorter)
    for name in TEXT_TABLES:
        schema["properties"][name]["additionalProperties"] = {"type": ["string", "number", "boolean"]}
    for old, new in ALIASES.items():
        schema["properties"][old] = {**schema["properties"][new], "description": f"The older word for {new}."}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _type_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: schema.pop(key) for key in ("type", "items", "enum", "$ref") if key in schema}


@cache
def _model() -> type[BaseModel]:
    from pydantic import ConfigDict, Field, create_model

    made: dict[str, Any] = {}
    for kind in (JobKeys, EvaluationConfig):
        hints, docs = get_type_hints(kind), _docs(kind)
        for f in fields(kind):
            left_out = kind is EvaluationConfig and f.name in _NOT_WRITTEN
            if f.name in made or left_out or not _has_written_form(hints[f.name]):
                continue
            start: Any = {"default": f.default} if f.default is not MISSING else {"default_factory": f.default_factory}
            made[f.name] = (hints[f.name], Field(description=docs.get(f.name), **start))
    config = ConfigDict(extra="forbid", strict=True, title="BenchFlow job")
    return create_model("Job", __config__=config, **made)


def _has_written_form(hint: Any) -> bool:
    """Functions and live objects are for Python only."""
    if get_origin(hint) is Literal or hint in (str, int, float, bool, Path, type(None), Any) or is_dataclass(hint):
        return True
    if get_origin(hint) is None or get_origin(hint) is Callable:
        return False
    return all(_has_written_form(part) for part in get_args(hint))


def _docs(kind: type) -> dict[str, str]:
    """The text below each field, from the source."""
    import ast
    import inspect
    import textwrap

    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for one, two in zip(body.body, body.body[1:], strict=False):
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(two, ast.Expr):
                text = ast.literal_eval(two.value) if isinstance(two.value, ast.Constant) else None
                if isinstance(text, str):
                    found[one.target.id] = text
    return found


# --- what is wrong ------------------------------------------------------------------------------------------

_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_KINDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "dataclass_type": "a mapping",
}


def _complaint(error: ValidationError, values: Mapping[str, Any], file: ConfigFile) -> ConfigurationError:
    """A misspelt key before what it leaves missing; in a union, the member that came furthest."""
    found = [(e, tuple(_path(e["loc"], values))) for e in error.errors(include_url=False)]
    found.sort(key=lambda pair: (pair[0]["type"] not in _UNKNOWN, -len(pair[1])))
    first, at = found[0]
    key = first["loc"][-1]
    if first["type"] in _UNKNOWN:
        return file.unknown(key, _known(at[:-1]), *at[:-1])
    if first["type"] == "missing":
        kind = _NESTED.get(_names(at))
        what = f"a {kind.__name__.lower()}" if kind else "the file"
        return ConfigurationError(f"{file.where(*at)}: {what} needs '{key}'.")
    name = next((part for part in reversed(at) if isinstance(part, str)), str(key))
    wanted = _KINDS.get(first["type"]) or first.get("ctx", {}).get("expected")
    same = {_KINDS[e["type"]] for e, place in found if place == at and e["type"] in _KINDS}
    wanted = " or ".join(sorted(same)) if len(same) > 1 else wanted
    told = f"must be {wanted}" if wanted else first["msg"]
    return ConfigurationError(f"{file.where(*at)}: '{name}' {told}, not {first['input']!r}.")


def _path(loc: tuple[int | str, ...], values: Any) -> Iterator[Any]:
    """The part of pydantic's location that is in the data; it also names members of unions."""
    for part in loc:
        inside = part in values if isinstance(values, dict) else isinstance(values, list) and isinstance(part, int)
        if inside:
            values = values[part]
            yield part


def _names(at: tuple[Any, ...]) -> tuple[str, ...]:
    names = tuple(part for part in at if isinstance(part, str))
    return ("scenes", *names[3:]) if names[:2] == ("matrix", "scenes") and len(names) > 2 else names


def _known(at: tuple[Any, ...]) -> list[str]:
    if not at:
        return [*_model().model_fields, *ALIASES]
    names = _names(at)
    kind = _NESTED.get(names) or _NESTED[names[:2]]
    return [f.name for f in fields(kind)]
