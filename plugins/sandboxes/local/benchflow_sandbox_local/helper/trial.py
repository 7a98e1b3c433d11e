"""One real box, made and ended: what `probe` asks for, so that nothing is promised that was not seen."""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

from benchflow_boxkit.inside import system, wire

from benchflow_sandbox_local.helper import box, linux, setup

_FOLDERS = ("usr", "proc", "sys", "dev/shm")


def run(state: str, stage: int) -> dict[str, Any]:
    """The facts, or `{"failed": reason}`."""
    for name in ("stage", "boxes", "trash", "base/root", *(f"base/root/{n}" for n in _FOLDERS)):
        os.makedirs(f"{state}/{name}", exist_ok=True)
    try:
        host, facts = setup.prepare({"state": state, "dirs": [["usr", "/usr"]], "stage": stage})
        reason = _start(host, state, facts["read_only"])
    except (OSError, setup.Unavailable) as error:
        reason = box.reason(error)
    return {"failed": reason} if reason else facts


def _start(host: box.Host, state: str, read_only: list[str]) -> str:
    kind = "overlay" if host.stage == 1 else "private"
    mounts: list[dict[str, Any]] = [{"at": "/", "name": "root", "kind": kind, "lower": ["data/base/root"]}]
    if host.stage == 1 and not read_only:
        mounts.append({"at": "/usr", "name": "usr", "kind": kind, "lower": ["low/usr"]})
    if host.stage == 2:
        for name in _FOLDERS:
            os.makedirs(f"{state}/boxes/trial/u/root/{name}")
    plan = {"box": "trial", "mounts": mounts, "cgroups": [], "own_network": True, "hostname": "box"}
    plan |= {"workdir": "/", "repositories": []}
    ours, theirs = socket.socketpair()
    pid = linux.clone(linux.CLONE_NEWPID | system.CLONE_NEWNS)
    if pid == 0:
        ours.close()
        box.run(host, plan, theirs)
    theirs.close()
    with ours, ours.makefile("rb") as answer:
        head = answer.read(wire.HEADER.size)
        message = wire.parse(answer.read(wire.HEADER.unpack(head)[2])) if head else {"event": "failed"}
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "" if message["event"] == "ready" else str(message.get("reason", "the first box ended at once"))
