"""Model providers as data: what comes before the slash of a model's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchflow_core.contracts import Provider, ProviderCredential, ProviderParameter

__all__ = ["PROVIDERS"]

_GOOGLE_CLOUD: Final = {
    "project": ProviderParameter(("GOOGLE_CLOUD_PROJECT",)),
    "location": ProviderParameter(("GOOGLE_CLOUD_LOCATION",), "global"),
}
_GOOGLE_LOGIN: Final = (
    ProviderCredential("GOOGLE_APPLICATION_CREDENTIALS_JSON", "adc"),
    ProviderCredential("GOOGLE_APPLICATION_CREDENTIALS", "adc"),
)
_VERTEX: Final = "https://aiplatform.googleapis.com/v1/projects/{project}/locations/{location}"
_AZURE: Final = {
    "resource": ProviderParameter(("AZURE_RESOURCE", "AZURE_API_ENDPOINT"), of_host=".azure.com"),
    "api_version": ProviderParameter(("AZURE_API_VERSION",), ""),
}
_OPENAI_KEY: Final = (ProviderCredential("OPENAI_API_KEY"),)


def _chat(name: str, variable: str, bare: str, *, base_url: str = "", key: str = "") -> Provider:
    """A provider that speaks chat completions at an address of the user's."""
    return Provider(
        name,
        {"chat": base_url},
        (ProviderCredential(key or f"{variable}_API_KEY"),),
        base_url_env=(f"{variable}_BASE_URL",),
        bare=bare,
    )


_ALL: Final = (
    Provider(
        "anthropic",
        {"messages": "https://api.anthropic.com"},
        (ProviderCredential("ANTHROPIC_API_KEY"), ProviderCredential("ANTHROPIC_AUTH_TOKEN", "bearer")),
        base_url_env=("ANTHROPIC_BASE_URL",),
        bare=r"claude",
    ),
    Provider(
        "openai",
        {"responses": "https://api.openai.com/v1", "chat": "https://api.openai.com/v1"},
        _OPENAI_KEY,
        base_url_env=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        bare=r"gpt|chatgpt|codex|o\d",
    ),
    Provider(
        "us-openai",
        {"responses": "https://us.api.openai.com/v1", "chat": "https://us.api.openai.com/v1"},
        _OPENAI_KEY,
    ),
    Provider(
        "gemini",
        {
            "gemini": "https://generativelanguage.googleapis.com",
            "chat": "https://generativelanguage.googleapis.com/v1beta/openai",
        },
        (ProviderCredential("GEMINI_API_KEY"), ProviderCredential("GOOGLE_API_KEY")),
        base_url_env=("GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"),
        bare=r"gemini|gemma",
    ),
    Provider(
        "google-vertex",
        {"chat": f"{_VERTEX}/endpoints/openapi"},
        _GOOGLE_LOGIN,
        parameters=_GOOGLE_CLOUD,
        needs_credential=False,
    ),
    Provider(
        "anthropic-vertex",
        {"messages": f"{_VERTEX}/publishers/anthropic"},
        _GOOGLE_LOGIN,
        parameters=_GOOGLE_CLOUD,
        needs_credential=False,
    ),
    Provider(
        "azure-foundry-openai",
        {
            "responses": "https://{resource}.openai.azure.com/openai/v1",
            "chat": "https://{resource}.openai.azure.com/openai/v1",
        },
        (ProviderCredential("AZURE_API_KEY"),),
        host_env=("AZURE_API_ENDPOINT",),
        parameters=_AZURE,
    ),
    Provider(
        "azure-foundry-anthropic",
        {"messages": "https://{resource}.services.ai.azure.com/anthropic"},
        (ProviderCredential("AZURE_API_KEY"),),
        host_env=("AZURE_API_ENDPOINT",),
        parameters=_AZURE,
    ),
    Provider(
        "aws-bedrock",
        {
            "messages": "https://bedrock-runtime.{region}.amazonaws.com",
            "responses": "https://bedrock-runtime.{region}.amazonaws.com",
        },
        (ProviderCredential("AWS_BEARER_TOKEN_BEDROCK", "aws"), ProviderCredential("AWS_ACCESS_KEY_ID", "aws")),
        parameters={
            "region": ProviderParameter(("AWS_REGION", "AWS_DEFAULT_REGION")),
            "thinking_effort": ProviderParameter(("BENCHFLOW_BEDROCK_THINKING_EFFORT",), ""),
        },
    ),
    Provider(
        "zai",
        {
            "chat": "https://api.z.ai/api/paas/v4",
            "messages": "https://api.z.ai/api/anthropic",
            "responses": "https://api.z.ai/api/paas/v4",
        },
        (ProviderCredential("ZAI_API_KEY", "bearer"),),
    ),
    Provider("github-models", {"chat": "https://models.github.ai/inference"}, (ProviderCredential("GITHUB_TOKEN"),)),
    _chat("openrouter", "OPENROUTER", "", base_url="https://openrouter.ai/api/v1"),
    Provider(
        "vllm",
        {"chat": ""},
        (ProviderCredential("BENCHFLOW_PROVIDER_API_KEY"), ProviderCredential("OPENAI_API_KEY")),
        base_url_env=("BENCHFLOW_PROVIDER_BASE_URL",),
        needs_credential=False,
    ),
    _chat("litellm", "LITELLM", ""),
    _chat("kimi", "KIMI", r"kimi|moonshot"),
    _chat("minimax", "MINIMAX", r"minimax"),
    _chat("qwen-dashscope", "QWEN", r"qwen"),
    _chat("glm", "GLM", r"glm"),
    _chat("deepseek", "DEEPSEEK", r"deepseek", base_url="https://api.deepseek.com/v1"),
    _chat("xiaomi", "XIAOMI", r"xiaomi|mimo"),
    _chat("doubao-seed-2-lite", "DOUBAO_VOLCES", r"doubao-seed-2-lite", key="DOUBAO_SEED_2_LITE_API_KEY"),
    _chat("doubao-seed-2-pro", "DOUBAO_VOLCES", r"doubao-seed-2-pro", key="DOUBAO_SEED_2_PRO_API_KEY"),
    _chat("hunyuan", "HUNYUAN", r"hunyuan"),
)

PROVIDERS: Final[Mapping[str, Provider]] = {provider.name: provider for provider in _ALL}
"""By prefix."""
