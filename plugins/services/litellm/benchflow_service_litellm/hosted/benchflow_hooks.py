"""Loaded by the LiteLLM proxy: sends each request the way BenchFlow chose, marked so that it can be told apart."""

from __future__ import annotations

from typing import Any

from litellm.integrations.custom_logger import CustomLogger


class Hooks(CustomLogger):
    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        headers = (data.get("proxy_server_request") or {}).get("headers") or {}
        route, call = headers.get("x-benchflow-route"), headers.get("x-benchflow-call")
        if not route or not call:
            raise ValueError("this proxy serves BenchFlow only")
        data["model"] = f"{route}/{data['model']}"
        data["extra_headers"] = {"x-benchflow-call": call}
        return data


instance = Hooks()
