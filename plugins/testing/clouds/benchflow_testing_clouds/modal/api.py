"""The control plane: apps, uploads, images and sandboxes."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from typing import Any

from grpclib import Status
from modal_proto import api_pb2
from modal_proto.api_grpc import ModalClientBase

from benchflow_testing_clouds.ledger import Ledger
from benchflow_testing_clouds.modal.commands import ExecCommand
from benchflow_testing_clouds.modal.service import GrpcService
from benchflow_testing_clouds.modal.state import KnownModalSandbox, ModalWorld, identity, refuse

__all__ = ["TOKEN", "ModalApi"]

TOKEN = ("ak-local-test", "as-local-test-secret")
BUILDER = "2026.10"
_RESULT = api_pb2.GenericResult
_PAGE = 100


def jwt(subject: str) -> str:
    """In the shape that the SDK reads the term from."""

    def part(data: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'sub': subject, 'exp': int(time.time()) + 3600})}.x"


class ModalApi(GrpcService):
    base = ModalClientBase

    def __init__(self, world: ModalWorld, ledger: Ledger) -> None:
        super().__init__(ledger)
        self.world = world
        self.url = ""
        self.blobs_url = ""
        self._auth = jwt("account")

    def authorize(self, name: str, metadata: Any) -> None:
        if (metadata.get("x-modal-token-id"), metadata.get("x-modal-token-secret")) != TOKEN:
            raise refuse(Status.UNAUTHENTICATED, "Token ID is malformed or the secret does not belong to it")
        if name.endswith("V2") and metadata.get("x-modal-auth-token") != self._auth:
            self.ledger.violation(f"{name}: without the token of AuthTokenGet")
            raise refuse(Status.UNAUTHENTICATED, "x-modal-auth-token is missing")

    async def dies(self, request: Any) -> None:
        if getattr(request, "sandbox_id", ""):
            await self.world.end(self.world.sandbox(request.sandbox_id), _RESULT(status=_RESULT.GENERIC_STATUS_FAILURE))

    # --- the account ------------------------------------------------------------------------------------------------

    async def ClientHello(self, stream: Any, _: Any, __: Any) -> None:
        await stream.send_message(api_pb2.ClientHelloResponse(image_builder_version=BUILDER))

    async def AuthTokenGet(self, stream: Any, _: Any, __: Any) -> None:
        await stream.send_message(api_pb2.AuthTokenGetResponse(token=self._auth))

    async def EnvironmentGetOrCreate(self, stream: Any, request: Any, __: Any) -> None:
        settings = api_pb2.EnvironmentSettings(image_builder_version=BUILDER)
        metadata = api_pb2.EnvironmentMetadata(name=request.deployment_name or "main", settings=settings)
        await stream.send_message(api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-local", metadata=metadata))

    async def AppGetOrCreate(self, stream: Any, request: Any, __: Any) -> None:
        name = request.app_name
        if name not in self.world.apps:
            if request.object_creation_type != api_pb2.OBJECT_CREATION_TYPE_CREATE_IF_MISSING:
                raise refuse(Status.NOT_FOUND, f"App '{name}' not found")
            self.world.apps[name] = identity("ap")
        await stream.send_message(api_pb2.AppGetOrCreateResponse(app_id=self.world.apps[name]))

    # --- uploads ----------------------------------------------------------------------------------------------------

    async def MountBatchedCheckExistence(self, stream: Any, request: Any, __: Any) -> None:
        missing = [digest for digest in request.sha256_hex_hashes if not self.world.stored(digest).exists()]
        await stream.send_message(api_pb2.MountBatchedCheckExistenceResponse(missing_sha256_hex_hashes=missing))

    async def MountPutFile(self, stream: Any, request: Any, __: Any) -> None:
        digest, exists = request.sha256_hex, True
        if request.WhichOneof("data_oneof") == "data":
            self.world.put(digest, request.data)
        elif request.data_blob_id:
            self.world.put(digest, (self.world.folder / request.data_blob_id).read_bytes())
        else:
            exists = self.world.stored(digest).exists()
        await stream.send_message(api_pb2.MountPutFileResponse(exists=exists))

    async def BlobCreate(self, stream: Any, request: Any, __: Any) -> None:
        blob = identity("bl")
        url = api_pb2.UploadUrlList(items=[f"{self.blobs_url}/{blob}"])
        answer = api_pb2.BlobCreateResponse(blob_id=blob, blob_ids=[blob], upload_urls=url)
        await stream.send_message(answer)

    async def MountGetOrCreate(self, stream: Any, request: Any, __: Any) -> None:
        files = {file.filename: (file.sha256_hex, file.mode) for file in request.files}
        for name, (digest, _) in files.items():
            if ".." in name.split("/") or not self.world.stored(digest).exists():
                raise refuse(Status.INVALID_ARGUMENT, f"{name} cannot be in a mount")
        digest = hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()
        mount = "mo-" + digest[:22]
        self.world.mounts[mount] = files
        metadata = api_pb2.MountHandleMetadata(content_checksum_sha256_hex=digest)
        await stream.send_message(api_pb2.MountGetOrCreateResponse(mount_id=mount, handle_metadata=metadata))

    # --- images -----------------------------------------------------------------------------------------------------

    async def ImageGetOrCreate(self, stream: Any, request: Any, __: Any) -> None:
        asked = request.image
        if asked.HasField("build_function") or asked.secret_ids or asked.volume_mounts:
            self.ledger.violation("ImageGetOrCreate: this server builds from Dockerfile commands only")
            raise refuse(Status.UNIMPLEMENTED, "not here")
        image = self.world.make_image(asked, request.force_build)
        await stream.send_message(api_pb2.ImageGetOrCreateResponse(image_id=image.id, result=image.result))

    async def ImageJoinStreaming(self, stream: Any, request: Any, __: Any) -> None:
        image = self.world.image(request.image_id)
        if image.task is not None:
            await asyncio.wait([image.task], timeout=request.timeout or 55)
        if image.log and request.last_entry_id != "1":
            logs = [api_pb2.TaskLogs(data=image.log)]
            await stream.send_message(api_pb2.ImageJoinStreamingResponse(task_logs=logs, entry_id="1"))
        if image.result.status:
            await stream.send_message(api_pb2.ImageJoinStreamingResponse(result=image.result, entry_id="1", eof=True))

    async def ImageBuildChainGet(self, stream: Any, request: Any, __: Any) -> None:
        image = self.world.image(request.image_id)
        step = api_pb2.ImageBuildStep(image_id=image.id, builder_app_id="ap-builder", builder_task_id=image.builder)
        step.started_at.FromMilliseconds(int(image.began * 1000))
        step.finished_at.FromMilliseconds(int(image.ended * 1000) + 1)
        await stream.send_message(api_pb2.ImageBuildChainGetResponse(build_steps=[step]))

    async def AppFetchLogs(self, stream: Any, request: Any, __: Any) -> None:
        """Of builds."""
        since, until = request.since.ToMilliseconds(), request.until.ToMilliseconds()
        batches = []
        for image in self.world.images.values():
            if image.builder == request.task_id and since <= int(image.ended * 1000) <= until:
                lines = image.log.splitlines(keepends=True)[-(request.limit or 100) :]
                items = [api_pb2.TaskLogs(data=line, timestamp=image.ended) for line in lines]
                batches.append(api_pb2.TaskLogsBatch(task_id=image.builder, items=items, image_id=image.id))
        await stream.send_message(api_pb2.AppFetchLogsResponse(batches=batches))

    async def ImageFromId(self, stream: Any, request: Any, __: Any) -> None:
        await stream.send_message(api_pb2.ImageFromIdResponse(image_id=self.world.image(request.image_id).id))

    async def ImagePublish(self, stream: Any, request: Any, __: Any) -> None:
        self.world.names[request.tag] = self.world.image(request.image_id).id
        await stream.send_message(api_pb2.ImagePublishResponse(image_id=request.image_id, revision_id=identity("rv")))

    async def ImageGetByTag(self, stream: Any, request: Any, __: Any) -> None:
        found = self.world.names.get(request.tag)
        if found is None or found not in self.world.images:
            raise refuse(Status.NOT_FOUND, f"Image '{request.tag}' not found")
        await stream.send_message(api_pb2.ImageGetByTagResponse(image_id=found))

    # --- sandboxes --------------------------------------------------------------------------------------------------

    async def _create(self, request: Any, v2: bool) -> KnownModalSandbox:
        if request.app_id not in self.world.apps.values():
            raise refuse(Status.NOT_FOUND, f"App {request.app_id} not found")
        if (not v2 and request.definition.secret_ids) or request.definition.volume_mounts:
            self.ledger.violation("SandboxCreate: this server has no secrets and no volumes")
        tags = {tag.tag_name: tag.tag_value for tag in request.tags}
        return await self.world.create(request.app_id, request.definition, tags, jwt("task"), v2, ExecCommand)

    async def SandboxCreateV2(self, stream: Any, request: Any, __: Any) -> None:
        made = await self._create(request, True)
        access = api_pb2.CommandRouterAccess(jwt=made.jwt, url=self.url)
        answer = api_pb2.SandboxCreateV2Response(
            sandbox_id=made.id, task_id=made.task_id, metadata=made.metadata, command_router_access=access
        )
        await stream.send_message(answer)

    async def SandboxCreate(self, stream: Any, request: Any, __: Any) -> None:
        made = await self._create(request, False)
        await stream.send_message(api_pb2.SandboxCreateResponse(sandbox_id=made.id, metadata=made.metadata))

    async def SandboxGetTaskId(self, stream: Any, request: Any, __: Any) -> None:
        known = self.world.sandbox(request.sandbox_id)
        if known.result.status:
            await stream.send_message(api_pb2.SandboxGetTaskIdResponse(task_result=known.result))
        else:
            await stream.send_message(api_pb2.SandboxGetTaskIdResponse(task_id=known.task_id))

    SandboxGetTaskIdV2 = SandboxGetTaskId

    async def TaskGetCommandRouterAccess(self, stream: Any, request: Any, __: Any) -> None:
        known = self.world.of_task(request.task_id)
        await stream.send_message(api_pb2.TaskGetCommandRouterAccessResponse(jwt=known.jwt, url=self.url))

    async def SandboxGetCommandRouterAccess(self, stream: Any, request: Any, __: Any) -> None:
        if request.sandbox_id:
            known = self.world.of_task(self.world.sandbox(request.sandbox_id).task_id)
        else:
            known = self.world.of_task(request.task_id)
        await stream.send_message(api_pb2.SandboxGetCommandRouterAccessResponse(jwt=known.jwt, url=self.url))

    async def SandboxWait(self, stream: Any, request: Any, __: Any) -> None:
        known = self.world.sandbox(request.sandbox_id)
        if request.timeout and not known.result.status:
            await asyncio.wait([asyncio.ensure_future(known.ended.wait())], timeout=request.timeout)
        await stream.send_message(api_pb2.SandboxWaitResponse(result=known.result, metadata=known.metadata))

    SandboxWaitV2 = SandboxWait

    async def SandboxTerminate(self, stream: Any, request: Any, __: Any) -> None:
        known = self.world.sandbox(request.sandbox_id)
        before = known.result
        await self.world.end(known, _RESULT(status=_RESULT.GENERIC_STATUS_TERMINATED))
        await stream.send_message(api_pb2.SandboxTerminateResponse(existing_result=before))

    SandboxTerminateV2 = SandboxTerminate

    async def SandboxStdinWrite(self, stream: Any, request: Any, __: Any) -> None:
        known = self.world.sandbox(request.sandbox_id)
        if known.main is None or known.box is None:
            raise refuse(Status.FAILED_PRECONDITION, "the sandbox has no standard input")
        if request.index > known.index:  # sent again after a dropped connection: written already
            known.index = request.index
            await known.main.write(known.main.written, request.input, request.eof)
        await stream.send_message(api_pb2.SandboxStdinWriteResponse())

    async def SandboxTagsGet(self, stream: Any, request: Any, __: Any) -> None:
        await stream.send_message(api_pb2.SandboxTagsGetResponse(tags=_tags(self.world.sandbox(request.sandbox_id))))

    SandboxTagsGetV2 = SandboxTagsGet

    async def SandboxList(self, stream: Any, request: Any, __: Any) -> None:
        wanted = {tag.tag_name: tag.tag_value for tag in request.tags}
        found = [
            known
            for known in self.world.sandboxes.values()
            if (not request.app_id or known.app_id == request.app_id)
            and (request.include_finished or not known.result.status)
            and (not request.before_timestamp or known.created < request.before_timestamp)
            and wanted.items() <= known.tags.items()
        ]
        found.sort(key=lambda known: -known.created)
        await stream.send_message(api_pb2.SandboxListResponse(sandboxes=[_info(known) for known in found[:_PAGE]]))

    SandboxListV2 = SandboxList


def _tags(known: KnownModalSandbox) -> list[api_pb2.SandboxTag]:
    return [api_pb2.SandboxTag(tag_name=name, tag_value=value) for name, value in known.tags.items()]


def _info(known: KnownModalSandbox) -> api_pb2.SandboxInfo:
    return api_pb2.SandboxInfo(
        id=known.id,
        created_at=known.created,
        task_info=api_pb2.TaskInfo(id=known.task_id, result=known.result),
        app_id=known.app_id,
        tags=_tags(known),
        image_id=known.definition.image_id,
        timeout_secs=known.definition.timeout_secs,
        metadata=known.metadata,
    )
