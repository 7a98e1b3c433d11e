"""Carries out `COPY --from`: each stage or image is a template of its own, found by its content. A box of it packs the
files, and the archive goes into the context of the image that wants them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchflow_boxkit import package
from benchflow_boxkit.failures import Missing
from benchflow_boxkit.locks import file_lock
from benchflow_boxkit.pacing import Pace
from benchflow_boxkit.recipe import Recipe
from e2b import AsyncSandbox

from benchflow_core.errors import BuildError, SandboxLost, TransportError
from benchflow_sandbox_e2b.box import E2BMachine
from benchflow_sandbox_e2b.copies import CopyFrom
from benchflow_sandbox_e2b.dockerfiles import identity, stage_template
from benchflow_sandbox_e2b.failures import translated
from benchflow_sandbox_e2b.images import E2BImages
from benchflow_sandbox_e2b.stages import Lowered, lower, lowered

__all__ = ["StageCopier"]

_PROGRAM: Final = Path(__file__).parent / "inside" / "copying.py"
_PACKED: Final = f"{package.HOME}/copied"


class StageCopier:
    def __init__(
        self, images: E2BImages, start: Callable[[str], Awaitable[E2BMachine]], pace: Pace, locks: Path
    ) -> None:
        self._images, self._start, self._pace, self._locks = images, start, pace, locks

    async def copy_all(self, recipe: Recipe, folder: Path) -> None:
        """Put everything that this image copies from others into the folder, unless it is there."""
        await self._copy(lowered(recipe), recipe, folder)

    async def _copy(self, lowered: Lowered, recipe: Recipe, folder: Path) -> None:
        wanted: dict[int | str, list[CopyFrom]] = {}
        for copy in lowered.copies:
            if not (folder / copy.folder).exists():
                wanted.setdefault(copy.origin, []).append(copy)
        for origin, copies in wanted.items():
            name = await self._template(origin, recipe, folder)
            await self._pace.run(partial(self._fetch, name, copies, recipe, folder))

    # --- templates ----------------------------------------------------------------------------------------------------

    async def _template(self, origin: int | str, recipe: Recipe, folder: Path) -> str:
        stage = _stage(origin, recipe)
        key = await asyncio.to_thread(_key, stage, recipe, folder)
        name = self._images.name(key)
        async with file_lock(self._locks / key):
            if not await self._images.ready(name, recipe.timeout):
                await self._copy(stage, recipe, folder)
                await self._images.make(stage_template(stage, recipe.name, folder), name, recipe)
        return name

    # --- files --------------------------------------------------------------------------------------------------------

    async def _fetch(self, template: str, copies: list[CopyFrom], recipe: Recipe, folder: Path) -> None:
        machine = await self._start(template)
        try:
            async with asyncio.timeout(recipe.timeout):
                for copy in copies:
                    await self._take(machine.sandbox, copy, recipe.name, folder)
        except TimeoutError as error:
            raise BuildError(f"{recipe.name}: COPY --from took longer than {recipe.timeout:.0f} s.") from error
        except Missing as error:
            raise SandboxLost(f"{recipe.name}: the box that COPY --from copies from is gone.") from error
        finally:
            await asyncio.shield(machine.delete())

    async def _take(self, sandbox: AsyncSandbox, copy: CopyFrom, name: str, folder: Path) -> None:
        if (target := folder / copy.folder).exists():
            return
        said = await _packed(sandbox, copy, name)
        if "missing" in said:
            raise BuildError(
                f"{name}, line {copy.line}: COPY --from={copy.said}: there is no {said['missing']} in it.",
                remedy="Name a path that the stage makes.",
            )
        unfinished = target.with_name(f"{target.name}.part")
        unfinished.mkdir(parents=True, exist_ok=True)
        found = hashlib.sha256()
        what = f"{name}, line {copy.line}: the files cannot be fetched"
        with translated(what), (unfinished / "archive").open("wb") as file:
            async with await sandbox.files.read(_PACKED, format="stream", user="root") as stream:
                async for data in stream:
                    found.update(data)
                    file.write(data)
        if found.hexdigest() != said["sha256"]:
            raise TransportError(f"{name}, line {copy.line}: the files that E2B sent are not those in the box.")
        (unfinished / _PROGRAM.name).write_bytes(_PROGRAM.read_bytes())
        unfinished.rename(target)


async def _packed(sandbox: AsyncSandbox, copy: CopyFrom, name: str) -> dict[str, Any]:
    program = [package.PYTHON, "-I", "-S", "-c", _PROGRAM.read_text()]
    command = shlex.join([*program, "pack", _PACKED, package.HOME, *copy.sources])
    with translated(f"{name}, line {copy.line}: the files cannot be packed"):
        done = await sandbox.commands.run(command, user="root", cwd="/", timeout=0)
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def _stage(origin: int | str, recipe: Recipe) -> Lowered:
    if isinstance(origin, int):
        return lowered(recipe, origin)
    return lower(f"FROM {origin}\n", recipe.name)


def _key(stage: Lowered, recipe: Recipe, folder: Path) -> str:
    """Of everything that it is made from."""
    try:
        steps = identity(stage, recipe.name, folder)
    except ValueError as error:  # a COPY of what is not there
        raise BuildError(f"{recipe.name}: {error}.") from error
    found = hashlib.sha256(f"stage {package.identity()} {steps}".encode())
    for copy in stage.copies:
        found.update(repr(copy).encode() + _key(_stage(copy.origin, recipe), recipe, folder).encode())
    return found.hexdigest()[:24]
