"""Images: found by a name that is their content's, built from the Dockerfile and published under it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import modal
from benchflow_boxkit.accounts import IMAGE_PREFIX
from benchflow_boxkit.failures import Missing
from benchflow_boxkit.images import build_failed, build_too_slow
from benchflow_boxkit.recipe import DOCKERFILE, Recipe

from benchflow_core.errors import BuildError
from benchflow_sandbox_modal.client import ModalClient
from benchflow_sandbox_modal.dockerfiles import readable
from benchflow_sandbox_modal.failures import translated

__all__ = ["ModalImages"]


class ModalImages:
    def __init__(self, client: ModalClient) -> None:
        self._client = client
        self._known: dict[str, modal.Image] = {}

    def get(self, identity: str) -> modal.Image | None:
        return self._known.get(identity)

    async def find(self, recipe: Recipe) -> str | None:
        named = modal.Image.from_name(
            _name(recipe), environment_name=self._client.settings.environment, client=await self._client.sdk()
        )
        app = await self._client.app()
        try:
            with translated(f"the image of {recipe.name} cannot be looked up"):
                return self._take(await named.build.aio(app))
        except Missing:
            return None

    def _take(self, image: modal.Image) -> str:
        self._known[image.object_id] = image
        return str(image.object_id)

    async def build(self, recipe: Recipe, context: Path) -> str:
        app = await self._client.app()
        (dockerfile := context / DOCKERFILE).write_text(readable(recipe.text))
        image = modal.Image.from_dockerfile(dockerfile, context_dir=context, ignore=[])
        try:
            async with asyncio.timeout(recipe.timeout):
                with translated(f"{recipe.name} cannot be built"):
                    try:
                        await image.build.aio(app)
                    except modal.exception.ImageBuildError as error:
                        raise await self._failed(recipe, image, error) from error
                    except modal.exception.InvalidError as error:
                        raise BuildError(f"{recipe.name} cannot be built at Modal: {error}") from error
                    await image.publish.aio(
                        _name(recipe),
                        environment_name=self._client.settings.environment,
                        client=await self._client.sdk(),
                    )
        except TimeoutError as error:
            raise build_too_slow(recipe.name, "Modal", recipe.timeout) from error
        except Missing as error:
            raise BuildError(str(error)) from error
        return self._take(image)

    async def _failed(self, recipe: Recipe, image: modal.Image, error: Exception) -> BuildError:
        log = ""
        try:
            async with asyncio.timeout(20):
                log = "".join([entry.message async for entry in image.logs.tail.aio(200)])
        except Exception as failure:
            log = f"(no log: {type(failure).__name__} {failure})"
        return build_failed(recipe.name, str(error), log)


def _name(recipe: Recipe) -> str:
    return f"{IMAGE_PREFIX}{recipe.key}"
