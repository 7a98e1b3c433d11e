"""`COPY --from`, as a Dockerfile says it: from which stage or image, what, and to where."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from benchflow_boxkit.apart import OWN
from e2b_dockerfile_utils import DockerfileInstruction, ShellLex

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import BenchflowError, CapabilityMissing, TaskError

__all__ = ["PLACE", "Copy", "Variables", "copy_from", "refused"]

IMAGE: Final = "Name a finished image in the task (docker_image), or use another sandbox."
PLACE: Final = "/opt/benchflow/copied"
"""Where archives are while an image is built."""
_OCTAL: Final = re.compile(r"[0-7]{3,4}")


@dataclass(frozen=True, slots=True)
class Copy:
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
    """What ARG and ENV have said up to a line. What an image brings along is not known."""

    def __init__(self, globals_: Mapping[str, str], escape: str) -> None:
        self._globals, self._escape = globals_, escape
        self._arguments: dict[str, str] = {}
        self._kept: dict[str, str] = {}

    def follow(self, instruction: DockerfileInstruction) -> None:
        words = instruction.args
        if instruction.name == "FROM":
            self._arguments.clear()
        elif instruction.name == "ARG":
            for word in words:
                name, given, value = word.partition("=")
                self._arguments[name] = self.put_in(value) if given else self._globals.get(name, "")
        elif instruction.name == "ENV":
            for at in range(0, len(words) - 2, 3):
                self._kept[words[at]] = self.put_in(words[at + 1])

    def put_in(self, word: str) -> str:
        return ShellLex(self._escape, env={**self._arguments, **self._kept}).process_word(word)


def copy_from(
    instruction: DockerfileInstruction, flags: Mapping[str, str], stages: Sequence[str], known: Variables, name: str
) -> Copy:
    """`stages`: names of those before this one, by number; an empty one where it has none."""
    line = instruction.start_line

    def word(text: str) -> str:
        try:
            found = known.put_in(text)
        except ValueError as error:
            raise _wrong(name, line, str(error)) from error
        if "$" in found:
            remedy = "Write its value, or say it with ARG or ENV in this stage."
            raise refused(name, line, f"COPY --from with {text}, a variable of the image's own", remedy)
        return found

    words = [word(text) for text in instruction.args]
    if len(words) < 2 or instruction.heredocs:
        raise _wrong(name, line, "COPY --from wants a source and a destination")
    *sources, target = words
    if len(sources) > 1 and not target.endswith("/"):
        raise _wrong(name, line, "COPY of several sources wants a destination that ends with /")
    if target == "." or target.endswith("/."):
        target += "/"
    mode = word(flags.get("chmod", ""))
    if mode and not _OCTAL.fullmatch(mode):
        raise refused(name, line, f"COPY --chmod={mode}", "Give an octal mode such as 0755.")
    said = word(flags["from"])
    return Copy(
        line, _origin(said, stages, name, line), said, tuple(sources), target, word(flags.get("chown", "")), mode
    )


def _origin(said: str, stages: Sequence[str], name: str, line: int) -> int | str:
    if said.lower() in stages:
        return len(stages) - 1 - list(reversed(stages)).index(said.lower())
    if said.isdigit():
        if int(said) >= len(stages):
            raise _wrong(name, line, f"COPY --from={said}: there is no such stage before this one")
        return int(said)
    if not said or said == "scratch":
        raise _wrong(name, line, f"COPY --from={said}: nothing can be copied from it")
    return said


def _wrong(name: str, line: int, what: str) -> BenchflowError:
    return TaskError(f"{name}, line {line}: {what}.")
