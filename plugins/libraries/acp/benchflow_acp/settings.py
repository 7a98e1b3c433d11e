"""Model, effort and mode of a fresh session, by what the agent's spec declares and the session offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from benchflow_acp.connection import RpcError
from benchflow_acp.session import protocol_error
from benchflow_core.contracts.sessions import SessionOptions
from benchflow_core.errors import AgentProtocolError, BenchflowError, CapabilityMissing

__all__ = ["apply_settings"]

Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]

_METHOD_NOT_FOUND = -32601
_INVALID_PARAMS = -32602


async def apply_settings(
    ask: Ask, session_id: str, session: Mapping[str, Any], options: SessionOptions
) -> dict[str, Any]:
    """What was set and how, for the record."""
    done: dict[str, Any] = {}
    if options.spec.model_in_session and options.model:
        done["model"] = await _set_model(ask, session_id, session, options, options.model)
    if options.effort:
        option = find_option(session, options.spec.effort_option, "thought_level")
        if option is not None:
            done["effort"] = await _set_option(ask, session_id, option, pick(options.effort, _option_values(option)))
        elif options.spec.effort_option:
            raise CapabilityMissing(
                f"the agent offers no reasoning effort for the model '{options.model}'.",
                remedy="Leave the effort out, or use another model.",
            )
    if mode := options.session_mode or options.spec.session_mode:
        try:
            await ask("session/set_mode", {"sessionId": session_id, "modeId": mode})
        except RpcError as error:
            raise protocol_error(error) from None
        done["mode"] = mode
    return done


async def _set_model(
    ask: Ask, session_id: str, session: Mapping[str, Any], options: SessionOptions, model: str
) -> dict[str, str]:
    """The declared way first; the other one when the agent does not know that method and offers the other."""
    option, models = find_option(session, options.spec.model_option, "model"), _models(session)
    refusal: RpcError | None = None
    for way in _ways(options.spec.model_in_session, option, models):
        offered = _option_values(option) if way == "config_option" else models
        value = pick(model, offered)
        target = {"configId": option["id"], "value": value} if option and way == "config_option" else {"modelId": value}
        try:
            await ask(f"session/set_{way.removeprefix('set_')}", {"sessionId": session_id, **target})
        except RpcError as error:
            if error.code != _METHOD_NOT_FOUND:
                raise _model_error(error, model, offered) from None
            refusal = error
            continue
        return {"value": value, "way": way}
    raise CapabilityMissing(
        f"the agent offers no way to choose the model '{model}'.",
        remedy="Leave the model out, or use an agent that takes one.",
        details={"method": refusal.method} if refusal else None,
    )


def _ways(declared: str, option: Mapping[str, Any] | None, models: list[str]) -> list[str]:
    ways = ["config_option"] if option else []
    if models or declared == "set_model":
        ways.append("set_model")
    return ways[::-1] if models and declared == "set_model" else ways


def _model_error(error: RpcError, model: str, offered: list[str]) -> BenchflowError:
    if error.code != _INVALID_PARAMS:
        return protocol_error(error)
    shown = ", ".join(offered[:12]) or "no list"
    return AgentProtocolError(
        f"the agent does not take the model '{model}': {error.message} It offers: {shown}.",
        remedy="Name a model that it offers.",
        details={"code": error.code, "message": error.message, "offered": offered[:100]},
    )


async def _set_option(ask: Ask, session_id: str, option: Mapping[str, Any], value: str) -> dict[str, str]:
    try:
        await ask("session/set_config_option", {"sessionId": session_id, "configId": option["id"], "value": value})
    except RpcError as error:
        raise protocol_error(error) from None
    return {"value": value, "option": str(option["id"])}


def find_option(session: Mapping[str, Any], name: str | None, category: str) -> Mapping[str, Any] | None:
    """A config option by its id, else by its category."""
    options = session.get("configOptions")
    found = (
        [o for o in options if isinstance(o, Mapping) and isinstance(o.get("id"), str)]
        if isinstance(options, list)
        else []
    )
    by_name = next((o for o in found if name and o["id"] == name), None)
    return by_name or next((o for o in found if o.get("category") == category), None)


def pick(wanted: str, offered: list[str]) -> str:
    """The offered value that is meant: as written, or without its provider; else what was asked for, as it is."""
    bare = wanted.split("/", 1)[-1]
    last = wanted.rsplit("/", 1)[-1]
    return next((c for c in (wanted, bare, last) if c in offered), wanted)


def _option_values(option: Mapping[str, Any] | None) -> list[str]:
    """Values of a select option, groups included."""
    found: list[str] = []
    entries = option.get("options") if option else None
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, Mapping):
            continue
        nested = entry.get("options")
        found += [
            str(e["value"])
            for e in (nested if isinstance(nested, list) else [entry])
            if isinstance(e, Mapping) and "value" in e
        ]
    return found


def _models(session: Mapping[str, Any]) -> list[str]:
    models = session.get("models")
    listed = models.get("availableModels") if isinstance(models, Mapping) else None
    return (
        [str(m["modelId"]) for m in listed if isinstance(m, Mapping) and "modelId" in m]
        if isinstance(listed, list)
        else []
    )
