"""Prices of models, as the user gives them. None are built in: one that is out of date is worse than none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchflow_core.errors import ConfigurationError

__all__ = ["prices_of", "provider_prices"]

_VARIABLE = "BENCHFLOW_PRICES"
_KINDS = ("input", "output", "cache_read", "cache_write")


def prices_of(model: str, env: Mapping[str, str]) -> dict[str, float]:
    """USD per million tokens of `provider/model`, from the JSON file that `BENCHFLOW_PRICES` names; else nothing.

    The file: `{"openai/gpt-5": {"input": 1.25, "output": 10, "cache_read": 0.125}}`.
    """
    path = env.get(_VARIABLE)
    return dict(_table(path).get(model, {})) if path else {}


def provider_prices(provider: str, env: Mapping[str, str]) -> dict[str, Mapping[str, float]]:
    """The prices of all models of one provider that the file names, by the provider's own ids."""
    table = _table(path) if (path := env.get(_VARIABLE)) else {}
    return {
        name.removeprefix(f"{provider}/"): prices for name, prices in table.items() if name.startswith(f"{provider}/")
    }


@lru_cache(maxsize=8)
def _table(path: str) -> Mapping[str, Mapping[str, float]]:
    try:
        value = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{_VARIABLE}: {path} cannot be read: {error}.") from error
    if not isinstance(value, dict):
        raise ConfigurationError(f"{_VARIABLE}: {path} is not an object of models.")
    return {model: _prices(model, prices, path) for model, prices in value.items()}


def _prices(model: str, prices: Any, path: str) -> dict[str, float]:
    good = isinstance(prices, dict) and {"input", "output"} <= set(prices) <= set(_KINDS)
    if not good or not all(isinstance(p, int | float) and not isinstance(p, bool) and p >= 0 for p in prices.values()):
        raise ConfigurationError(
            f"{_VARIABLE}: {path}: the prices of '{model}' are not right.",
            remedy=f"USD per million tokens: input and output, and if you like {' and '.join(_KINDS[2:])}.",
        )
    return {kind: float(price) for kind, price in prices.items()}
