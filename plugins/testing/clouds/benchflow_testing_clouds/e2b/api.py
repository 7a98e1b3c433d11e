"""The control API: sandboxes and templates."""

from __future__ import annotations

import urllib.parse
from typing import Any

from aiohttp import web
from e2b.api.client.models import (
    ConnectSandboxV2,
    NewSandboxV2,
    SandboxNetworkUpdateConfig,
    SandboxTimeoutRequest,
    TemplateAliasResponse,
    TemplateBuildFileUpload,
    TemplateBuildRequestV3,
    TemplateBuildStartV2,
    TemplateRequestResponseV3,
)

from benchflow_testing_clouds.e2b.sandboxes import Sandboxes
from benchflow_testing_clouds.e2b.schema import E2bRefusal, parse
from benchflow_testing_clouds.e2b.templates import Templates
from benchflow_testing_clouds.ledger import Ledger

__all__ = ["E2bApi"]


class E2bApi:
    def __init__(self, sandboxes: Sandboxes, templates: Templates, ledger: Ledger) -> None:
        self._sandboxes, self._templates, self._ledger = sandboxes, templates, ledger
        self.base = ""

    async def handle(self, request: web.Request, parts: list[str]) -> web.StreamResponse:
        """`parts`: of the path, decoded."""
        version = parts.pop(0) if parts[0] in ("v2", "v3") else ""
        if parts[0] == "sandboxes":
            return await self._sandbox(request, parts[1:], version)
        if parts[0] == "templates":
            return await self._template(request, parts[1:], version)
        raise NotImplementedError

    # --- sandboxes -------------------------------------------------------------------------------------------------

    async def _sandbox(self, request: web.Request, parts: list[str], version: str) -> web.StreamResponse:
        method = request.method
        if not parts and version == "v2":
            return await (self._create(request) if method == "POST" else self._list(request))
        if not parts:
            raise NotImplementedError
        sandbox = self._sandboxes.find(parts[0])
        if method == "DELETE":
            await self._sandboxes.remove(sandbox)
            return web.Response(status=204)
        if method == "GET" and len(parts) == 1:
            return web.json_response(sandbox.detail())
        if parts[1:] == ["timeout"]:
            asked = await parse(SandboxTimeoutRequest, request, self._ledger)
            self._sandboxes.live(sandbox, asked.timeout)
            return web.Response(status=204)
        if parts[1:] == ["network"]:
            asked = await parse(SandboxNetworkUpdateConfig, request, self._ledger)
            if asked.allow_out or asked.rules or asked.egress_proxy:
                raise NotImplementedError
            closed = asked.allow_internet_access is False or "0.0.0.0/0" in (asked.deny_out or [])
            await sandbox.box.set_public(not closed)
            return web.Response(status=204)
        if parts[1:] == ["connect"] and version == "v2":
            asked = await parse(ConnectSandboxV2, request, self._ledger)
            self._sandboxes.live(sandbox, asked.timeout if isinstance(asked.timeout, int) else 300)
            return web.json_response(sandbox.created(), status=200)
        raise NotImplementedError

    async def _create(self, request: web.Request) -> web.Response:
        asked = await parse(NewSandboxV2, request, self._ledger)
        if asked.mcp or asked.iam or asked.volume_mounts or asked.network:
            raise NotImplementedError
        if any(not isinstance(value, str) for value in dict(asked.metadata or {}).values()):
            self._ledger.violation("POST /v2/sandboxes: metadata is text to text")
        key = request.headers.get("Idempotency-Key")
        sandbox = await self._sandboxes.create(asked, key)
        return web.json_response(sandbox.created(), status=201)

    async def _list(self, request: web.Request) -> web.Response:
        unknown = set(request.query) - {"metadata", "state", "startedAfter", "template", "order", "limit", "nextToken"}
        if unknown:
            self._ledger.violation(f"GET /v2/sandboxes: no parameter {sorted(unknown)}")
        wanted = {
            urllib.parse.unquote(name): urllib.parse.unquote(value)
            for name, value in urllib.parse.parse_qsl(request.query.get("metadata", ""))
        }
        found = [row for row in self._sandboxes.known.values() if wanted.items() <= row.metadata.items()]
        start, limit = int(request.query.get("nextToken") or 0), int(request.query.get("limit") or 100)
        page = found[start : start + limit]
        headers = {"X-Next-Token": str(start + limit)} if start + limit < len(found) else {}
        return web.json_response([row.listed() for row in page], headers=headers)

    # --- templates -------------------------------------------------------------------------------------------------

    async def _template(self, request: web.Request, parts: list[str], version: str) -> web.StreamResponse:
        method = request.method
        if not parts and (method, version) == ("POST", "v3"):
            return await self._request(request)
        if not parts and (method, version) == ("GET", ""):
            return web.json_response([found.dto() for found in self._templates.known.values()])
        if parts[:1] == ["aliases"]:
            found = self._templates.find(parts[1])
            return web.json_response(TemplateAliasResponse(found.id, False).to_dict())
        template = self._templates.find(parts[0])
        if len(parts) == 1 and method == "GET":
            return web.json_response(template.with_builds())
        if len(parts) == 1 and method == "DELETE":
            del self._templates.known[template.id]
            return web.Response(status=204)
        if parts[1] == "files":
            url = f"{self.base}/upload/{parts[2]}"
            present = self._templates.has_file(parts[2])
            return web.json_response(TemplateBuildFileUpload(present, url).to_dict(), status=201)
        if parts[1] == "builds" and parts[2] != template.build_id:
            raise E2bRefusal(404, "build not found")
        if parts[1] == "builds" and version == "v2":
            self._templates.build(template, await parse(TemplateBuildStartV2, request, self._ledger))
            return web.Response(status=202)
        if parts[3:] == ["status"]:
            return web.json_response(template.info(int(request.query.get("logsOffset") or 0)))
        raise NotImplementedError

    async def _request(self, request: web.Request) -> web.Response:
        asked: Any = await parse(TemplateBuildRequestV3, request, self._ledger)
        template = self._templates.request(str(asked.name), asked.cpu_count or None, asked.memory_mb or None)
        answer = TemplateRequestResponseV3(
            template.id, template.build_id, False, [template.name], ["default"], [template.name]
        )
        return web.json_response(answer.to_dict(), status=202)
