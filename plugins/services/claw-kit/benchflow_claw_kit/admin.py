"""The channel of whoever runs the world: seed, reset, snapshot, diff, state, a page. Only with the token."""

from __future__ import annotations

import hmac
import re
from pathlib import Path
from typing import Any

from benchflow_claw_kit.changes import diff, dump, dump_file
from benchflow_claw_kit.http import Request, Response, decode_json, json_response
from benchflow_claw_kit.page import state_page
from benchflow_claw_kit.seeding import seed
from benchflow_claw_kit.service import Service
from benchflow_claw_kit.store import Store, StoreError

__all__ = ["Admin"]

PREFIX = "/_admin"
BASE = "initial"
"""The snapshot that `reset` goes back to and `diff` compares with: made at start and by every seed."""


class Admin:
    def __init__(self, service: Service, store: Store, token: str | None) -> None:
        self.service = service
        self.store = store
        self.token = token

    def keep_base(self) -> None:
        if self.token and not self._file(BASE).exists():
            self.store.backup(self._file(BASE))

    def __call__(self, request: Request) -> Response:
        if not self._allowed(request):
            return Response(404, b'{"error": "not found"}', {"Content-Type": "application/json"})
        name = request.path.removeprefix(PREFIX).strip("/")
        try:
            find = {"GET": self._reads, "POST": self._writes}[request.method]
            answer: Response = find(name)(_options(request))
            return answer
        except KeyError:
            return json_response({"error": f"no {request.method} {request.path}"}, 404)
        except (StoreError, ValueError) as error:
            return json_response({"error": str(error)}, 400)

    def _allowed(self, request: Request) -> bool:
        kind, _, sent = request.header("authorization").partition(" ")
        return (
            bool(self.token)
            and kind.lower() == "bearer"
            and hmac.compare_digest(sent.strip().encode(), str(self.token).encode())
        )

    def _reads(self, name: str) -> Any:
        return {"": self._page, "state": self._state, "diff": self._diff, "calls": self._calls, "snapshot": self._list}[
            name
        ]

    def _writes(self, name: str) -> Any:
        return {"seed": self._seed, "reset": self._reset, "snapshot": self._snapshot, "restore": self._restore}[name]

    def _page(self, options: dict[str, Any]) -> Response:
        return Response(
            200,
            state_page(self.service, self.store).encode(),
            {
                "Content-Type": "text/html; charset=utf-8",
                "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
            },
        )

    def _state(self, options: dict[str, Any]) -> Response:
        return json_response(dump(self.store.db, self.service))

    def _diff(self, options: dict[str, Any]) -> Response:
        before = dump_file(self._file(options.get("base", BASE)), self.service)
        return json_response(diff(before, dump(self.store.db, self.service), self.service.kinds))

    def _calls(self, options: dict[str, Any]) -> Response:
        return json_response({"calls": self.store.all("SELECT * FROM _calls ORDER BY seq")})

    def _list(self, options: dict[str, Any]) -> Response:
        found = sorted(path.stem for path in self._folder().glob("*.db"))
        return json_response({"snapshots": found})

    def _seed(self, options: dict[str, Any]) -> Response:
        seed(
            self.service, self.store, str(options.get("scenario", "")), int(options.get("seed", 0)), options.get("now")
        )
        self.store.backup(self._file(BASE))
        return json_response({"scenario": self.store.get_meta("scenario"), "seed": self.store.get_meta("seed")})

    def _reset(self, options: dict[str, Any]) -> Response:
        self.store.restore(self._file(BASE))
        return json_response({"restored": BASE})

    def _snapshot(self, options: dict[str, Any]) -> Response:
        name = str(options.get("name", "snapshot"))
        self.store.backup(self._file(name))
        return json_response({"snapshot": name})

    def _restore(self, options: dict[str, Any]) -> Response:
        name = str(options.get("name", "snapshot"))
        self.store.restore(self._file(name))
        return json_response({"restored": name})

    def _folder(self) -> Path:
        return Path(self.store.path + ".snapshots")

    def _file(self, name: str) -> Path:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,80}", name):
            raise StoreError(f"{name!r} cannot be the name of a snapshot: letters, digits, - _ . only")
        return self._folder() / f"{name}.db"


def _options(request: Request) -> dict[str, Any]:
    options: dict[str, Any] = {name: values[0] for name, values in request.query.items()}
    if request.body.strip():
        value = decode_json(request.body)
        if not isinstance(value, dict):
            raise ValueError("the body is no JSON object")
        options.update(value)
    return options
