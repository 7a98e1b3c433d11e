"""What the way out of a box refuses, and which proxy of this machine it goes on through."""

from __future__ import annotations

import pytest

from benchflow_boxkit import proxy
from benchflow_boxkit.upstream import Upstream
from benchflow_core.contracts import NetworkPolicy


@pytest.mark.parametrize(
    ("address", "refused"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("0.0.0.0", True),
        ("10.1.2.3", True),
        ("172.20.0.1", True),
        ("172.32.0.1", False),
        ("192.168.1.1", True),
        ("169.254.169.254", True),
        ("100.100.100.200", True),
        ("224.0.0.1", True),
        ("255.255.255.255", True),
        ("::1", True),
        ("::", True),
        ("fe80::1%eth0", True),
        ("fd00:ec2::254", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:169.254.169.254", True),
        ("64:ff9b::a9fe:a9fe", True),
        ("2002:7f00:1::", True),
        ("8.8.8.8", False),
        ("203.0.113.80", False),
        ("2606:4700::1111", False),
        ("198.51.100.7", True),
    ],
)
def test_addresses(address: str, refused: bool) -> None:
    assert proxy.refused_address(address, {"198.51.100.7"}) is refused


@pytest.mark.parametrize(
    ("pattern", "host", "port", "allowed"),
    [
        ("example.com", "example.com", 443, True),
        ("example.com", "EXAMPLE.com.", 443, True),
        ("example.com", "a.example.com", 443, False),
        ("example.com", "notexample.com", 443, False),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        (".example.com", "a.example.com", 443, True),
        ("example.com:8443", "example.com", 8443, True),
        ("example.com:8443", "example.com", 443, False),
        ("[2606:4700::1]:443", "2606:4700::1", 443, False),
        ("", "example.com", 443, False),
    ],
)
def test_allow_lists(pattern: str, host: str, port: int, allowed: bool) -> None:
    policy = NetworkPolicy("allowlist", (pattern,))
    assert proxy.EgressProxy(policy).allows(host, port) is allowed


def test_modes() -> None:
    assert proxy.EgressProxy(NetworkPolicy("public")).allows("anything", 1)
    assert not proxy.EgressProxy(NetworkPolicy("none")).allows("anything", 1)


@pytest.mark.parametrize(
    ("env", "host", "served"),
    [
        ({}, "a.com", None),
        ({"HTTPS_PROXY": "http://p:1"}, "a.com", True),
        ({"http_proxy": "http://p"}, "a.com", True),
        ({"all_proxy": "socks5://p:1"}, "a.com", None),
        ({"https_proxy": "http://p:1", "no_proxy": "b.com, .a.com"}, "x.a.com", False),
        ({"https_proxy": "http://p:1", "NO_PROXY": "*"}, "a.com", False),
        ({"https_proxy": "http://p:1", "no_proxy": "a.com"}, "ba.com", True),
    ],
)
def test_which_proxy(env: dict[str, str], host: str, served: bool | None) -> None:
    found = Upstream.of(env)
    assert (found.serves(host) if found else None) is served
