"""What the LiteLLM proxy is told: how each kind of provider is spoken to, and nothing that leaves this host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts import ModelTarget
from benchflow_core.errors import ConfigurationError

__all__ = ["proxy_config", "proxy_env", "route_of", "thinking_effort", "with_effort", "workers_for"]

_EFFORT: Final = "BENCHFLOW_BEDROCK_THINKING_EFFORT"
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_SECRET: Final = "os.environ/BENCHFLOW_PROXY_SECRET"
_SPOKEN: Final[Mapping[str, tuple[str, str]]] = {
    "chat": ("custom_openai", "/v1"),
    "responses": ("openai", "/v1"),
    "messages": ("anthropic", ""),
    "gemini": ("gemini", ""),
}
"""By the provider's wire: LiteLLM's name for whoever speaks it, and what its client expects of a base URL."""
_LOGINS: Final = {"aws": "bedrock", "adc": "vertex"}
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_KEPT_PREFIXES: Final = ("AWS_", "GOOGLE_", "VERTEX")
_PER_WORKER: Final = 16


def route_of(target: ModelTarget) -> str:
    """Which entry of the configuration leads to a model."""
    return _LOGINS.get(target.auth, target.wire)


def workers_for(concurrency: int, cores: int, asked: str | None) -> int:
    """One worker per sixteen rollouts, but no more than there are cores; or as many as were asked for."""
    if asked is not None:
        if not asked.isdigit() or not 1 <= int(asked) <= 64:
            raise ConfigurationError(f"gateway option workers='{asked}': expected a number from 1 to 64.")
        return int(asked)
    return max(1, min(cores, -(-concurrency // _PER_WORKER)))


def proxy_config(back: int, env: Mapping[str, str]) -> dict[str, Any]:
    """`back`: our own port that stands in for every provider whose key we hold. LiteLLM never sees one of those."""
    entries = [
        _entry(wire, f"{name}/*", api_base=f"http://127.0.0.1:{back}{path}", api_key=_SECRET)
        for wire, (name, path) in _SPOKEN.items()
    ]
    region = env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION")
    entries.append(_entry("bedrock", "bedrock/*", **({"aws_region_name": region} if region else {})))
    project, location = env.get("GOOGLE_CLOUD_PROJECT"), env.get("GOOGLE_CLOUD_LOCATION") or "global"
    vertex = {"vertex_project": project, "api_base": env.get("VERTEXAI_API_BASE")}
    entries.append(_entry("vertex", "vertex_ai/*", vertex_location=location, **{k: v for k, v in vertex.items() if v}))
    return {
        "model_list": entries,
        "litellm_settings": {
            "callbacks": "benchflow_hooks.instance",
            "num_retries": 0,  # trying again is the agent's business
            "drop_params": True,
            "telemetry": False,
            "turn_off_message_logging": True,
            "request_timeout": 1800,
        },
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "general_settings": {"master_key": _SECRET, "disable_spend_logs": True},
    }


def _entry(route: str, model: str, **more: str) -> dict[str, Any]:
    return {"model_name": f"{route}/*", "litellm_params": {"model": model, "max_retries": 0, **more}}


def proxy_env(env: Mapping[str, str], folder: Path, secret: str) -> dict[str, str]:
    """The whole environment of the proxy. Of the user's only what a cloud's login and the way out need."""
    thinking_effort(env)
    kept = {k: v for k, v in env.items() if k in _KEPT or k.startswith(_KEPT_PREFIXES) or k.lower().endswith("_proxy")}
    if env.get("HOME"):
        kept["CLOUDSDK_CONFIG"] = env.get("CLOUDSDK_CONFIG") or str(Path(env["HOME"]) / ".config" / "gcloud")
        kept.setdefault("AWS_SHARED_CREDENTIALS_FILE", str(Path(env["HOME"]) / ".aws" / "credentials"))
        kept.setdefault("AWS_CONFIG_FILE", str(Path(env["HOME"]) / ".aws" / "config"))
    if kept.get("GOOGLE_APPLICATION_CREDENTIALS_JSON"):
        kept["GOOGLE_APPLICATION_CREDENTIALS"] = str(_private(folder, kept.pop("GOOGLE_APPLICATION_CREDENTIALS_JSON")))
    return {
        **kept,
        "HOME": str(folder),
        "NO_PROXY": ",".join(filter(None, ("127.0.0.1", "localhost", env.get("NO_PROXY") or env.get("no_proxy")))),
        "BENCHFLOW_PROXY_SECRET": secret,
        "PYTHONPATH": str(Path(__file__).with_name("hosted")),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # the price list that came with it: none is fetched
        "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
        "LITELLM_LOCAL_AUTOROUTER_PRESETS": "True",
        "LITELLM_LOCAL_BLOG_POSTS": "True",
        "LITELLM_LOCAL_POLICY_TEMPLATES": "True",
        "LITELLM_MODE": "PRODUCTION",  # no .env of the folder is read
        "LITELLM_LOG": "ERROR",
        "DISABLE_ADMIN_UI": "True",
        "NO_DOCS": "True",
        "NO_REDOC": "True",
    }


def thinking_effort(env: Mapping[str, str]) -> str:
    """What every request to Bedrock is made to ask for; empty: as the agent asks."""
    effort = env.get(_EFFORT, "")
    if effort and effort not in _EFFORTS:
        raise ConfigurationError(f"{_EFFORT}='{effort}' is none of: {', '.join(_EFFORTS)}.")
    return effort


def with_effort(body: Mapping[str, Any], wire: str, effort: str) -> dict[str, Any]:
    """In the words of each API. What a model does not know of it LiteLLM leaves out."""
    if wire == "messages":
        more: dict[str, Any] = {"thinking": {"type": "adaptive"}}
        return {**body, **more, "output_config": {**_table(body, "output_config"), "effort": effort}}
    if wire == "responses":
        return {**body, "reasoning": {**_table(body, "reasoning"), "effort": effort}}
    if wire == "gemini":
        config = _table(body, "generationConfig")
        thinking = {**_table(config, "thinkingConfig"), "thinkingLevel": effort}
        return {**body, "generationConfig": {**config, "thinkingConfig": thinking}}
    return {**body, "reasoning_effort": effort}


def _table(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name)
    return found if isinstance(found, dict) else {}


def _private(folder: Path, content: str) -> Path:
    try:
        json.loads(content)
    except ValueError as error:
        raise ConfigurationError("GOOGLE_APPLICATION_CREDENTIALS_JSON is not JSON.") from error
    path = folder / "google.json"
    path.touch(mode=0o600)
    path.write_text(content)
    return path
