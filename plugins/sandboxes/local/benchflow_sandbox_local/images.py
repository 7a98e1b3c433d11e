"""`prepare`: from what a task asks for to layers on disk."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchflow_boxkit.dockerfile import Dockerfile
from benchflow_boxkit.layering import install_failed, install_timed_out

from benchflow_core.contracts.common import Layer
from benchflow_core.contracts.sandboxes import ImageRef, ImageRequest
from benchflow_core.errors import BuildError, CapabilityMissing, ConfigurationError
from benchflow_sandbox_local import host, store
from benchflow_sandbox_local.dockerfile import without
from benchflow_sandbox_local.dockerfile.build import Builder, Built
from benchflow_sandbox_local.dockerfile.ignore import Context
from benchflow_sandbox_local.engine import Engine, Layering
from benchflow_sandbox_local.plainplan import claimed
from benchflow_sandbox_local.refusing import read_dockerfile
from benchflow_sandbox_local.sandbox import BUILDING, LocalSandbox

__all__ = ["Images"]

WORKDIR = "/app"
_FORMAT = "2"
"""Of `image.json`: a cached image of another is not looked at."""
_REMEDY = "Allow it with --allow-substitute, or use a sandbox with the capability {capability}."
OpenBox = Callable[[ImageRef, Mapping[str, str]], Awaitable[LocalSandbox]]
"""A box for building: on this image, with these folders of ours writable in it."""


class Images:
    def __init__(self, engine: Engine, open_box: OpenBox, path: str) -> None:
        self._engine, self._open_box, self._path = engine, open_box, path
        self._locks = store.Locks(engine.state / "locks")
        self._building = asyncio.Semaphore(max(1, engine.context.build_concurrency))

    async def image(self, request: ImageRequest) -> ImageRef:
        if request.compose is not None:
            raise CapabilityMissing(
                f"{request.compose.name} asks for several services; the embedded sandbox runs one.",
                remedy="Use a sandbox with the capability compose.",
            )
        if request.dockerfile is not None:
            return await self._from_dockerfile(request, request.dockerfile)
        if request.image is None:
            return ImageRef(ref="local:host", workdir=WORKDIR, meta=Layering().meta())
        if not request.allow_substitute:
            raise CapabilityMissing(
                f"The embedded sandbox cannot run the image {request.image}: it has only this host's programs.",
                remedy=_REMEDY.format(capability="image-prebuilt"),
            )
        notice = f"image {request.image} substituted by this host's {_host_name()}"
        return ImageRef("local:host", "substituted", workdir=WORKDIR, notices=(notice,), meta=Layering().meta())

    # --- Dockerfiles -----------------------------------------------------------------------------------------------

    async def _from_dockerfile(self, request: ImageRequest, path: Path) -> ImageRef:
        recipe = read_dockerfile(path)
        places = claimed(without.places(recipe)) if self._engine.plain else ()
        wanted = request.base_override or recipe.stages[-1].base
        if not request.allow_substitute:
            raise CapabilityMissing(
                f"{path.name}: FROM {wanted}: the embedded sandbox has only this host's programs, not that image.",
                remedy=_REMEDY.format(capability="image-build"),
            )
        context = Context.of(request.context, path) if request.context else None
        key = await asyncio.to_thread(self._key, request, path.read_text(), context)
        folder = self._engine.state / "images" / key
        async with self._locks.hold(f"image-{key}"):
            if not (folder / "image.json").is_file():
                async with self._building:
                    await self._build(request, recipe, context, folder, places)
        known = json.loads((folder / "image.json").read_text())
        notice = f"FROM {wanted} substituted by this host's {_host_name()}"
        return ImageRef(
            ref=f"local:images/{key}",
            fidelity="substituted",
            digest=f"sha256:{key}",
            workdir=known["workdir"] or WORKDIR,
            env=known["env"],
            user=known["user"],
            main=(*known["meta"].get("entrypoint", ()), *known["meta"].get("cmd", ())),
            notices=(notice, *known["notices"]),
            meta={
                **Layering(tuple(known["layers"]), {}, tuple(known["repositories"]), places).meta(),
                **known["meta"],
            },
        )

    def _key(self, request: ImageRequest, text: str, context: Context | None) -> str:
        facts = self._engine.facts
        ways = f"{facts['stage']} {facts['idmap']} {facts['single_user']} {self._engine.layout.base} {self._path}"
        parts = [_FORMAT, host.host_identity(), ways, text, json.dumps(dict(request.build_args), sort_keys=True)]
        if context is not None:
            parts.append(store.tree_digest(context.root))
        return store.digest(parts)[:24]

    async def _build(
        self,
        request: ImageRequest,
        recipe: Dockerfile,
        context: Context | None,
        folder: Path,
        places: tuple[str, ...],
    ) -> None:
        engine, name = self._engine, f"images/{folder.name}"
        if folder.exists():
            await engine.job("discard", paths=[name])
        folder.mkdir()

        repositories: dict[str, list[str]] = {}

        def recipe_of(layers: Sequence[str]) -> Layering:
            """`layers` themselves, and what is known about them."""
            found = {path for layer in layers for path in repositories[layer]}
            return Layering(tuple(layers if engine.layout.stage == 1 else layers[:1]), {}, tuple(sorted(found)), places)

        async def open_box(layers: tuple[str, ...]) -> LocalSandbox:
            return await self._open_box(ImageRef(BUILDING, workdir="/", meta=recipe_of(layers).meta()), {})

        async def keep(box: LocalSandbox, number: int) -> str:
            layer = f"{name}/{number}"
            repositories[layer] = await box.into_layer(layer)
            return layer

        builder = Builder(recipe, context, request.build_args, self._path, open_box, keep)
        try:
            async with asyncio.timeout(request.timeout):
                built = await builder.build()
            _write_json(folder / "image.json", _describe(built, recipe_of(built.layers), builder.notices))
        except BaseException as error:
            with contextlib.suppress(OSError):
                await asyncio.shield(engine.job("discard", paths=[name]))
            if isinstance(error, TimeoutError):
                raise BuildError(f"{recipe.path}: the build took longer than {request.timeout:.0f} s.") from error
            raise

    # --- layers ----------------------------------------------------------------------------------------------------

    async def add_layers(self, image: ImageRef, layers: Sequence[Layer]) -> ImageRef:
        recipe = Layering.of(image.meta)
        shown, ours = dict(recipe.shown), dict[str, str]()
        for layer in layers:
            ours[_prefix(layer)] = await self._layer(layer, ours)
        shown |= ours
        key = store.digest([image.ref, json.dumps(shown, sort_keys=True)])[:12] if layers else ""
        meta = {**image.meta, **replace(recipe, shown=shown).meta()}
        return replace(image, ref=f"{image.ref}+{key}" if key else image.ref, meta=meta)

    async def _layer(self, layer: Layer, earlier: Mapping[str, str]) -> str:
        parts: list[str | bytes] = [host.host_identity(), layer.key, layer.prefix, repr(layer.install)]
        parts += [json.dumps(dict(layer.env), sort_keys=True), self._path]
        for path, data in sorted(layer.files.items()):
            parts += [path, data]
        name = f"layers/{store.digest(parts)[:24]}"
        async with self._locks.hold(name.replace("/", "-")):
            if not (self._engine.state / f"{name}.done").is_file():
                async with self._building:
                    await self._make_layer(layer, name, earlier)
        return name

    async def _make_layer(self, layer: Layer, name: str, earlier: Mapping[str, str]) -> None:
        """In its final place, since programs remember where they were installed; the mark comes last."""
        folder = self._engine.state / name
        await self._engine.job("discard", paths=[name])
        folder.mkdir()
        try:
            folder.chmod(0o755)
            _write_files(layer, folder)
            if layer.install:
                await self._install(layer, name, earlier)
            (self._engine.state / f"{name}.done").touch()
        except BaseException:
            await asyncio.shield(self._engine.job("discard", paths=[name]))
            raise

    async def _install(self, layer: Layer, source: str, earlier: Mapping[str, str]) -> None:
        image = ImageRef(BUILDING, workdir="/", meta=Layering(shown=earlier).meta())
        box = await self._open_box(image, {_prefix(layer): source})
        try:
            async with asyncio.timeout(layer.timeout):
                for command in layer.install:
                    argv = [part.replace("{prefix}", layer.prefix) for part in command]
                    done = await box.exec(argv, cwd=layer.prefix, env=dict(layer.env), user="root", max_output=1 << 20)
                    if done.exit_code:
                        raise install_failed(layer, argv[0], done.exit_code, done.stdout + done.stderr)
        except TimeoutError as error:
            raise install_timed_out(layer) from error
        finally:
            await asyncio.shield(box.stop())


def _prefix(layer: Layer) -> str:
    prefix = os.path.normpath(layer.prefix)
    if not prefix.startswith("/") or prefix.count("/") < 2:
        raise ConfigurationError(
            f"Layer {layer.key}: the prefix {layer.prefix!r} is not an absolute path below a folder."
        )
    return prefix


def _write_files(layer: Layer, folder: Path) -> None:
    for name, data in layer.files.items():
        path = folder / name
        if os.path.isabs(name) or ".." in Path(name).parts:
            raise ConfigurationError(f"Layer {layer.key}: the file {name!r} lies outside its prefix.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if data.startswith(b"#!") else 0o644)
    for below, _, _ in os.walk(folder):
        os.chmod(below, 0o755)


def _describe(built: Built, recipe: Layering, notices: list[str]) -> dict[str, object]:
    return {
        "layers": list(recipe.layers),
        "repositories": list(recipe.repositories),
        "workdir": built.workdir,
        "env": built.env,
        "user": built.user,
        "meta": built.meta,
        "notices": notices,
    }


def _write_json(path: Path, data: dict[str, object]) -> None:
    making = path.with_suffix(".new")
    making.write_text(json.dumps(data))
    making.replace(path)


def _host_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/etc/os-release").read_text(errors="replace").splitlines():
            if line.startswith("PRETTY_NAME="):
                return line.partition("=")[2].strip().strip('"')
    return "system"
