"""What agents are pinned to can still be had: asked of the indexes, not of our cache."""

from __future__ import annotations

import os

import pytest

from benchflow_core.contracts import NODE, NODE_LAYER, NODE_VERSION
from benchflow_core.plugins import registry

pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("agent-pi")]
UNREACHABLE = ("ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN", "ECONNRESET")


def npm_packages() -> dict[str, tuple[str, ...]]:
    """`name@version` to the npm that installs it, of every installed agent."""
    found = {}
    for agent in registry().all("agent"):
        for layer in agent.spec.layers:
            for argv in layer.install:
                if argv[0] == NODE and argv[2:3] == ("install",):
                    found |= {word: argv[:2] for word in argv[3:] if not word.startswith("-")}
    return found


def test_every_npm_agent_is_pinned_to_one_version():
    packages = npm_packages()
    assert len(packages) >= 6
    for package in packages:
        name, _, version = package.rpartition("@")
        assert name and version.replace(".", "").isdigit(), f"{package} is not an exact version"


async def test_the_pins_still_resolve(connect):
    live = await connect("pi", "anthropic/local-model")
    packages = npm_packages()
    npm = next(iter(packages.values()))
    view = f'{" ".join(npm)} view "$p" version --loglevel=error --no-update-notifier 2>&1 | tail -n 1'
    script = f'for p in "$@"; do echo "$p $({view})" & done; wait'
    done = await live.rollout.sandbox.exec(("sh", "-c", script, "sh", *packages), env=dict(_npm_env()), timeout=240)
    said = dict(line.split(" ", 1) for line in done.stdout.decode().splitlines())
    if not os.environ.get("CI") and any(word in done.stdout.decode() for word in UNREACHABLE):
        pytest.skip(f"no package index answers here: {said}")
    assert said == {package: package.rpartition("@")[2] for package in packages}
    asked = ("python3", "-m", "pip", "index", "versions", NODE_LAYER.key.partition("@")[0])
    done = await live.rollout.sandbox.exec(asked, timeout=120)
    assert NODE_VERSION in done.stdout.decode(), done.stderr.decode()[-500:]


def _npm_env():
    """As the layers are installed with."""
    return next(
        layer.env for agent in registry().all("agent") for layer in agent.spec.layers if "PATH" in layer.env
    ).items()
