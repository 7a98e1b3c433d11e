"""Rule three: configuration stays, as the agent's honest work, but does not steer the verifier's own tools.

Where a tool can be told by its environment to read another file, it is told so, and the agent's file stays where it is.
Where it cannot, the file is put back. Neither is done to a file that the task's author names: the tests are about it.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from benchflow_core.contracts.quick import dataclass
from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.ground import Ground, name_of

__all__ = ["EMPTY_FILES", "Steer", "steering"]

EMPTY_FILES: Final = ("empty", "npmrc", "npmrc-global", ".curlrc", "uv.toml")
"""Made in our own folder, which `{folder}` stands for below."""


@dataclass(frozen=True, slots=True)
class Steer:
    """Files that one tool reads by itself."""

    tool: str
    files: tuple[str, ...]
    """Globs; `~` is the verifier's home, `.` the working directory."""
    named: tuple[str, ...]
    """What an author writes who means them, beside the file's own path."""
    env: Mapping[str, str] = field(default_factory=dict)
    """How the tool is told to look elsewhere. Empty: the file is put back."""


_STEERS: Final = (
    Steer(
        "pip",
        ("*/pip.conf", "/etc/xdg/pip/*", "~/.pip/*", "~/.config/pip/*"),
        ("pip.conf", "pip config"),
        {"PIP_CONFIG_FILE": "/dev/null"},
    ),
    Steer(
        "uv",
        ("/etc/uv/*", "/etc/xdg/uv/*", "~/.config/uv/*", "./uv.toml", "/uv.toml"),
        ("uv.toml",),
        {"UV_CONFIG_FILE": "{folder}/uv.toml"},
    ),
    Steer(
        "npm",
        ("/etc/npmrc", "*/etc/npmrc", "*/node_modules/npm/npmrc", "~/.npmrc"),
        ("npmrc", "npm config"),
        {"NPM_CONFIG_USERCONFIG": "{folder}/npmrc", "NPM_CONFIG_GLOBALCONFIG": "{folder}/npmrc-global"},
    ),
    Steer("curl", ("~/.curlrc", "~/.config/curlrc"), ("curlrc",), {"CURL_HOME": "{folder}"}),
    Steer(
        "wget",
        ("/etc/wgetrc", "~/.wgetrc"),
        ("wgetrc",),
        {"WGETRC": "{folder}/empty", "SYSTEM_WGETRC": "{folder}/empty"},
    ),
    Steer("go", ("~/.config/go/env",), ("go env",), {"GOENV": "off"}),
    Steer(
        "R",
        ("~/.Rprofile", "./.Rprofile", "~/.Renviron", "./.Renviron"),
        (),
        {"R_PROFILE_USER": "{folder}/empty", "R_ENVIRON_USER": "{folder}/empty"},
    ),
    Steer("psql", ("~/.psqlrc",), (), {"PSQLRC": "/dev/null"}),
    Steer(
        "openssl", ("/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf", "/usr/lib/ssl/openssl.cnf"), ("openssl.cnf",)
    ),
    Steer("sqlite3", ("~/.sqliterc", "~/.config/sqlite3/*"), ()),
    Steer("mysql", ("~/.my.cnf", "~/.mylogin.cnf"), ()),
    Steer("cargo", ("~/.cargo/config", "~/.cargo/config.toml"), (".cargo",)),
    Steer("maven", ("~/.m2/settings.xml", "~/.mavenrc"), (".m2",)),
    Steer("gradle", ("~/.gradle/init.gradle*", "~/.gradle/init.d/*", "~/.gradle/gradle.properties"), (".gradle",)),
    Steer("yarn", ("~/.yarnrc", "~/.yarnrc.yml"), ()),
    Steer("bundler", ("~/.bundle/config",), ("bundle config",)),
    Steer("distutils", ("~/.pydistutils.cfg",), ()),
    Steer("gdb", ("~/.gdbinit", "~/.config/gdb/*"), ()),
    Steer("julia", ("~/.julia/config/startup.jl",), ("startup.jl",)),
    Steer("octave", ("~/.octaverc",), ()),
    Steer("tmux", ("~/.tmux.conf", "~/.config/tmux/*", "/etc/tmux.conf"), ("tmux.conf",)),
    Steer("java", ("/etc/java-*", "/etc/.java/*"), ("/etc/java", "java.security", "cacerts")),
    Steer("sudo", ("/etc/sudo.conf",), ("sudo.conf",)),
    Steer("uv's downloads", ("~/.cache/uv/*",), (".cache/uv",), {"UV_CACHE_DIR": "{folder}/own/uv-cache"}),
    Steer("pip's downloads", ("~/.cache/pip/*",), (".cache/pip",), {"PIP_CACHE_DIR": "{folder}/own/pip-cache"}),
    Steer("npm's downloads", ("~/.npm/_*",), (".npm/_",), {"NPM_CONFIG_CACHE": "{folder}/own/npm-cache"}),
    Steer(
        "uv's choice of Python",
        ("~/.local/share/uv/*",),
        (".local/share/uv",),
        {"UV_PYTHON_INSTALL_DIR": "{folder}/own/uv-python", "UV_TOOL_DIR": "{folder}/own/uv-tools"},
    ),
    Steer(
        "apt",
        ("/etc/apt/sources.list*", "/etc/apt/preferences*", "/etc/apt/trusted*", "/etc/apt/auth.conf*"),
        ("/etc/apt", "sources.list"),
    ),
    Steer("the resolver", ("/etc/resolv.conf", "/etc/host.conf", "/etc/gai.conf"), ("resolv.conf", "gai.conf")),
    Steer(
        "logins",
        ("/etc/pam.d/*", "/etc/pam.conf", "/etc/security/*", "/etc/environment"),
        ("pam.d", "/etc/security", "/etc/environment"),
    ),
)


def steering(change: Change, ground: Ground) -> Steer | None:
    """Which tool of the verifier's this change would steer, unless the author names it."""
    path = change.path
    for steer in _STEERS:
        if any(fnmatch.fnmatchcase(path, _at(glob, ground)) for glob in steer.files):
            return None if ground.author.says(_distinct(path), *steer.named) else steer
    if path.startswith("/etc/alternatives/") and change.kind != "added" and not ground.author.says("alternatives"):
        return Steer("the choice between programs", (), ())
    return None


def _distinct(path: str) -> str:
    """As much of a path as nobody writes who means something else."""
    name = name_of(path)
    return name if name.startswith(".") else "/".join(path.split("/")[-2:])


def _at(glob: str, ground: Ground) -> str:
    if glob.startswith("~/"):
        return ground.home + glob[1:]
    return ground.workdir + glob[1:] if glob.startswith("./") else glob
