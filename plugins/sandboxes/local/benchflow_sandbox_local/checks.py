"""Lines for `bench plugins doctor`."""

from __future__ import annotations

import shutil

from benchflow_core.contracts.common import Check
from benchflow_sandbox_local import leases, limits, probe

__all__ = ["run"]

_LEAST_GB = 2


def run() -> list[Check]:
    found = probe.facts(probe.forced_stage())
    return [_stage(found), *([] if found.stage == 3 else _inside(found)), _limits(), _leftovers(), _space()]


def _stage(found: probe.Facts) -> Check:
    text = f"stage {found.stage}: {probe.STAGES[found.stage]}"
    if found.stage == 1:
        return Check("stage", "ok", text)
    remedy = "Allow user namespaces (sysctl user.max_user_namespaces, AppArmor, the container's seccomp profile)."
    return Check("stage", "warn", f"{text} ({found.reason})", remedy)


def _inside(found: probe.Facts) -> list[Check]:
    network = "own network with loopback; the way out is an HTTP proxy that keeps to the policy"
    return [_users(found), _seccomp(found), Check("network", "ok", network)]


def _users(found: probe.Facts) -> Check:
    if not found.userns:
        text = "no user namespace: root in a box is root here, without its capabilities"
        return Check("users", "warn", text, "Raise the sysctl user.max_user_namespaces.")
    if found.single_user:
        remedy = "Install uidmap and add a line for this user to /etc/subuid and /etc/subgid."
        return Check("users", "warn", "one user, root, who is you outside", remedy)
    return Check("users", "ok", f"a range of users, ids {'shifted away from' if found.idmap else 'as on'} the host's")


def _seccomp(found: probe.Facts) -> Check:
    if found.seccomp:
        return Check("seccomp", "ok", "system calls are filtered")
    return Check("seccomp", "warn", "there is no filter for this processor", "Use x86_64 or aarch64.")


def _limits() -> Check:
    names = sorted(limits.find().capabilities)
    if names:
        return Check("limits", "ok", ", ".join(names))
    remedy = "Run as root, or have control groups delegated to this user (systemd: Delegate=yes)."
    return Check("limits", "warn", "no control groups can be made: memory, CPU and processes are not limited", remedy)


def _leftovers() -> Check:
    left = leases.left_behind()
    if not left:
        return Check("leftovers", "ok", "none")
    return Check(
        "leftovers",
        "warn",
        f"{len(left)} of runs that were killed",
        "They go with the next run that uses the same cache.",
    )


def _space() -> Check:
    folder = next(path for path in (leases.folder(), *leases.folder().parents) if path.exists())
    free = shutil.disk_usage(folder).free // 1024**3
    if free >= _LEAST_GB:
        return Check("disk", "ok", f"{free} GB free for boxes")
    return Check("disk", "warn", f"{free} GB free for boxes", "Free some space, or set --sandbox-option dir=FOLDER.")
