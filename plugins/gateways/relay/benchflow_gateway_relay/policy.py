"""What a request's body may not ask for: another upstream, another model, or tools that leave the box."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchflow_core.contracts import Wire

__all__ = ["Duplicate", "provider_tool", "redirection", "unique_keys"]


class Duplicate(ValueError):
    """A JSON object names a key twice: the provider might read the other one than we did."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json.loads(object_pairs_hook=…)`."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Duplicate("a key appears twice")
    return made


# --- another upstream ------------------------------------------------------------------------------------------

_CONTENT = frozenset(
    {
        "contents",
        "functions",
        "generationconfig",
        "input",
        "instructions",
        "messages",
        "outputconfig",
        "outputformat",
        "prompt",
        "responseformat",
        "system",
        "systeminstruction",
        "text",
        "toolchoice",
        "toolconfig",
        "tools",
    }
)
"""Words and schemas for the model: what stands there steers no server."""

_ANYWHERE = frozenset(
    {
        "apibase",
        "apikey",
        "apiversion",
        "awsaccesskeyid",
        "awsbedrockruntimeendpoint",
        "awsregionname",
        "awsrolename",
        "awssecretaccesskey",
        "awssessiontoken",
        "awswebidentitytoken",
        "azureadtoken",
        "azureendpoint",
        "baseurl",
        "customllmprovider",
        "litellmparams",
        "modellist",
        "userconfig",
        "vertexcredentials",
        "vertexlocation",
        "vertexproject",
    }
)
_ON_TOP = _ANYWHERE | frozenset(
    {
        "callbacks",
        "contentpolicyfallbacks",
        "contextwindowfallbacks",
        "defaultheaders",
        "endpoint",
        "extrabody",
        "extraheaders",
        "extraquery",
        "fallbacks",
        "headers",
        "litellmmetadata",
        "mockresponse",
        "models",
        "organization",
        "proxies",
        "proxy",
        "routersettingsoverride",
        "successcallback",
        "failurecallback",
    }
)


def redirection(body: Mapping[str, Any]) -> str | None:
    """The first field that would send the request elsewhere, as `a.b`; `None` where there is none.

    Spelling does not matter: some servers read `apiBase`, `api-base` and `API_BASE` alike.
    """
    for key, value in body.items():
        plain = _plain(key)
        if plain in _ON_TOP or (plain == "model" and key != "model"):
            return key
        if plain not in _CONTENT:
            for path, name in _keys(value, key):
                if _plain(name) in _ANYWHERE:
                    return path
    return None


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _keys(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Every key below, with its path."""
    stack = [(path, value)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, Mapping):
            for key, inner in value.items():
                yield f"{path}.{key}", key
                stack.append((f"{path}.{key}", inner))
        elif isinstance(value, list):
            stack.extend((path, inner) for inner in value)


# --- tools of the provider ---------------------------------------------------------------------------------------

_OWN_FIELDS: Mapping[Wire, tuple[str, ...]] = {
    "chat": ("web_search_options", "plugins", "search_parameters", "enable_search"),
    "responses": (),
    "messages": ("mcp_servers", "container"),
    "gemini": (),
}
"""Fields that switch on what runs at the provider."""

_CLIENT_TYPES = frozenset(
    {"function", "custom", "local_shell", "apply_patch", "computer", "computer_use_preview", "image_generation"}
)
"""OpenAI's tools that the agent itself carries out, or that reach nothing."""
_CLIENT_PREFIXES = ("bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_")
"""Anthropic's, likewise."""
_CLIENT_GROUPS = frozenset({"functionDeclarations", "function_declarations", "computerUse", "computer_use"})
"""Gemini's, likewise."""


def provider_tool(wire: Wire, body: Mapping[str, Any]) -> str | None:
    """The first thing the provider would fetch or run by itself: web search, code, a page, a remote picture."""
    for name in _OWN_FIELDS[wire]:
        if body.get(name):
            return name
    for tool in _offered(wire, body):
        if (kind := _server_side(wire, tool)) is not None:
            return kind
    return _remote_content(body)


def _offered(wire: Wire, body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    lists = [body.get("tools")]
    if wire == "responses" and isinstance(body.get("input"), list):
        lists += [item.get("tools") for item in body["input"] if isinstance(item, Mapping)]
    while lists:
        tools = lists.pop()
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, Mapping):
                if tool.get("type") == "namespace":
                    lists.append(tool.get("tools"))
                else:
                    yield tool


def _server_side(wire: Wire, tool: Mapping[str, Any]) -> str | None:
    if wire == "gemini":
        return next((name for name in tool if name not in _CLIENT_GROUPS), None)
    kind = str(tool.get("type", "custom"))
    if wire == "messages":
        return None if kind == "custom" or kind.startswith(_CLIENT_PREFIXES) else kind
    if kind == "shell":
        where = tool.get("environment")
        local = not isinstance(where, Mapping) or where.get("type") == "local"
        return None if local else "shell"
    return None if kind in _CLIENT_TYPES else kind


_LINKS = frozenset({"image_url", "video_url", "audio_url", "file_url", "fileUri", "file_uri"})


def _remote_content(body: Mapping[str, Any]) -> str | None:
    """A picture or file by its address: the provider would fetch it, and tell the address whatever it holds."""
    stack: list[Any] = [body.get(name) for name in ("messages", "input", "contents", "system")]
    while stack:  # of JSON: asked for the plain types, which is several times as quick
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, dict):
            for key, inner in value.items():
                if isinstance(inner, str):
                    if key in _LINKS and not inner.startswith("data:"):
                        return str(key)
                elif isinstance(inner, dict):
                    link = inner.get("url")
                    remote = isinstance(link, str) and not link.startswith("data:")
                    if remote and (key in _LINKS or (key == "source" and inner.get("type") == "url")):
                        return str(key)
                    stack.append(inner)
                elif isinstance(inner, list):
                    stack.append(inner)
    return None
