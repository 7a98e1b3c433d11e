"""While an image is built, as its own user: what a vendor's API does not tell about it afterwards."""

from __future__ import annotations

import json
import os
import shutil
import sys

PLACE = "/tmp/.benchflow-image.json"
_BUILDERS = frozenset({"HOME", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_", "USER", "LOGNAME", "TERM"})
_PROXIES = frozenset({"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "node_use_env_proxy"})
"""The builder's own way out, which is no way out of a box."""


def _is_the_images(name: str) -> bool:
    return name not in _BUILDERS and name.lower() not in _PROXIES


def main() -> None:
    if sys.argv[1:2] == ["keep"]:
        _keep()
        for name in sys.argv[2:]:
            _clean(name)
    else:
        _record()


def _record() -> None:
    env = {name: value for name, value in os.environ.items() if _is_the_images(name)}
    found = {"env": env, "workdir": os.getcwd(), "uid": os.getuid(), "gid": os.getgid()}
    with open(PLACE, "w") as file:
        json.dump(found, file)


def _keep() -> None:
    """As root, to where nobody else writes."""
    with open(PLACE) as file:
        found = file.read()
    os.unlink(PLACE)
    with open("/opt/benchflow/boxkit/image.json", "w") as out:
        out.write(found)


def _clean(name: str) -> None:
    """Away with our own folder of the build's context, wherever a COPY of everything took it along."""
    device = os.lstat("/").st_dev
    for folder, names, _ in os.walk("/"):
        if name in names and os.path.isdir(f"{folder}/{name}/box/code/benchflow_boxkit"):
            shutil.rmtree(f"{folder}/{name}")
            names.remove(name)
        names[:] = [entry for entry in names if os.lstat(f"{folder}/{entry}").st_dev == device]
