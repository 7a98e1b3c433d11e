"""`trajectory/llm_trajectory.jsonl`: every model request of a rollout with what came back, secrets taken out."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts.gateways import Exchange
from benchflow_core.results.clock import stamp
from benchflow_core.results.files import cannot_write, encoder
from benchflow_core.results.redact import Redactor

__all__ = ["exchange_json", "write_llm_trajectory"]

_encode = encoder()

_EFFORTS: Final = (
    ("output_config", "effort"),
    ("reasoning", "effort"),
    ("reasoning_effort",),
    ("generationConfig", "thinkingConfig", "thinkingLevel"),
)


def exchange_json(exchange: Exchange, purpose: str, place: Mapping[str, Any]) -> dict[str, Any]:
    """One exchange as the file has it. `place`: role, scene, turn and session, as the events have them."""
    return {
        "request": {
            "timestamp": stamp(exchange.started_at),
            "method": "POST",
            "path": exchange.path,
            "headers": {},
            "body": exchange.request,
        },
        "response": {
            "timestamp": stamp(exchange.started_at + exchange.duration),
            "status_code": exchange.status,
            "headers": {},
            "body": exchange.response,
        },
        "duration_ms": round(exchange.duration * 1000, 3),
        "usage": asdict(exchange.usage),
        "error": None if exchange.error is None else {"type": exchange.error_type, "message": exchange.error},
        "metadata": {
            "request_model": exchange.requested_model,
            "provider_model": exchange.returned_model,
            **({"answered_by": exchange.answered_by} if exchange.answered_by else {}),
            "call_type": exchange.wire,
            "streamed": exchange.streamed,
            "call_purpose": purpose,
            "key_id": exchange.key_id,
            **({"effort": effort} if (effort := _effort(exchange.request)) else {}),
            **({"replayed": exchange.replayed} if exchange.replayed else {}),
            **({"divergence": exchange.divergence} if exchange.divergence else {}),
            **place,
        },
    }


def _effort(body: Mapping[str, Any]) -> str | None:
    """How hard the model was asked to think, whichever way its API says it."""
    for path in _EFFORTS:
        found: Any = body
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        if isinstance(found, str) and found:
            return found.lower()
    return None


async def write_llm_trajectory(
    path: Path,
    exchanges: AsyncIterable[tuple[Exchange, Mapping[str, Any]]],
    purpose_of: Callable[[Exchange, str], str],
    redactor: Redactor,
) -> int:
    """Write them all with their places, one line each, in place of what was there; one is held at a time.

    Returns how many.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    count = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8", errors="replace") as file:
            async for exchange, place in exchanges:
                purpose = _purpose(purpose_of, exchange, str(place.get("role", "")))
                line = _encode(exchange_json(exchange, purpose, place))
                file.write(redactor.json_text(line, _encode) + "\n")
                count += 1
        temporary.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    return count


def _purpose(purpose_of: Callable[[Exchange, str], str], exchange: Exchange, role: str) -> str:
    """A plugin's opinion, which must not cost the record."""
    try:
        return str(purpose_of(exchange, role))
    except Exception:
        return "unknown"
