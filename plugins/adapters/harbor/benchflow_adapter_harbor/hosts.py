"""Allowed hosts and network modes: what may stand in `allowed_hosts`, and with which `network_mode`."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from typing import Any

from benchflow_adapter_harbor.readers import wrong
from benchflow_adapter_harbor.report import Report, Where, dotted

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_EXPECTED = "a host name, '*.host', an IP address or a CIDR range (no URL, port or path)"


def host(value: Any, where: Where, report: Report) -> Any:
    """One entry, in lower case and without a trailing dot."""
    if not isinstance(value, str):
        return wrong(value, where, report, _EXPECTED)
    name = value.strip().lower().rstrip(".")
    try:
        if "%" in name:
            raise ValueError
        if "/" in name:
            return ip_network(name, strict=True).compressed
        if ":" in name:
            return ip_address(name).compressed
    except ValueError:
        return wrong(value, where, report, _EXPECTED)
    bare = name.removeprefix("*.")
    if not bare or not all(_LABEL.fullmatch(label) for label in bare.split(".")):
        return wrong(value, where, report, _EXPECTED)
    if bare != name and _is_address(bare):
        return wrong(value, where, report, "a host name after '*.', not an address")
    return name


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def check_network(mode: str | None, hosts: tuple[str, ...] | None, where: Where, report: Report) -> None:
    """`allowed_hosts` belongs to the allowlist mode and to no other."""
    at = (*where, "allowed_hosts")
    if mode == "allowlist":
        if not hosts and report.strict:
            report.problem((*where, "network_mode"), f"{dotted(at)} must name the hosts for network_mode 'allowlist'")
    elif hosts or (hosts is not None and mode is None):
        message = f'{dotted(at)} is only valid with network_mode = "allowlist"'
        report.problem(at, message, remedy='Set network_mode = "allowlist", or remove it.')
