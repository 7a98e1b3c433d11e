"""While an image is built, as its own user: what a vendor's API does not tell about it afterwards."""

from __future__ import annotations

import json
import os
import shutil
import sys

PLACE = "/tmp/.benchflow-image.json"
_NAME = ".benchflow"
_BUILDERS = frozenset({"HOME", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_", "USER", "LOGNAME", "TERM"})
_PROXIES = frozenset({"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "node_use_env_proxy"})
"""The builder's own way out, which is no way out of a box."""


def _is_the_images(name: str) -> bool:
    return name not in _BUILDERS and name.lower() not in _PROXIES


def main() -> None:
    for what in sys.argv[1:] or ["record"]:
        {"record": _record, "keep": _keep, "clean": _clean}[what]()


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


def _clean() -> None:
    """Away with our own folder of the build's context, wherever a COPY of everything took it along."""
    device = os.lstat("/").st_dev
    for folder, names, _ in os.walk("/"):
        if _NAME in names and _is_ours(f"{folder}/{_NAME}"):
            shutil.rmtree(f"{folder}/{_NAME}", ignore_errors=True)
            names.remove(_NAME)
        names[:] = [entry for entry in names if _device(f"{folder}/{entry}") == device]


def _is_ours(path: str) -> bool:
    """It holds the box, or nothing but folders like it: what another user than root could not remove."""
    if os.path.islink(path):
        return False
    try:
        names = os.listdir(path)
    except OSError:
        return False
    if "box" in names:
        return os.path.isdir(f"{path}/box/code/benchflow_boxkit")
    return names in ([], [_NAME]) and all(_is_ours(f"{path}/{name}") for name in names)


def _device(path: str) -> int:
    try:
        return os.lstat(path).st_dev
    except OSError:
        return -1
