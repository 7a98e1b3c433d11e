"""While an image is built, as root: the install commands of one agent layer."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def main() -> None:
    with open(sys.argv[1]) as file:
        layer = json.load(file)
    env = {**os.environ, "HOME": "/root", **layer["env"]}
    env["PATH"] = layer["path"].replace("{PATH}", os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"))
    os.makedirs(layer["prefix"], exist_ok=True)
    for command in layer["install"]:
        argv = [part.replace("{prefix}", layer["prefix"]) for part in command]
        try:
            code = subprocess.run(argv, cwd=layer["prefix"], env=env, check=False, timeout=layer["timeout"]).returncode
        except subprocess.TimeoutExpired:
            sys.exit(f"Layer {layer['key']}: its install took longer than {layer['timeout']:.0f} s.")
        except OSError as error:
            sys.exit(f"Layer {layer['key']}: {argv[0]}: {error.strerror}")
        if code:
            sys.exit(f"Layer {layer['key']}: {argv[0]} ended with {code}.")
