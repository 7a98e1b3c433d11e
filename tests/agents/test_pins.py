"""What agents are pinned to can still be had: asked of the indexes, not of our cache."""

from __future__ import annotations

import base64
import json
import os

import pytest
from benchflow_layers import NODE_LAYER, NODE_VERSION

from benchflow_core.contracts import Layer
from benchflow_core.errors import BuildError
from benchflow_core.plugins import registry

pytestmark = [pytest.mark.agents, pytest.mark.xdist_group("agent-pi")]
UNREACHABLE = ("ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN", "ECONNRESET")


def npm_layers() -> dict[str, Layer]:
    """By agent: the layer that npm installs."""
    agents = registry().all("agent")
    return {
        a.spec.name or a.name: layer for a in agents for layer in a.spec.layers if "package-lock.json" in layer.files
    }


def npm_packages() -> dict[str, str]:
    """What npm agents are pinned to: name to version."""
    found: dict[str, str] = {}
    for layer in npm_layers().values():
        found |= json.loads(layer.files["package.json"])["dependencies"]
    return found


def test_every_npm_agent_is_pinned_to_one_version():
    packages = npm_packages()
    assert len(packages) >= 8
    for name, version in packages.items():
        assert version.replace(".", "").isdigit(), f"{name}@{version} is not an exact version"
    unlocked = [
        a.name for a in registry().all("agent") for layer in a.spec.layers for c in layer.install if "install" in c[2:3]
    ]
    assert not unlocked, "their dependencies would be what the registry has on the day"


@pytest.mark.parametrize("agent", sorted(npm_layers()))
def test_what_it_depends_on_is_locked_with_digests_and_without_a_registry(agent):
    layer = npm_layers()[agent]
    packages = json.loads(layer.files["package-lock.json"])["packages"]
    assert packages.pop("")["dependencies"] == json.loads(layer.files["package.json"])["dependencies"]
    assert b"://" not in layer.files["package-lock.json"], "a lock that names a registry works for one registry"
    for place, package in packages.items():
        assert package["version"][0].isdigit()
        # A build for another machine that our registry did not have is pinned by its version alone.
        elsewhere = package.get("optional") and (
            package.get("libc") == ["musl"]
            or package.get("cpu") == ["arm64"]
            or package.get("os") not in (None, ["linux"])
        )
        assert package.get("integrity", "").startswith("sha512-") or package.get("inBundle") or elsewhere, place


async def test_a_package_with_another_digest_is_not_installed(connect, tmp_path, monkeypatch):
    monkeypatch.setenv("CI", "1")  # a build that fails is then no reason to skip
    entry = {"version": "3.1.1", "integrity": "sha512-" + base64.b64encode(b"0" * 64).decode()}
    lock = {"lockfileVersion": 3, "packages": {"": {"dependencies": {"isexe": "3.1.1"}}, "node_modules/isexe": entry}}
    (tmp_path / "package-lock.json").write_text(json.dumps(lock))
    lines = ('name = "tampered"', 'version = "1"', 'launch = ["true"]', "[install]", 'npm = ["isexe@3.1.1"]')
    (tmp_path / "agent.toml").write_text("\n".join([*lines, 'lock = "package-lock.json"']))
    with pytest.raises(BuildError, match="AwMDAwMA== but got sha512-LpB/54B"):
        await connect(str(tmp_path / "agent.toml"), None)


async def test_the_pins_still_resolve(connect):
    live = await connect("pi", "anthropic/local-model")
    packages = [f"{name}@{version}" for name, version in npm_packages().items()]
    npm = npm_layers()["pi-acp"].install[0][:2]
    view = f'{" ".join(npm)} view "$p" version --loglevel=error --no-update-notifier 2>&1 | tail -n 1'
    script = f'for p in "$@"; do echo "$p $({view})" & done; wait'
    done = await live.rollout.sandbox.exec(
        ("sh", "-c", script, "sh", *packages), env=npm_layers()["pi-acp"].env, timeout=240
    )
    said = dict(line.split(" ", 1) for line in done.stdout.decode().splitlines())
    if not os.environ.get("CI") and any(word in done.stdout.decode() for word in UNREACHABLE):
        pytest.skip(f"no package index answers here: {said}")
    assert said == {package: package.rpartition("@")[2] for package in packages}
    asked = ("python3", "-m", "pip", "index", "versions", NODE_LAYER.key.partition("@")[0])
    done = await live.rollout.sandbox.exec(asked, timeout=120)
    assert NODE_VERSION in done.stdout.decode(), done.stderr.decode()[-500:]
