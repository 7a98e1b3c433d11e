"""Following a Dockerfile in boxes: one for each stage that is needed, on the host's own programs instead of FROM."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, Final

from benchflow_boxkit.dockerfile import Dockerfile, Instruction, Stage, platform_arguments
from benchflow_boxkit.expansion import Unsupported, assignments, expand, words
from benchflow_boxkit.interpreter import machine

from benchflow_core.contracts.quick import dataclass
from benchflow_core.errors import BuildError, CapabilityMissing, TaskError, TransferRefused
from benchflow_sandbox_local.dockerfile import copying
from benchflow_sandbox_local.dockerfile.ignore import Context
from benchflow_sandbox_local.sandbox import LocalSandbox

__all__ = ["Builder", "Built", "needed_stages"]

_LOG: Final = 8000
_QUIET: Final = frozenset({"EXPOSE", "LABEL", "MAINTAINER", "STOPSIGNAL"})

OpenBox = Callable[[tuple[str, ...]], Awaitable[LocalSandbox]]
"""A box on these layers."""


@dataclass(slots=True)
class Built:
    """What a stage came to."""

    layers: tuple[str, ...] = ()
    workdir: str = ""
    env: dict[str, str] = field(default_factory=dict)
    user: str | None = None
    shell: list[str] = field(default_factory=lambda: ["/bin/sh", "-c"])
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Builder:
    recipe: Dockerfile
    context: Context | None
    build_args: Mapping[str, str]
    path: str
    """PATH before any ENV."""
    open_box: OpenBox
    keep: Callable[[LocalSandbox, int], Awaitable[str]]
    """Turn a box into the layer of a stage."""
    notices: list[str] = field(default_factory=list)
    _done: dict[int, Built] = field(default_factory=dict)
    _readers: dict[int, LocalSandbox] = field(default_factory=dict)

    async def build(self) -> Built:
        try:
            for number in needed_stages(self.recipe, self._globals()):
                self._done[number] = await self._stage(number, self.recipe.stages[number])
            return self._done[len(self.recipe.stages) - 1]
        finally:
            for box in self._readers.values():
                await asyncio.shield(box.stop())

    def _globals(self) -> dict[str, str]:
        values = platform_arguments(machine())
        for line in self.recipe.globals:
            values |= _arguments(line, values, self.build_args, {}, self.recipe)
        return values

    async def _stage(self, number: int, stage: Stage) -> Built:
        base = self.recipe.stage_number(expand(stage.base, self._globals(), self.recipe.escape), number)
        before = self._done[base] if base is not None else Built()
        built = Built(
            before.layers, before.workdir, dict(before.env), before.user, list(before.shell), dict(before.meta)
        )
        box = await self.open_box(before.layers)
        try:
            run = _Run(self, box, built, self._globals())
            for instruction in stage.instructions:
                await run.step(instruction)
            built.layers = (await self.keep(box, number), *before.layers)
        finally:
            await asyncio.shield(box.stop())
        return built

    async def reader(self, name: str, where: str) -> LocalSandbox:
        number = self.recipe.stage_number(name, len(self.recipe.stages))
        if number is None or number not in self._done:
            raise CapabilityMissing(
                f"{where}: COPY --from={name} names an image; the embedded sandbox has no images.",
                remedy="Use a sandbox with the capability image-build.",
            )
        if number not in self._readers:
            self._readers[number] = await self.open_box(self._done[number].layers)
        return self._readers[number]


def needed_stages(recipe: Dockerfile, values: Mapping[str, str]) -> list[int]:
    """The last stage and those it stands on or copies from, in order."""
    wanted, pending = set(), [len(recipe.stages) - 1]
    while pending:
        number = pending.pop()
        if number in wanted:
            continue
        wanted.add(number)
        stage = recipe.stages[number]
        names = [expand(stage.base, values, recipe.escape)]
        names += [value for i in stage.instructions for flag, value in i.flags if flag == "from"]
        pending += [n for n in (recipe.stage_number(name, number) for name in names) if n is not None]
    return sorted(wanted)


def _arguments(
    line: Instruction, values: Mapping[str, str], given: Mapping[str, str], outer: Mapping[str, str], recipe: Dockerfile
) -> dict[str, str]:
    """Names and values of an ARG line; one without any value is left out."""
    found = {}
    for word in words(line.text, values, recipe.escape):
        name, equals, default = word.partition("=")
        if name in given:
            found[name] = given[name]
        elif equals:
            found[name] = default
        elif name in outer:
            found[name] = outer[name]
    return found


class _Run:
    """The instructions of one stage, carried out in its box."""

    def __init__(self, builder: Builder, box: LocalSandbox, built: Built, outer: dict[str, str]) -> None:
        self.builder, self.box, self.built, self.outer = builder, box, built, outer
        self.args: dict[str, str] = {}

    @property
    def values(self) -> dict[str, str]:
        return {"PATH": self.builder.path, **self.args, **self.built.env}

    @property
    def workdir(self) -> str:
        return self.built.workdir or "/"

    def where(self, instruction: Instruction) -> str:
        return f"{self.builder.recipe.path}:{instruction.line}"

    async def step(self, instruction: Instruction) -> None:
        name = instruction.name
        try:
            if name in _QUIET:
                return
            await getattr(self, f"do_{name.lower()}")(instruction)
        except Unsupported as error:
            raise TaskError(f"{self.where(instruction)}: {error}.") from error
        except TransferRefused as error:
            raise TaskError(f"{self.where(instruction)}: {error}") from error

    def refuse(self, instruction: Instruction, what: str) -> CapabilityMissing:
        return CapabilityMissing(
            f"{self.where(instruction)}: {what} is not supported by the embedded sandbox.",
            remedy="Use a sandbox with the capability image-build.",
        )

    async def do_env(self, line: Instruction) -> None:
        self.built.env |= assignments(line.text, self.values, self.builder.recipe.escape)

    async def do_arg(self, line: Instruction) -> None:
        builder = self.builder
        self.args |= _arguments(line, self.values, builder.build_args, self.outer, builder.recipe)

    async def do_workdir(self, line: Instruction) -> None:
        path = expand(line.text, self.values, self.builder.recipe.escape)
        self.built.workdir = os.path.normpath(os.path.join(self.workdir, path))
        await self.execute(line, ["mkdir", "-p", self.built.workdir], cwd="/", user="root")

    async def do_user(self, line: Instruction) -> None:
        user = expand(line.text, self.values, self.builder.recipe.escape)
        self.built.user = None if user in ("root", "0", "0:0", "root:root") else user

    async def do_shell(self, line: Instruction) -> None:
        shell = line.array()
        if not shell:
            raise TaskError(f"{self.where(line)}: SHELL takes a JSON array.", remedy='Write SHELL ["/bin/bash", "-c"].')
        self.built.shell = shell

    async def do_cmd(self, line: Instruction) -> None:
        self.built.meta["cmd"] = line.array() or [*self.built.shell, line.text]

    async def do_entrypoint(self, line: Instruction) -> None:
        self.built.meta["entrypoint"] = line.array() or [*self.built.shell, line.text]
        self.note("ENTRYPOINT and CMD are recorded, not run")

    async def do_healthcheck(self, line: Instruction) -> None:
        self.note("HEALTHCHECK is not run")

    async def do_volume(self, line: Instruction) -> None:
        paths = line.array() or words(line.text, self.values, self.builder.recipe.escape)
        await self.execute(line, ["mkdir", "-p", "--", *paths], cwd="/", user="root")

    async def do_onbuild(self, line: Instruction) -> None:
        raise self.refuse(line, "ONBUILD")

    async def do_copy(self, line: Instruction) -> None:
        array, escape = line.array(), self.builder.recipe.escape
        text = array if array is not None else words(line.text, self.values, escape)
        expanded = [expand(w, self.values, escape) for w in text] if array is not None else text
        where = self.where(line)
        order = copying.CopyOrder(
            line, where, expanded, self.workdir, self.values, self.box, self.builder.context,
            lambda name: self.builder.reader(expand(name, self.values), where),
        )  # fmt: skip
        await copying.copy(order)

    do_add = do_copy

    async def do_run(self, line: Instruction) -> None:
        for flag, value in line.flags:
            await self._run_flag(line, flag, value)
        array = line.array()
        stdin = None
        if array is not None:
            argv = array
        elif line.heredocs and re.fullmatch(r"<<-?[\"']?[A-Za-z0-9_.]+[\"']?", line.text):
            argv, stdin = self._script(line.heredocs[0].text)
        else:
            bodies = "".join(f"\n{h.text}{h.name}" for h in line.heredocs)
            argv = [*self.built.shell, line.text + bodies]
        await self.execute(line, argv, stdin=stdin)

    def _script(self, text: str) -> tuple[list[str], bytes | None]:
        if not text.startswith("#!"):
            return [*self.built.shell, text], None
        script = 'f=$(mktemp) && cat >"$f" && chmod 700 "$f" && "$f"; code=$?; rm -f "$f"; exit $code'
        return ["/bin/sh", "-c", script], text.encode()

    async def _run_flag(self, line: Instruction, flag: str, value: str) -> None:
        options = dict(part.partition("=")[::2] for part in value.split(","))
        kind = options.get("type", "bind")
        target = options.get("target") or options.get("dst") or options.get("destination")
        if flag == "mount" and kind in ("cache", "tmpfs") and target:
            path = expand(target, self.values)
            await self.execute(line, ["mkdir", "-p", os.path.join(self.workdir, path)], cwd="/", user="root")
            self.note(f"RUN --mount=type={kind} is an ordinary folder of the image")
        elif not (flag == "network" and value == "default"):
            raise self.refuse(line, f"RUN --{flag}={value.partition(',')[0]}")

    async def execute(
        self,
        line: Instruction,
        argv: list[str],
        *,
        cwd: str | None = None,
        user: str | None = None,
        stdin: bytes | None = None,
    ) -> None:
        env = {**self.args, **self.built.env}
        who = user or self.built.user
        done = await self.box.exec(argv, cwd=cwd or self.workdir, env=env, user=who, stdin=stdin, max_output=1 << 20)
        if done.exit_code == 0:
            return
        log = (done.stdout + done.stderr).decode(errors="replace")[-_LOG:]
        shown = line.text if len(line.text) < 120 else f"{line.text[:117]}..."
        last = next((row for row in reversed(log.splitlines()) if row.strip()), "it printed nothing")
        what = f"{line.name} {json.dumps(shown)[1:-1]} ended with {done.exit_code}"
        raise BuildError(
            f"{self.where(line)}: {what}: {last.strip()[:300]}",
            details={"log": log, "line": line.line, "exit_code": done.exit_code},
        )

    def note(self, text: str) -> None:
        if text not in self.builder.notices:
            self.builder.notices.append(text)
