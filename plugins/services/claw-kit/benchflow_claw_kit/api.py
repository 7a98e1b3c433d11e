"""The table of methods of a service."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchflow_claw_kit.auth import Principal
from benchflow_claw_kit.contract import Contract
from benchflow_claw_kit.http import Request, Response, decode_segment
from benchflow_claw_kit.store import Store

if TYPE_CHECKING:
    from benchflow_claw_kit.service import Service

__all__ = ["Api", "Call", "Handler", "Method"]

ANY = "*"


@dataclass(slots=True)
class Call:
    """One request as a method's function sees it."""

    service: Service
    store: Store
    request: Request
    method: Method
    path: dict[str, str]
    """Path parameters, decoded."""
    query: dict[str, Any]
    """Declared query parameters, converted; those not sent are absent."""
    principal: Principal
    body: dict[str, Any] = field(default_factory=dict)
    """The JSON object sent (checked against the contract), or the metadata part of an upload."""
    media: bytes | None = None
    """What was uploaded, if anything was."""
    media_type: str = ""
    about: str = ""
    """What the log of calls says behind the path."""

    def __getitem__(self, name: str) -> str:
        return self.path[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.query.get(name, default)


Handler = Callable[[Call], "dict[str, Any] | list[Any] | Response | None"]
"""A dict is answered as JSON, None as 204 No Content."""


@dataclass(frozen=True, slots=True)
class Method:
    id: str
    """As the discovery document names it: `gmail.users.messages.list`."""
    verb: str
    path: str
    handler: Handler
    query: Mapping[str, Any] = field(default_factory=dict)
    """Name to kind, as in a contract: "string", "integer", "boolean", ["string"], {"enum": [...]} …"""
    required: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    request: str | None = None
    response: str | None = None
    upload: bool = False
    """Also under `/upload/…`: media, multipart and resumable."""
    max_upload: int = 0
    media: bool = False
    """Answers bytes to `alt=media`."""
    writes: bool = True
    pattern: re.Pattern[str] = field(default=re.compile(""))


class Api:
    """Methods by verb and path; the most literal path wins."""

    def __init__(self, contract: Contract | None = None) -> None:
        self.contract = contract
        self.methods: dict[str, Method] = {}
        self._by_verb: dict[str, list[Method]] = {}

    def method(self, id: str, *, writes: bool | None = None) -> Callable[[Handler], Handler]:
        """Registers a method of the contract; everything about it but its function is there."""
        assert self.contract is not None, "an Api without a contract has routes: use route()"
        facts = self.contract.methods[id]

        def register(handler: Handler) -> Handler:
            self._add(
                Method(
                    id,
                    facts["verb"],
                    facts["path"],
                    handler,
                    facts.get("query", {}),
                    tuple(facts.get("required", ())),
                    tuple(facts.get("scopes", ())),
                    facts.get("request"),
                    facts.get("response"),
                    "upload" in facts,
                    facts.get("upload") or 0,
                    facts.get("media", False),
                    facts["verb"] != "GET" if writes is None else writes,
                    _pattern(facts["path"]),
                )
            )
            return handler

        return register

    def route(
        self, id: str, verb: str, path: str, *, writes: bool = True, scopes: tuple[str, ...] = ()
    ) -> Callable[[Handler], Handler]:
        """Registers a method that no contract knows; `verb` may be `*`."""

        def register(handler: Handler) -> Handler:
            self._add(Method(id, verb, path, handler, scopes=scopes, writes=writes, pattern=_pattern(path)))
            return handler

        return register

    def _add(self, method: Method) -> None:
        if method.id in self.methods:
            raise ValueError(f"{method.id} is there already")
        self.methods[method.id] = method
        listed = self._by_verb.setdefault(method.verb, [])
        listed.append(method)
        listed.sort(key=lambda one: ["{" in part for part in one.path.strip("/").split("/")])

    def unanswered(self, verb: str, path: str) -> str | None:
        """The id of a method that the real API has at this place and we have not."""
        for id, facts in self.contract.methods.items() if self.contract else ():
            if id not in self.methods and facts["verb"] == verb and _pattern(facts["path"]).fullmatch(path):
                return id
        return None

    def find(self, verb: str, path: str) -> tuple[Method, dict[str, str]] | None:
        for method in (*self._by_verb.get(verb, ()), *self._by_verb.get(ANY, ())):
            found = method.pattern.fullmatch(path)
            if found:
                return method, {name: decode_segment(value) for name, value in found.groupdict().items()}
        return None


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", path)
    return re.compile("".join(re.escape(p) if i % 2 == 0 else f"(?P<{p}>[^/]+?)" for i, p in enumerate(parts)))
