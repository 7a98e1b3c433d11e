"""Fixtures for plugin authors: a running server, and variables that point the vendor's SDK at it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchflow_testing_clouds.control import Remote

__all__ = ["NO_USERS", "cloud_cache", "cloud_server", "daytona_cloud", "e2b_cloud", "modal_cloud"]


NO_USERS = "a vendor's boxes have several users; those of a normal user here have one: run as root, or have /etc/subuid"


@pytest.fixture(scope="session")
def cloud_server() -> Iterator[Callable[[str], Remote]]:
    """The server of a vendor, started when it is first asked for: what every image gets added is sent to it once."""
    from benchflow_testing_clouds.backing import has_users
    from benchflow_testing_clouds.process import running

    if not has_users():
        pytest.skip(NO_USERS)
    with contextlib.ExitStack() as stack:
        known: dict[str, Remote] = {}

        def server(vendor: str) -> Remote:
            if vendor not in known:
                known[vendor] = stack.enter_context(running(vendor))
            return known[vendor]

        yield server


@pytest.fixture(scope="session")
def cloud_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that lives as long as the servers do."""
    return tmp_path_factory.mktemp("cloud-cache")


def _cloud(vendor: str, server: Callable[[str], Remote], home: Path) -> Iterator[Remote]:
    remote = server(vendor)
    remote.reset()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**remote.env, "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache")}.items():
            patch.setenv(name, value)
        yield remote
    remote.check()


def _fixture(vendor: str) -> Any:
    @pytest.fixture(scope="module", name=f"{vendor}_cloud")
    def cloud(cloud_server: Callable[[str], Remote], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
        """A cloud of this machine's own, in a home where nobody has logged in; fails when anything was asked that the
        vendor would not understand."""
        yield from _cloud(vendor, cloud_server, tmp_path_factory.mktemp("home"))

    return cloud


daytona_cloud = _fixture("daytona")
e2b_cloud = _fixture("e2b")
modal_cloud = _fixture("modal")
