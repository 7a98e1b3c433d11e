"""A box's /etc: a copy of what anybody may read of the host's, without its secrets, accounts and addresses."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["Entry", "copy_etc", "entries"]

Entry = tuple[str, os.stat_result]

# Never copied, whatever their permissions. What others may not read is left out as well.
_SECRET: Final = (
    "*.key", "*_key", "*.keytab", "*.p12", "*.pfx", "*secret*", "*credential*", "*.token", "shadow*", "gshadow*",
    "sudoers*", "auth.conf*", ".netrc", "private",
)  # fmt: skip
_SECRET_NAME: Final = re.compile("|".join(fnmatch.translate(pattern) for pattern in _SECRET))
_NOT_OURS: Final = frozenset({
    "ssh", "docker", "containers", "kubernetes", "cni", "google", "boto.cfg", "rancher", "wireguard", "openvpn",
    "letsencrypt", "krb5kdc", "NetworkManager", "cloud", "machine-id", "fstab", "crypttab", "mtab", "resolv.conf",
    "hosts", "hostname", "passwd", "passwd-", "group", "group-", "subuid", "subuid-", "subgid", "subgid-", ".pwd.lock",
})  # fmt: skip
"""Directly in /etc: other services' settings, and what is generated instead."""
_CONFIG_WITH_KEYS: Final = ("pip.conf", "npmrc", "yarnrc", "gitconfig", "wgetrc", "curlrc", "environment")
_WITH_KEY: Final = re.compile(r"//[^/\s:@]+:[^/\s@]+@|_auth|_password|\btoken\b|password\s*=", re.IGNORECASE)
_LARGEST: Final = 8 * 1024 * 1024
_DEEPEST: Final = 12


def entries(folder: str = "/etc", depth: int = 0) -> Iterator[Entry]:
    """What a box may see of /etc: readable by anybody on the host, and not a secret by name."""
    try:
        with os.scandir(folder) as found:
            rows = sorted(found, key=lambda e: e.name)
    except OSError:
        return
    for entry in rows:
        if (depth == 0 and entry.name in _NOT_OURS) or _SECRET_NAME.match(entry.name):
            continue
        info = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            if info.st_mode & 0o005 == 0o005 and depth < _DEEPEST:
                yield entry.path, info
                yield from entries(entry.path, depth + 1)
        elif stat.S_ISLNK(info.st_mode) or (
            stat.S_ISREG(info.st_mode) and info.st_mode & 0o004 and info.st_size < _LARGEST
        ):
            yield entry.path, info


def copy_etc(target: Path, found: list[Entry]) -> None:
    own_ids = os.geteuid() == 0
    for path, info in found:
        copy = f"{target}{path.removeprefix('/etc')}"
        if stat.S_ISDIR(info.st_mode):
            os.mkdir(copy)
        elif stat.S_ISLNK(info.st_mode):
            os.symlink(os.readlink(path), copy)
            continue
        else:
            try:
                _copy_config(path, copy)
            except OSError:
                continue
        os.chmod(copy, stat.S_IMODE(info.st_mode))
        if own_ids and (info.st_uid or info.st_gid):
            os.chown(copy, info.st_uid, info.st_gid)
    _write_generated(target)


def _copy_config(path: str, copy: str) -> None:
    if os.path.basename(path) in _CONFIG_WITH_KEYS:
        lines = Path(path).read_text(errors="surrogateescape").splitlines(keepends=True)
        kept = [line for line in lines if not _WITH_KEY.search(line)]
        Path(copy).write_text("".join(kept), errors="surrogateescape")
        return
    shutil.copyfile(path, copy)
    with contextlib.suppress(OSError):
        info = os.stat(path)
        os.utime(copy, ns=(info.st_atime_ns, info.st_mtime_ns))


def _accounts() -> tuple[list[list[str]], list[list[str]]]:
    """The host's system users and groups: people's accounts stay outside."""

    def rows(path: str, fields: int, at: int) -> list[list[str]]:
        try:
            lines = Path(path).read_text(errors="replace").splitlines()
        except OSError:
            return []
        split = [line.split(":") for line in lines]
        return [r for r in split if len(r) == fields and r[at].isdigit() and (int(r[at]) < 1000 or int(r[at]) == 65534)]

    users = [r for r in rows("/etc/passwd", 7, 2) if r[0] != "root"]
    groups = [[r[0], "x", r[2], ""] for r in rows("/etc/group", 4, 2) if r[0] != "root"]
    shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    users = [["root", "x", "0", "0", "root", "/root", shell], *([r[0], "x", *r[2:]] for r in users)]
    return users, [["root", "x", "0", ""], *groups]


def _write_generated(target: Path) -> None:
    users, groups = _accounts()
    files = {
        "passwd": ("".join(":".join(r) + "\n" for r in users), 0o644),
        "group": ("".join(":".join(r) + "\n" for r in groups), 0o644),
        "shadow": ("".join(f"{r[0]}:*:19000:0:99999:7:::\n" for r in users), 0o640),
        "gshadow": ("".join(f"{r[0]}:*::\n" for r in groups), 0o640),
        "hosts": ("127.0.0.1\tlocalhost box\n::1\tlocalhost ip6-localhost ip6-loopback\n", 0o644),
        "hostname": ("box\n", 0o644),
        "resolv.conf": ("# names are resolved by the proxy that http_proxy and https_proxy point to\n", 0o644),
        "machine-id": ("", 0o444),
        "fstab": ("", 0o644),
        "subuid": ("", 0o644),
        "subgid": ("", 0o644),
    }
    for name, (text, mode) in files.items():
        (target / name).write_text(text)
        (target / name).chmod(mode)
    (target / "mtab").symlink_to("/proc/self/mounts")
    if (target / "apt/apt.conf.d").is_dir() and os.geteuid() != 0:
        # apt would change to a user that does not exist where one uid is mapped.
        (target / "apt/apt.conf.d/99box").write_text('APT::Sandbox::User "root";\n')
