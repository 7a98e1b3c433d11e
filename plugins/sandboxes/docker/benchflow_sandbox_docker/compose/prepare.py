"""The images of a compose task: `main` with the agents' layers, every sidecar as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from benchflow_core.contracts.common import Layer, Runtime
from benchflow_core.contracts.sandboxes import ImageRef, ImageRequest
from benchflow_core.errors import TaskError
from benchflow_sandbox_docker.compose.document import ComposeDocument
from benchflow_sandbox_docker.compose.health import image_health
from benchflow_sandbox_docker.compose.model import MAIN, ComposeService, Project
from benchflow_sandbox_docker.compose.project import check_file, read_project, variables
from benchflow_sandbox_docker.engine.api import EngineClient

__all__ = ["Prepares", "prepare_compose"]


class Prepares(Protocol):
    """What this needs of the provider."""

    engine: EngineClient

    async def prepare(
        self, request: ImageRequest, layers: Sequence[Layer] = (), runtimes: Sequence[Runtime] = ()
    ) -> ImageRef: ...


async def prepare_compose(
    provider: Prepares, request: ImageRequest, layers: Sequence[Layer] = (), runtimes: Sequence[Runtime] = ()
) -> ImageRef:
    """Read and check the file, then build or find every image. The reference is `main`'s and carries the others."""
    assert request.compose is not None
    document, project = check_file(request.compose)
    requests = {service.name: image_request(service, request, document) for service in project.services}
    if request.alone:
        return await provider.prepare(requests[MAIN], layers, runtimes)
    refs = dict(
        zip(
            requests,
            await asyncio.gather(
                *(
                    provider.prepare(wanted, layers, runtimes) if name == MAIN else provider.prepare(wanted)
                    for name, wanted in requests.items()
                )
            ),
            strict=True,
        )
    )
    configs = {name: await _config(provider.engine, str(ref.meta["image"])) for name, ref in refs.items()}
    refuse_unhealthy(document, project, configs)
    main = refs[MAIN]
    carried = {
        "text": document.text,
        "name": document.name,
        "folder": str(request.compose.parent),
        "images": {name: asdict(ref) for name, ref in refs.items()},
        "configs": {name: _kept(config) for name, config in configs.items()},
    }
    notices = dict.fromkeys(n for ref in (main, *refs.values()) for n in ref.notices)
    return replace(main, notices=(*notices, *project.notices), meta={**main.meta, "compose": carried})


def image_request(service: ComposeService, request: ImageRequest, document: ComposeDocument) -> ImageRequest:
    """What to build or pull for a service; for `main` also what the task itself names, below what the file says."""
    plain = replace(request, compose=None, image=None, context=None, dockerfile=None, build_args={}, alone=False)
    if service.platform:
        plain = replace(plain, platform=service.platform)
    if service.build:
        build = service.build
        return replace(
            plain, context=build.context, dockerfile=build.dockerfile, build_args=build.args, target=build.target
        )
    if service.name == MAIN and not request.image and request.dockerfile is not None:
        return replace(plain, context=request.context, dockerfile=request.dockerfile, build_args=request.build_args)
    image = service.image or (request.image if service.name == MAIN else None)
    if image is None:
        document.refuse(("services", service.name), f"service '{service.name}' has neither 'image' nor 'build'.")
    return replace(plain, image=image)


def refuse_unhealthy(document: ComposeDocument, project: Project, configs: dict[str, dict[str, Any]]) -> None:
    """Waiting for the health of a service that has no health check would never end."""
    services = {service.name: service for service in project.services}
    for service in project.services:
        for need in service.needs:
            other = services.get(need.service)
            if other is None or need.condition != "service_healthy":
                continue
            if other.health is None and (
                other.health_off or image_health(configs[other.name].get("Healthcheck")) is None
            ):
                at = ("services", service.name, "depends_on", other.name)
                document.refuse(
                    at, f"'{service.name}' waits until '{other.name}' is healthy, which has no healthcheck."
                )


async def _config(engine: EngineClient, image: str) -> dict[str, Any]:
    return dict((await engine.image(image) or {}).get("Config") or {})


def _kept(config: dict[str, Any]) -> dict[str, Any]:
    return {key: config.get(key) for key in ("Entrypoint", "Cmd", "Healthcheck")}


def carried_project(meta: dict[str, Any], env: dict[str, str], **limits: Any) -> tuple[ComposeDocument, Project]:
    """The project that `prepare_compose` put into a reference, with the variables of a start."""
    folder = Path(meta["folder"])
    if not folder.is_dir():
        raise TaskError(f"the folder of {meta['name']} disappeared: {folder}.")
    document = ComposeDocument(meta["text"], meta["name"])
    return document, read_project(document, folder, folder.parent, variables(env, **limits))
