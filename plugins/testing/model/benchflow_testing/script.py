"""What the model says: scenarios of steps, chosen by a marker in the prompt and by how far the conversation is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from benchflow_testing.neutral import ModelRequest
from benchflow_testing.schema import instance

__all__ = ["AUX", "Script", "Step", "StepChoice"]

AUX = "aux"
_MARKER = re.compile(r"\[\[fake:([\w.-]+)((?:\s+\w+=(?:\"[^\"]*\"|[^\s\]]+))*)\s*\]\]")
_ARGUMENT = re.compile(r"(\w+)=(?:\"([^\"]*)\"|([^\s\]]+))")
_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Step:
    """One answer. `{name}` in texts and tools is replaced by the marker's `name=value`."""

    text: str = ""
    think: str = ""
    tools: Sequence[Mapping[str, Any]] = ()
    """`{"do": "write", "path": …, "content": …}`, `{"do": "bash", "command": …}`, `{"do": "read", "path": …}`,
    `{"do": "call", "tool": …, "args": …}`, `{"do": "skill", "skill": …, "path": …}`, or
    `{"name": …, "args": …}` as it is."""
    usage: Mapping[str, int] | None = None
    """`input`, `output`, `cached`, `reasoning`; what is left out is estimated."""
    no_usage: bool = False
    """The provider reports no usage at all."""
    model: str | None = None
    """The model id the answer carries; `None`: the one asked for."""
    stop: str | None = None

    status: int | None = None
    """Answer with this HTTP error."""
    error: str = "scripted error"
    code: str | None = None
    """The error's code, where the wire has one."""
    retry_after: float | None = None
    html: bool = False
    """Answer with a web page, status 200 unless `status` says otherwise."""
    delay: float = 0.0
    """Seconds before the status line."""
    first_byte: float = 0.0
    """Seconds between the headers and the body."""
    chunk_delay: float = 0.0
    """Seconds after each event of a stream."""
    cut: int | None = None
    """Drop the connection after this many events; without streaming, half-way through the body."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Step:
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(value) - known):
            raise ValueError(f"a step has no {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        return cls(**value)

    def filled(self, values: Mapping[str, str]) -> Step:
        """With the marker's parameters put in."""
        changed = {f.name: _put(getattr(self, f.name), values) for f in fields(self)}
        return Step(**changed)


@dataclass(frozen=True, slots=True)
class StepChoice:
    """Which step answers a request, and why."""

    scenario: str
    index: int
    step: Step


@dataclass
class Script:
    """All scenarios by name. It keeps no state: retries, parallel sessions and several prompts all work."""

    scenarios: dict[str, tuple[Step, ...]] = field(default_factory=lambda: dict(_BUILT_IN))
    prompts: dict[str, str] = field(default_factory=dict)
    """Words of a prompt to the scenario that it asks for, where it holds no marker."""
    default: Step = Step("ok")
    aux: Step = Step("A title")

    def add(self, name: str, steps: Iterable[Step | Mapping[str, Any] | str], prompt: str | None = None) -> None:
        self.scenarios[name] = tuple(_step(step) for step in steps)
        if prompt is not None:
            self.prompts[prompt] = name

    def load(self, value: Mapping[str, Any]) -> None:
        """From JSON: `{"scenarios": {name: [step, …]}, "prompts": {words: name}, "default": step, "aux": step}`."""
        self.prompts |= value.get("prompts") or {}
        for name, steps in (value.get("scenarios") or {}).items():
            self.add(name, steps)
        if "default" in value:
            self.default = _step(value["default"])
        if "aux" in value:
            self.aux = _step(value["aux"])

    def choose(self, request: ModelRequest) -> StepChoice:
        """The step is the number of answers since the last marker."""
        name, values, index = _last_marker(request, self.prompts)
        if request.schema:
            return StepChoice(AUX, 0, Step(json.dumps(instance(request.schema))))
        steps = self.scenarios.get(name or "")
        if steps is None:
            return StepChoice(name or "default", 0, self.default)
        if not request.tools and any(step.tools for step in steps):
            return StepChoice(AUX, 0, self.aux)
        if index >= len(steps):
            return StepChoice(name or "", index, Step("(the script has no more steps)"))
        return StepChoice(name or "", index, steps[index].filled(values))


def _step(value: Step | Mapping[str, Any] | str) -> Step:
    if isinstance(value, str):
        return Step(value)
    return value if isinstance(value, Step) else Step.from_json(value)


def _last_marker(request: ModelRequest, prompts: Mapping[str, str]) -> tuple[str | None, dict[str, str], int]:
    name: str | None = None
    values: dict[str, str] = {}
    answered = 0
    for message in request.messages:
        if message.role == "user" and (found := _asked(message.text, prompts)):
            name, rest = found
            values = {key: quoted or plain for key, quoted, plain in _ARGUMENT.findall(rest)}
            answered = 0
        elif message.role == "assistant" and name:
            answered += 1
    return name, values, answered


def _asked(text: str, prompts: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the scenario that a prompt asks for last, with the marker's arguments."""
    found = [(marker.start(), marker[1], marker[2]) for marker in _MARKER.finditer(text)]
    found += [(text.rindex(words), name, "") for words, name in prompts.items() if words in text]
    return max(found)[1:] if found else None


def _put(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _PLACE.sub(lambda found: values.get(found[1], found[0]), value)
    if isinstance(value, list | tuple):
        return tuple(_put(item, values) for item in value)
    if isinstance(value, Mapping):
        return {key: _put(item, values) for key, item in value.items()}
    return value


_HELLO = {"do": "write", "path": "{path}", "content": "hello from the local model\n"}
_BUILT_IN: Mapping[str, tuple[Step, ...]] = {
    "say": (Step("{text}"),),
    "write-hello": (Step("I will write the file.", tools=(_HELLO,)), Step("Done: the file is written.")),
    "bash": (
        Step("Running a command.", tools=({"do": "bash", "command": "{cmd}"},)),
        Step("Done: the command ran."),
    ),
    "write-then-bash": (
        Step("First the file.", tools=(_HELLO,)),
        Step("Now a look.", tools=({"do": "bash", "command": "cat {path}"},)),
        Step("Done: both steps."),
    ),
    # Varied on purpose: an agent with a loop detector ends a turn that repeats itself.
    "slow": (Step(" ".join(f"word{i * 7919 % 10007}" for i in range(300)), chunk_delay=0.1),),
    "fail": (Step(status=400, error="scripted failure"),),
    "overload": (Step(status=529, error="scripted overload"),),
    "rate-limit": (Step(status=429, error="scripted rate limit", retry_after=1.0),),
    "cut": (Step("This answer never comes to its end, whoever waits for it.", cut=2),),
    "html": (Step(html=True),),
}
