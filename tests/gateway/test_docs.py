"""The page about models says what the code does."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from benchflow_gateway_relay.providers import PROVIDERS

from benchflow_core.contracts.gateways import Exchange

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")


def test_every_provider_is_listed_with_its_wires_and_variables() -> None:
    rows = {m[1]: m[0] for m in re.finditer(r"^\| `([\w-]+)` \|.*$", PAGE, re.MULTILINE)}
    for name, provider in PROVIDERS.items():
        cells = [cell.strip() for cell in rows[name].strip("|").split("|")]
        assert cells[1] == ", ".join(provider.endpoints), name
        variables = [c.env for c in provider.credentials] + list(provider.base_url_env)
        variables += [variable for p in provider.parameters.values() for variable in p.env]
        for variable in variables:
            assert f"`{variable}`" in rows[name], f"{name}: {variable}"


def test_every_kind_of_error_is_explained() -> None:
    source = Path(inspect.getsourcefile(Exchange) or "").read_text("utf-8")
    documented = source.partition("What went wrong, by kind.")[2].partition('"""')[0]
    kinds = set(re.findall(r"`(\w+)`", documented))
    assert len(kinds) == 15
    explained = set(re.findall(r"`(\w+)`", PAGE.partition("`error.type` is one of")[2].partition("A turn none")[0]))
    assert kinds == explained
