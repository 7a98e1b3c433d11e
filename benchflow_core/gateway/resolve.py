"""From the model a user names to where it is and what it speaks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from urllib.parse import urlsplit

from benchflow_core.contracts.gateways import ModelTarget, Provider, ProviderCredential, ProviderParameter, Wire
from benchflow_core.errors import ConfigurationError
from benchflow_core.gateway.prices import prices_of
from benchflow_core.plugins import Registry
from benchflow_core.plugins.dotted import resolve
from benchflow_core.plugins.remedies import install_command

__all__ = ["WIRES", "find_provider", "providers_of", "targets_of"]

WIRES: tuple[Wire, ...] = ("chat", "messages", "responses", "gemini")
_NOWHERE = "http://127.0.0.1:9"
"""The address of a provider that is not set up: nobody answers there."""


def providers_of(plugins: Registry) -> dict[str, Provider]:
    """Return the model providers that the installed gateways bring, by prefix."""
    found: dict[str, Provider] = {}
    for gateway in sorted(plugins.all("gateway"), key=lambda g: (g.spec.default_rank is None, g.spec.default_rank)):
        if gateway.spec.providers:
            found = {**resolve(gateway.spec.providers, gateway.who), **found}
    if not found:
        remedy = plugins.kept_out("gateway") or f"Install one: {install_command('benchflow-gateway-relay')}"
        raise ConfigurationError("no gateway is installed that knows a provider of models.", remedy=remedy)
    return found


def targets_of(
    model: str,
    env: Mapping[str, str],
    providers: Mapping[str, Provider],
    wires: Sequence[Wire] = WIRES,
    *,
    also: Sequence[str] = (),
    keyless: bool = False,
) -> list[ModelTarget]:
    """Return the model on each wire of its provider: those that need no translation first, in the order of `wires`.

    `also` names variables that may hold the credential where the provider's own are not set: those of an agent.
    `keyless`: the credential and the address may be missing, because somebody else may answer.
    """
    provider, name = find_provider(model, providers)
    credential = _credential(provider, env, also, needed=not keyless)
    shared = [wire for wire in wires if wire in provider.endpoints]
    others = [wire for wire in provider.endpoints if wire not in shared]
    return [
        ModelTarget(
            model=name,
            provider=provider.name,
            wire=wire,
            base_url=_base_url(provider, wire, env, needed=not keyless),
            credential_env=_names(provider) if credential is None else (credential.env,),
            params=_params(provider, env),
            auth=(credential or provider.credentials[0]).auth,
            prices=prices_of(f"{provider.name}/{name}", env),
        )
        for wire in (*shared, *others)
    ]


def find_provider(model: str, providers: Mapping[str, Provider]) -> tuple[Provider, str]:
    """Return the provider and its own name of the model. A prefix counts before the look of a name."""
    prefix, slash, name = model.partition("/")
    if not model.strip() or (slash and not name):
        raise ConfigurationError(f"'{model}' is not a model.", remedy="Write PROVIDER/MODEL, e.g. openai/gpt-5.")
    if slash and prefix in providers:
        return providers[prefix], name
    if not slash:
        for provider in providers.values():
            if provider.bare and re.match(provider.bare, model, re.IGNORECASE):
                return provider, model
    raise _unknown(model, prefix if slash else "", providers)


def _unknown(model: str, prefix: str, providers: Mapping[str, Provider]) -> ConfigurationError:
    close = get_close_matches((prefix or model).lower(), providers, n=1)
    nearest = f" Did you mean {close[0]}/{model.partition('/')[2] or model}?" if close else ""
    known = f"Known: {', '.join(sorted(providers))}."
    if prefix:
        return ConfigurationError(f"unknown model provider '{prefix}' in '{model}'.{nearest}", remedy=known)
    return ConfigurationError(f"the provider of model '{model}' is not clear.{nearest}", remedy=f"Prefix it. {known}")


def _names(provider: Provider) -> tuple[str, ...]:
    """Where the credential would be, had it one."""
    return tuple(c.env for c in provider.credentials) if provider.needs_credential else ()


def _credential(
    provider: Provider, env: Mapping[str, str], also: Sequence[str], *, needed: bool
) -> ProviderCredential | None:
    alternatives = [*provider.credentials, *(ProviderCredential(name) for name in also)]
    found = next((c for c in alternatives if env.get(c.env)), None)
    if found is None and provider.needs_credential and needed:
        names = " or ".join(dict.fromkeys(c.env for c in alternatives))
        raise ConfigurationError(
            f"no credential for provider '{provider.name}': {names} is not set.",
            remedy=f"export {alternatives[0].env}=… or put it into .env",
        )
    return found


def _base_url(provider: Provider, wire: Wire, env: Mapping[str, str], *, needed: bool) -> str:
    template = provider.endpoints[wire]
    override = next((env[name] for name in provider.base_url_env if env.get(name)), None)
    if override is not None:
        own = next(iter(provider.endpoints.values()))
        return _checked(override, provider).rstrip("/") + template.removeprefix(own)
    if not template and not needed:
        return _NOWHERE
    if not template:
        name = provider.base_url_env[0]
        raise ConfigurationError(f"provider '{provider.name}' needs {name}: its base URL.", remedy=f"export {name}=…")
    needed_by = {name: p for name, p in provider.parameters.items() if f"{{{name}}}" in template}
    host = next((env[name] for name in provider.host_env if env.get(name)), None)
    if host is not None and not any(_first_label(host, p) for p in needed_by.values()):
        return _checked(host, provider).rstrip("/") + urlsplit(template).path
    if not needed and any(not _found(p, env) for p in needed_by.values()):
        return _NOWHERE
    return template.format_map({name: _value(name, p, provider, env) for name, p in needed_by.items()})


def _checked(url: str, provider: Provider) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"the base URL of provider '{provider.name}' is not one: '{url}'.")
    return url


def _first_label(url: str, parameter: ProviderParameter) -> str:
    """`x` of `https://x.openai.azure.com`, where the parameter is one of such a host; else nothing."""
    host = (urlsplit(url).hostname or "") if parameter.of_host else ""
    return host.partition(".")[0] if host.endswith(parameter.of_host) else ""


def _found(parameter: ProviderParameter, env: Mapping[str, str]) -> str | None:
    return next((env[variable] for variable in parameter.env if env.get(variable)), parameter.default)


def _value(name: str, parameter: ProviderParameter, provider: Provider, env: Mapping[str, str]) -> str:
    found = _found(parameter, env)
    if found is None:
        names = " or ".join(parameter.env)
        raise ConfigurationError(
            f"provider '{provider.name}' needs its {name}: {names} is not set.", remedy=f"export {parameter.env[0]}=…"
        )
    return _first_label(found, parameter) or found


def _params(provider: Provider, env: Mapping[str, str]) -> dict[str, str]:
    """What a gateway may need beyond the address."""
    found = {name: _found(parameter, env) for name, parameter in provider.parameters.items()}
    return {name: value for name, value in found.items() if value}
