"""`evals/evals.json`: what is in it, and a line for each thing that is wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator  # noqa: TID253

from benchflow_core.errors import ConfigurationError

__all__ = ["Case", "Evals", "read_evals"]

_STRICT: Final = ConfigDict(extra="forbid", strict=True, frozen=True)
_MOST_BYTES: Final = 4 * 1024 * 1024
_ID: Final = re.compile(r"[\w][\w.-]{0,79}")
Text = Annotated[str, Field(min_length=1)]


class Case(BaseModel):
    """One question, and what a good answer is known by."""

    model_config = _STRICT
    question: Text
    id: Text = ""
    ground_truth: str = ""
    expected_behavior: list[Text] = []
    expected_skill: str = ""
    expected_script: str = ""
    environment: dict[str, str] = {}

    @model_validator(mode="after")
    def _gradable(self) -> Case:
        if not self.ground_truth.strip() and not self.expected_behavior:
            raise ValueError("neither ground_truth nor expected_behavior: nothing to grade it by")
        if self.id and not _ID.fullmatch(self.id):
            raise ValueError(f"id {self.id!r} is not a plain name of letters, digits, '.', '_' and '-'")
        return self


class Defaults(BaseModel):
    """For every case."""

    model_config = _STRICT
    timeout_sec: Annotated[int, Field(gt=0)] = 300
    judge_model: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$")] = "gemini-3.1-flash-lite"
    skill_mount_dir: Annotated[str, Field(pattern="^/")] = "/skills"
    """Read and not needed: a skill is laid where the agent looks for it."""


class Evals(BaseModel):
    """The whole file."""

    model_config = _STRICT
    cases: Annotated[list[Case], Field(min_length=1)]
    version: str = "1"
    skill_name: str = ""
    defaults: Defaults = Defaults()

    @model_validator(mode="after")
    def _named(self) -> Evals:
        if self.version.split(".")[0] != "1":
            raise ValueError(f"version {self.version!r} is not known; expected 1")
        names = [case.id for case in self.cases if case.id]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two cases have the id {twice[0]!r}")
        return self

    def named(self) -> list[Case]:
        """Cases without an id are called by their number."""
        taken = {case.id for case in self.cases}
        found = []
        for number, case in enumerate(self.cases, 1):
            name = case.id or f"case-{number:03}"
            if not case.id and name in taken:
                name = f"{name}-unnamed"
            found.append(case.model_copy(update={"id": name}))
        return found


def read_evals(file: Path) -> Evals:
    """Raises `ConfigurationError` with the place of what is wrong."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}.") from error
    if len(data) > _MOST_BYTES:
        raise ConfigurationError(f"{file} is larger than {_MOST_BYTES // 1024 // 1024} MB.")
    try:
        return Evals.model_validate_json(data)
    except ValidationError as error:
        raise ConfigurationError(f"{file}: {_first(error)}.", remedy="The format is in docs/skills.md.") from None


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False)
    place = ".".join(str(part) for part in found[0]["loc"])
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    said = found[0]["msg"].removeprefix("Value error, ")
    return f"{place}: {said}{more}" if place else f"{said}{more}"


def to_json(case: Case, defaults: Defaults, skill: str) -> str:
    """A case by itself."""
    value = {"skill": skill, **case.model_dump(), "defaults": defaults.model_dump()}
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
