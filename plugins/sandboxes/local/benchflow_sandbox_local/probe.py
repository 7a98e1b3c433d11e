"""What this host allows: tried once in a process of its own, and remembered until it is started again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

from benchflow_core.contracts.common import Availability, Capability
from benchflow_core.contracts.quick import dataclass
from benchflow_sandbox_local import leases, limits
from benchflow_sandbox_local.command import ENVIRONMENT, HELPER, helper_command
from benchflow_sandbox_local.helper import landlock, tree

__all__ = ["STAGES", "Facts", "available", "capabilities", "facts", "forced_stage"]

STAGES: Final = {
    1: "own root with this host's programs underneath, everything writable",
    2: "own root, this host's /usr and /opt read-only",
    3: "no namespaces: a plain folder with rewritten paths, the host's network, few promises",
}
_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class Facts:
    stage: int
    reason: str = ""
    """Why not a better one."""
    single_user: bool = False
    idmap: bool = False
    userns: bool = False
    seccomp: bool = False
    landlock: bool = False


def forced_stage(options_stage: str | None = None) -> int:
    """From `--sandbox-option stage=N` or BENCHFLOW_LOCAL_STAGE; 0 where nobody forces one."""
    text = options_stage or os.environ.get("BENCHFLOW_LOCAL_STAGE") or "0"
    return int(text) if text in ("1", "2", "3") else 0


@cache
def facts(stage: int = 0) -> Facts:
    """For a forced stage, or the best there is."""
    known = leases.folder().parent / f"host-{_key(stage)}.json"
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Facts(**json.loads(known.read_text()))
    found = _find(stage)
    with contextlib.suppress(OSError):
        known.parent.mkdir(parents=True, exist_ok=True)
        making = known.with_suffix(f".{os.getpid()}")
        making.write_text(json.dumps({name: getattr(found, name) for name in Facts.__slots__}))
        making.replace(known)
    return found


def _key(stage: int) -> str:
    """Everything a different answer could come from."""
    parts = [str(stage), str(os.geteuid()), sys.executable, *os.uname()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/status", "/proc/sys/user/max_user_namespaces"):
        with contextlib.suppress(OSError):
            text = Path(path).read_text()
            wanted = [row for row in text.splitlines() if row.startswith(("Cap", "NoNewPrivs", "Seccomp:"))]
            parts.append("\n".join(wanted) if path.endswith("status") else text)
    for path in ("/etc/subuid", "/etc/subgid"):
        with contextlib.suppress(OSError):
            parts.append(Path(path).read_text(errors="replace"))
    parts.append(str(shutil.which("newuidmap", path=ENVIRONMENT["PATH"])))
    for name in ("user", "mnt", "pid"):
        with contextlib.suppress(OSError):
            parts.append(str(Path("/proc/self/ns", name).readlink()))
    with contextlib.suppress(OSError):
        parts += [f"{p.name}{p.stat().st_mtime_ns}" for p in sorted(HELPER.glob("*.py"))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _find(stage: int) -> Facts:
    lock = landlock.version() > 0
    if stage == 3 or sys.platform != "linux":
        return Facts(3, "asked for" if stage == 3 else "no Linux", landlock=lock)
    try:
        answer = _try_box(stage)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        answer = {"failed": str(error)}
    if "failed" in answer:
        return Facts(3, str(answer["failed"]), landlock=lock)
    return Facts(
        answer["stage"], answer.get("overlay_reason", ""), answer["single_user"], answer["idmap"], answer["userns"],
        answer["seccomp"], lock,
    )  # fmt: skip


def _try_box(stage: int) -> dict[str, Any]:
    folder = leases.folder().parent
    folder.mkdir(parents=True, exist_ok=True)
    state = tempfile.mkdtemp(prefix="probe-", dir=folder)
    try:
        argv = helper_command("probe", state, str(stage))
        done = subprocess.run(
            argv, env=ENVIRONMENT, capture_output=True, text=True, timeout=_SECONDS, check=False, cwd="/"
        )
    finally:
        tree.remove(state)
    if done.returncode != 0 or not done.stdout:
        return {"failed": (done.stderr.strip().splitlines() or ["the trial ended without a word"])[-1]}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def capabilities() -> frozenset[str]:
    found = facts(forced_stage())
    if found.stage == 3:
        return frozenset({Capability.NETWORK_PUBLIC})
    names = {
        Capability.SNAPSHOT,
        Capability.RESTORE,
        Capability.CHANGES,
        Capability.CHANGES_CARRIED,
        Capability.PORTS,
        Capability.ACCESS_VIEW,
        Capability.NETWORK_PUBLIC,
        Capability.NETWORK_NONE,
        Capability.NETWORK_ALLOWLIST,
        Capability.NETWORK_DYNAMIC,
    }
    if not found.single_user:
        names.add(Capability.USERS)
    return frozenset(names) | _limits()


@cache
def _limits() -> frozenset[str]:
    return limits.find().capabilities


def available() -> Availability:
    found = facts(forced_stage())
    text = f"stage {found.stage}: {STAGES[found.stage]}"
    if found.stage < 3:
        text += "; one user, root" if found.single_user else ""
    if found.reason:
        text += f" ({found.reason})"
    remedy = "" if found.stage == 1 else "Allow user namespaces to this user, or use another sandbox."
    return Availability(True, text, remedy)
