"""Loaded by the LiteLLM proxy: sends each request the way BenchFlow chose, marked so that it can be told apart."""

import os

from litellm.integrations.custom_logger import CustomLogger

_EFFORT = os.environ.get("BENCHFLOW_BEDROCK_THINKING_EFFORT", "")


class Hooks(CustomLogger):
    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        headers = (data.get("proxy_server_request") or {}).get("headers") or {}
        route, call = headers.get("x-benchflow-route"), headers.get("x-benchflow-call")
        if not route or not call:
            raise ValueError("this proxy serves BenchFlow only")
        data["model"] = f"{route}/{data['model']}"
        data["extra_headers"] = {"x-benchflow-call": call}
        if route == "bedrock" and _EFFORT:
            _think(data, call_type)
        return data


def _think(data, call_type):
    """In the words of each API. What a model does not know of it LiteLLM leaves out."""
    if "messages" in call_type:
        data["thinking"] = {"type": "adaptive"}
        data["output_config"] = {**(data.get("output_config") or {}), "effort": _EFFORT}
    elif "responses" in call_type:
        data["reasoning"] = {**(data.get("reasoning") or {}), "effort": _EFFORT}
    else:
        data["reasoning_effort"] = _EFFORT


instance = Hooks()
