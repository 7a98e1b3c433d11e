"""`COPY --from`, as a Dockerfile says it: from which stage or image, what, and to where."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

from benchflow_boxkit.build_folder import OWN
from benchflow_boxkit.dockerfile import Dockerfile, Instruction
from benchflow_boxkit.expansion import Unsupported, assignments, expand, words

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import BenchflowError, CapabilityMissing, TaskError

__all__ = ["PLACE", "CopyFrom", "Variables", "copy_from", "refused"]

IMAGE: Final = "Name a finished image in the task (docker_image), or use another sandbox."
PLACE: Final = "/opt/benchflow/copied"
"""Where archives are while an image is built."""
_OCTAL: Final = re.compile(r"[0-7]{3,4}")


@dataclass(frozen=True, slots=True)
class CopyFrom:
    line: int
    origin: int | str
    """A stage by its number, or an image."""
    said: str
    """How the Dockerfile calls it."""
    sources: tuple[str, ...]
    target: str
    owner: str
    mode: str

    @property
    def step(self) -> str:
        """A command that does nothing, in whose place the copy comes."""
        return f": COPY --from={shlex.quote(self.said)}, line {self.line}"

    @property
    def folder(self) -> str:
        """In a build's context: the archive, and the program that lays it down."""
        return f"{OWN}/copied/{self.line}"

    def command(self, python: str) -> str:
        here = f"{PLACE}/{self.line}"
        who = f"line {self.line}: COPY --from={self.said}"
        words = [python, "-I", "-S", f"{here}/copying.py", "lay", who, f"{here}/archive"]
        return f"{shlex.join([*words, self.target, self.owner, self.mode])} && rm -rf {PLACE}"


def refused(name: str, line: int, what: str, remedy: str = IMAGE) -> CapabilityMissing:
    return CapabilityMissing(f"{name}, line {line}: {what}, which E2B's templates cannot do.", remedy=remedy)


class Variables:
    """The values that ARG and ENV have given up to a line. What an image brings along is not known."""

    def __init__(self, globals_: Mapping[str, str], escape: str) -> None:
        self._globals, self._escape = globals_, escape
        self._arguments: dict[str, str] = {}
        self._env: dict[str, str] = {}

    def begin_stage(self) -> None:
        self._arguments.clear()

    def follow(self, instruction: Instruction) -> None:
        values = {**self._arguments, **self._env}
        if instruction.name == "ARG":
            for word in words(instruction.text, values, self._escape, keep_unknown=True):
                name, given, value = word.partition("=")
                self._arguments[name] = value if given else self._globals.get(name, "")
        elif instruction.name == "ENV":
            self._env |= assignments(instruction.text, values, self._escape, keep_unknown=True)

    def put_in(self, word: str) -> str:
        return expand(word, {**self._arguments, **self._env}, self._escape, keep_unknown=True)

    def arguments_of(self, instruction: Instruction) -> list[str]:
        """Return the words of an instruction with the values put in."""
        array = instruction.array()
        if array is not None:
            return [self.put_in(word) for word in array]
        return words(instruction.text, {**self._arguments, **self._env}, self._escape, keep_unknown=True)


def copy_from(instruction: Instruction, source: Dockerfile, stage: int, known: Variables) -> CopyFrom:
    """Read a `COPY --from` of the stage with this number."""
    line, name, flags = instruction.line, source.path, dict(instruction.flags)

    def check(text: str) -> str:
        if "$" in text:
            remedy = "Write its value, or say it with ARG or ENV in this stage."
            raise refused(name, line, f"COPY --from with {text}, a variable of the image's own", remedy)
        return text

    try:
        arguments = [check(word) for word in known.arguments_of(instruction)]
        given = {flag: check(known.put_in(flags.get(flag, ""))) for flag in ("from", "chown", "chmod")}
    except Unsupported as error:
        raise _wrong(name, line, str(error)) from error
    if len(arguments) < 2 or instruction.heredocs:
        raise _wrong(name, line, "COPY --from wants a source and a destination")
    *sources, target = arguments
    if len(sources) > 1 and not target.endswith("/"):
        raise _wrong(name, line, "COPY of several sources wants a destination that ends with /")
    if target == "." or target.endswith("/."):
        target += "/"
    mode, said = given["chmod"], given["from"]
    if mode and not _OCTAL.fullmatch(mode):
        raise refused(name, line, f"COPY --chmod={mode}", "Give an octal mode such as 0755.")
    return CopyFrom(line, _origin(said, source, stage, line), said, tuple(sources), target, given["chown"], mode)


def _origin(said: str, source: Dockerfile, stage: int, line: int) -> int | str:
    number = source.stage_number(said, stage)
    if number is not None:
        return number
    if said.isdigit():
        raise _wrong(source.path, line, f"COPY --from={said}: there is no such stage before this one")
    if not said or said == "scratch":
        raise _wrong(source.path, line, f"COPY --from={said}: nothing can be copied from it")
    return said


def _wrong(name: str, line: int, what: str) -> BenchflowError:
    return TaskError(f"{name}, line {line}: {what}.")
