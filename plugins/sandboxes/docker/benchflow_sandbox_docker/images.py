"""`prepare`: from what a task asks for to an image in the engine, built at most once for equal content."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchflow_boxkit import context as contexts
from benchflow_boxkit import dockerfile, leases
from benchflow_boxkit.locks import file_lock

from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import ImageRef, ImageRequest, SandboxContext
from benchflow_core.errors import BenchflowError, BuildError, ConfigurationError, InfrastructureError, TaskError
from benchflow_sandbox_docker import archives, buildkit
from benchflow_sandbox_docker.engine.api import EngineClient
from benchflow_sandbox_docker.engine.http import EngineError

__all__ = ["EngineImages", "reference"]

_REPOSITORY: Final = "benchflow-task"


@dataclass(frozen=True, slots=True)
class FoundImage:
    """An image in the engine, and the one that agents' layers are made on."""

    name: str
    details: Mapping[str, Any]
    base: str
    notices: tuple[str, ...] = ()
    substituted: bool = False


class EngineImages:
    def __init__(self, engine: EngineClient, context: SandboxContext) -> None:
        self._engine, self._context = engine, context
        self._locks = context.cache_dir / "docker" / "locks"
        self._building = asyncio.Semaphore(max(1, context.build_concurrency))
        self._making: dict[str, asyncio.Lock] = {}

    async def find(self, request: ImageRequest) -> FoundImage:
        if request.dockerfile is not None:
            return await self._from_dockerfile(request, request.dockerfile)
        if request.image is not None:
            return await self._prebuilt(request, request.base_override or request.image)
        if request.base_override:
            return await self._prebuilt(request, request.base_override)
        raise ConfigurationError(
            "The task names no image and has no Dockerfile.",
            remedy="Add environment/Dockerfile or docker_image to the task, or give --base-image-override.",
        )

    async def _prebuilt(self, request: ImageRequest, name: str) -> FoundImage:
        details = await self._engine.image(name) or await self._pull(name, request.platform)
        substituted = request.image is not None and name != request.image
        notices = (f"image {request.image} substituted by {name}",) if substituted else ()
        return FoundImage(name, details, str(details["Id"]), notices, substituted)

    async def _pull(self, name: str, platform: str | None) -> dict[str, Any]:
        key = f"pull-{name}"
        async with self._making.setdefault(key, asyncio.Lock()):
            if found := await self._engine.image(name):
                return found
            try:
                await self._engine.pull(name, platform)
            except (EngineError, BuildError) as error:
                reason = error.reason if isinstance(error, EngineError) else error.message
                raise InfrastructureError(
                    f"The image {name} is not in the engine and cannot be pulled: {reason}.",
                    remedy="Check its name and docker login, build or load it, or give --base-image-override.",
                    retryable=isinstance(error, EngineError) and error.retryable,
                ) from error
            found = await self._engine.image(name)
        if found is None:
            raise InfrastructureError(f"The engine pulled {name} and does not have it.")
        return found

    async def _from_dockerfile(self, request: ImageRequest, path: Path) -> FoundImage:
        try:
            text = await asyncio.to_thread(path.read_text)
        except (OSError, UnicodeDecodeError) as error:
            raise TaskError(f"{path}: cannot be read as text: {error}.") from error
        recipe = dockerfile.parse(text, path.name)
        if request.base_override:
            recipe = dockerfile.override(recipe, request.base_override)
        folder = request.context or path.parent
        context = await asyncio.to_thread(contexts.Context.of, folder, path)
        key = await asyncio.to_thread(contexts.key, context, recipe.text, request)
        name = f"{_REPOSITORY}:{key}"
        async with self._making.setdefault(key, asyncio.Lock()), file_lock(self._locks / f"image-{key}"):
            details = await self._engine.image(name)
            if details is None:
                async with self._building:
                    await self._build(request, recipe, context, name)
                details = await self._engine.image(name)
        if details is None:
            raise BuildError(f"{path.name}: the engine says it built {name} and does not have it.")
        said = f"{path.name}: every FROM substituted by {request.base_override}"
        notices = (said,) if request.base_override else ()
        return FoundImage(
            name,
            details,
            await self._base(recipe.base_of(request.target), details),
            notices,
            bool(request.base_override),
        )

    async def _base(self, name: str, details: Mapping[str, Any]) -> str:
        """The image of the last stage's FROM: equal for many tasks, so that an agent is installed on it once."""
        base = await self._engine.image(name) if name else None
        return str((base or details)["Id"])

    async def _build(
        self, request: ImageRequest, recipe: dockerfile.Dockerfile, context: contexts.Context, name: str
    ) -> None:
        for base in dict.fromkeys(filter(None, recipe.images())):
            if await self._engine.image(base) is None:
                await self._pull(base, request.platform)
        file = archives.name_of(context, request.dockerfile or context.root / "Dockerfile")
        marks = leases.labels("image", self._context.labels, shared=True)
        query = {
            "t": name, "dockerfile": file, "rm": True, "forcerm": True, "labels": marks,
            "buildargs": dict(request.build_args), "platform": request.platform or "", "target": request.target or "",
        }  # fmt: skip
        try:
            async with asyncio.timeout(request.timeout):
                try:
                    await self._engine.build(query, archives.stream(context, file, recipe.text))
                except BuildError as error:
                    if error.details.get("exit_code"):
                        raise
                    # No command failed: what the builder stood on may have gone with somebody's image meanwhile.
                    await self._engine.build(query, archives.stream(context, file, recipe.text))
        except TimeoutError as error:
            raise BuildError(f"{recipe.path}: the build took longer than {request.timeout:.0f} s.") from error
        except (BuildError, EngineError) as error:
            raise _explained(recipe, error) from error


def _explained(recipe: dockerfile.Dockerfile, error: BenchflowError) -> BuildError:
    """With what the engine's builder cannot do, where the Dockerfile asks for it."""
    reason = error.reason if isinstance(error, EngineError) else error.message
    text = f"{recipe.path}: {reason}".rstrip(".")
    details = dict(error.details)
    details.setdefault("log", reason)
    tail = str(details["log"]).strip()[-600:]
    if tail and tail not in text:
        text = f"{text}; the log ends: {tail}"
    remedy = None
    if found := buildkit.needs(recipe):
        remedy = (
            f"{found[0]} needs BuildKit, which this engine's API builder does not offer: build the "
            "image with docker buildx and name it as docker_image, or write it without."
        )
    return BuildError(f"{text}.", remedy=remedy, details=details)


def reference(found: FoundImage, layers: str, runtimes: Mapping[str, str], meta: Mapping[str, Any]) -> ImageRef:
    config = found.details.get("Config") or {}
    env = dict(row.partition("=")[::2] for row in config.get("Env") or ())
    return ImageRef(
        ref=f"{found.name}+{layers}" if layers else found.name,
        fidelity="substituted" if found.substituted else "exact",
        digest=str(found.details["Id"]),
        workdir=config.get("WorkingDir") or "/",
        env=env,
        user=config.get("User") or None,
        runtimes=runtimes,
        main=(*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())),
        notices=found.notices,
        meta={
            "image": str(found.details["Id"]),
            "entrypoint": list(config.get("Entrypoint") or ()),
            "volumes": sorted(config.get("Volumes") or ()),
            **meta,
        },
    )
