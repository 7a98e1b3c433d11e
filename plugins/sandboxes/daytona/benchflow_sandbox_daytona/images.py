"""Images as Daytona's snapshots: built once for equal content, one per size that boxes are asked for in."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

import aiohttp
from benchflow_boxkit.failures import Missing
from benchflow_boxkit.images import SizedImages, build_failed, build_too_slow
from benchflow_boxkit.recipe import Recipe
from benchflow_boxkit.sizes import BoxSize
from daytona_api_client_async import CreateBuildInfo, CreateSnapshot, SnapshotDto
from obstore.store import S3Store

from benchflow_core.errors import BuildError
from benchflow_sandbox_daytona.client import DaytonaClient
from benchflow_sandbox_daytona.failures import translated

__all__ = ["DaytonaImages", "remove_snapshot"]

_FAILED: Final = ("error", "build_failed", "removing")
_READY: Final = "active"
_LOG: Final = 64 * 1024


class DaytonaImages(SizedImages):
    def __init__(self, client: DaytonaClient, default: BoxSize) -> None:
        super().__init__(default)
        self._client = client

    async def find(self, recipe: Recipe) -> str | None:
        name = self.name(recipe.key)
        found = await self._get(name)
        if found is None:
            return None
        if _state(found) in _FAILED:
            await remove_snapshot(self._client, found.id)
            return None
        await self._wait(found, recipe.name, recipe.timeout)
        return name

    async def build(self, recipe: Recipe, context: Path) -> str:
        # A Dockerfile of the context takes the place of the one that a build is asked for with.
        await asyncio.to_thread((context / "Dockerfile").write_text, recipe.text)
        digest = await self._push(context)
        build = CreateBuildInfo(dockerfile_content=recipe.text, context_hashes=[digest])
        name = self.name(recipe.key)
        await self._create(name, build, self._default, recipe.name, recipe.timeout)
        return name

    async def _resize(self, name: str, wanted: str, size: BoxSize) -> None:
        if await self._get(wanted) is not None:
            return
        found = await self._get(name)
        if found is None or found.build_info is None:
            raise BuildError(f"Daytona: the snapshot {name} is gone.", retryable=True)
        info = found.build_info
        build = CreateBuildInfo(
            dockerfile_content=str(info.dockerfile_content), context_hashes=list(info.context_hashes or [])
        )
        await self._create(wanted, build, size, wanted, 600.0)

    # --- requests --------------------------------------------------------------------------------------------------

    async def _get(self, name: str) -> SnapshotDto | None:
        try:
            with translated(f"the snapshot {name} cannot be looked up"):
                return await self._client.snapshots.get_snapshot(name)
        except Missing:
            return None

    async def _create(self, name: str, build: CreateBuildInfo, size: BoxSize, who: str, timeout: float) -> None:
        more: dict[str, Any] = {"gpu": size.gpus} if size.gpus else {}
        if size.gpu_types:
            more["gpu_type"] = [kind.upper() for kind in size.gpu_types]
        asked = CreateSnapshot(
            name=name,
            build_info=build,
            cpu=int(size.cpus),
            memory=size.memory,
            disk=size.disk,
            region_id=self._client.settings.target,
            **more,
        )
        with translated(f"{who} cannot be built"):
            try:
                made = await self._client.snapshots.create_snapshot(asked)
            except Exception as error:
                if getattr(error, "status", None) != 409:
                    raise
                made = await self._client.snapshots.get_snapshot(name)  # somebody else was first
        try:
            await self._wait(made, who, timeout)
        except BaseException:
            with contextlib.suppress(Exception):
                await asyncio.shield(remove_snapshot(self._client, made.id))
            raise

    async def _wait(self, made: SnapshotDto, who: str, timeout: float) -> None:
        """Wait until a snapshot can be used. While it is built we follow its log instead of asking for its state."""
        pause = 0.1
        log = ""
        try:
            async with asyncio.timeout(timeout):
                while _state(made) != _READY:
                    if _state(made) in _FAILED:
                        log = log or await self._log(made)
                        raise build_failed(who, str(made.error_reason or _state(made)), log)
                    if _state(made) == "building":
                        log = await self._log(made)
                    else:
                        await asyncio.sleep(pause)
                        pause = min(pause * 1.7, 3.0)
                    with translated(f"{who} cannot be looked up"):
                        made = await self._client.snapshots.get_snapshot(made.id)
                    if _state(made) == "building":
                        await asyncio.sleep(pause)
                        pause = min(pause * 1.7, 3.0)
        except TimeoutError as error:
            raise build_too_slow(who, "Daytona", timeout) from error

    async def _log(self, made: SnapshotDto) -> str:
        tail = b""
        try:
            url = (await self._client.snapshots.get_snapshot_build_logs_url(made.id)).url
            async with (
                aiohttp.ClientSession(headers=self._client.headers, trust_env=True) as session,
                session.get(f"{url}?follow=true", timeout=aiohttp.ClientTimeout(total=None)) as answer,
            ):
                async for part in answer.content.iter_any():
                    tail = (tail + part)[-_LOG:]
        except Exception:
            return tail.decode(errors="replace")
        return tail.decode(errors="replace")

    # --- the context -----------------------------------------------------------------------------------------------

    async def _push(self, folder: Path) -> str:
        """To the object storage that Daytona gives access to, unless it is there already."""
        with tempfile.TemporaryFile() as file:
            digest = await asyncio.to_thread(_pack, folder, file)
            with translated("there is no access to the storage for builds"):
                access = await self._client.storage.get_push_access()
            store = S3Store(
                bucket=access.bucket,
                endpoint=access.storage_url,
                region=access.region,
                access_key_id=access.access_key,
                secret_access_key=access.secret,
                session_token=access.session_token,
                client_options={"allow_http": access.storage_url.startswith("http://")},
            )
            key = f"{access.organization_id}/{digest}/context.tar"
            with translated("the build context cannot be uploaded"):
                try:
                    await store.head_async(key)
                except FileNotFoundError:
                    await store.put_async(key, file, chunk_size=8 << 20, max_concurrency=4)
        return digest


async def remove_snapshot(client: DaytonaClient, identity: str) -> None:
    with contextlib.suppress(Missing), translated(f"the snapshot {identity} cannot be removed"):
        await client.snapshots.remove_snapshot(identity)


def _state(snapshot: SnapshotDto) -> str:
    return str(getattr(snapshot.state, "value", snapshot.state))


def _pack(folder: Path, file: io.BufferedRandom) -> str:
    """The same bytes for the same content. Plain files: Daytona's builder takes nothing else from an archive."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime = 0
        return info

    with tarfile.open(fileobj=file, mode="w", dereference=True) as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
                tar.add(path, path.relative_to(folder), filter=plain)
    file.seek(0)
    digest = hashlib.file_digest(file, "md5").hexdigest()
    file.seek(0)
    return digest
