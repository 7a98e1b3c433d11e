"""The rubric: a JSON or TOML file of the task's."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator  # noqa: TID253

from benchflow_core.contracts import VerifyContext
from benchflow_core.errors import VerifierError

__all__ = ["Criterion", "Rubric", "find_rubric"]

_STRICT: Final = ConfigDict(extra="forbid", frozen=True)
_MOST_BYTES: Final = 8 * 1024 * 1024
Text = Annotated[str, Field(min_length=1)]


class Criterion(BaseModel):
    """One question for the judge."""

    model_config = _STRICT
    id: Text
    match_criteria: Text
    """What a pass takes, in words."""
    title: str = ""
    deliverables: list[Text] = []
    """The files it is about; without any, all of them."""
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0


class Rubric(BaseModel):
    """The whole file."""

    model_config = _STRICT
    criteria: Annotated[list[Criterion], Field(min_length=1)]
    title: str = ""
    """What the work was; without it the judge is told the instruction."""
    scoring: Literal["proportional", "all-or-nothing"] = "proportional"
    other_names: bool = False
    """A file that is missing may be the only one of its kind, whatever that one is called."""

    @model_validator(mode="after")
    def _told_apart(self) -> Rubric:
        names = [one.id for one in self.criteria]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two criteria have the id {twice[0]!r}")
        return self


def find_rubric(context: VerifyContext) -> Rubric:
    """Where `rubric_path` says, from the task's folder, or `rubric`, from its tests."""
    params = context.settings.params
    given, roots = params.get("rubric_path"), [context.task.path]
    if params.get("rubric"):
        given, roots = params["rubric"], list(reversed(context.settings.tests))
    files = [root / str(given or "tests/rubric.toml") for root in roots]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise VerifierError(f"the rubric {given} does not exist.", remedy="Name it in [verifier.judge] rubric_path.")
    if not file.resolve().is_relative_to(context.task.path.resolve()):
        raise VerifierError(f"the rubric {file} leads out of the task.")
    return _read(file)


def _read(file: Path) -> Rubric:
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise ValueError(f"it is larger than {_MOST_BYTES // 1024 // 1024} MB")
        text = file.read_text("utf-8")
        value: Any = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
        return Rubric.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in found["loc"])
        said = f"{place}: {found['msg']}" if place else found["msg"]
    except (OSError, ValueError, RecursionError) as error:
        said = str(error).splitlines()[0]
    raise VerifierError(f"{file} is no rubric: {said}.", details={"file": str(file)})
