"""Rule three: configuration stays, as the agent's honest work, but does not steer the verifier's own tools.

Where a tool can be told by its environment to read another file, it is told so, and the agent's file stays where it is.
Where it cannot, the file is put back. Neither is done to a file that the task's author names: the tests are about it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Final

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.quick import dataclass
from benchflow_core.verify.asked import asks_to_install
from benchflow_core.verify.ground import Ground, name_of
from benchflow_core.verify.startup import is_login_file

__all__ = ["EMPTY_FILES", "Steer", "steering"]

EMPTY_FILES: Final = ("empty", "npmrc", "npmrc-global", ".curlrc", "uv.toml")
"""Made in our own folder, which `{folder}` stands for below."""

_SETTINGS = re.compile(
    r"(?:[._-]?(?:rc|init|profile|config))?(?:\.(?:conf|cfg|toml|ini|jsonc?|ya?ml|[cm]?js|py|rc|xml|lua|d))*$"
)
"""What the name of a program has behind it in the name of its settings."""
_IN_A_FOLDER = re.compile(
    r"(?:^|[._-])(?:rc|init|profile|config|settings)(?:$|[._-])|rc$|\.(?:conf|cfg|toml|ini|jsonc?|ya?ml|xml)$"
)
"""Settings in a folder of the home that is called after a program."""
_APART: Final = tuple(".git .ssh .env .npmrc git systemd".split())  # noqa: SIM905  a plugin has one of these names
"""Judged elsewhere, or no settings of one program."""


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
    used: tuple[str, ...] = ()
    """Only where the tests run one of these."""
    asked: tuple[str, ...] = ()
    """What an instruction says that means them; tests that only use the tool do not."""
    work: bool = False
    """It holds more than the tool's settings, so that it stays where the agent changed it, too."""


_SSH: Final = tuple("ssh scp sftp rsync git".split())  # noqa: SIM905
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
    Steer(
        "npm's scripts",
        ("./.npmrc",),
        ("npmrc", "npm config"),
        {"NPM_CONFIG_SCRIPT_SHELL": "/bin/sh", "NPM_CONFIG_NODE_OPTIONS": "--no-deprecation"},
    ),
    Steer(
        "node",
        ("~/.node_modules*", "~/.node_libraries*", "/usr/lib/node/*", "/usr/local/lib/node/*"),
        ("/.node_modules", "/.node_libraries"),
    ),
    Steer("ssh", ("~/.ssh/config", "/etc/ssh/ssh_config*"), (".ssh/config", "ssh_config"), used=_SSH, asked=("ssh",)),
    Steer("php", ("/etc/php*", "/usr/local/etc/php*"), ("php.ini",), asked=("php",)),
    Steer("vim", ("~/.vim/*", "~/.config/nvim/*", "/etc/vim/*", "/usr/share/vim/*"), (), asked=("vim",)),
    Steer("gdb", ("/usr/share/gdb/auto-load/*", "/etc/gdb/*"), (), asked=("gdb",)),
    Steer(
        "emacs",
        ("~/.emacs*", "/etc/emacs/*", "*/site-lisp/site-start.el", "*/site-lisp/default.el"),
        (),
        asked=("emacs",),
    ),
    Steer("rustup", ("~/.rustup/settings.toml",), ("rustup",), asked=("rust", "cargo")),
    Steer("pyenv", ("~/.pyenv/version", "./.python-version"), (".python-version",), asked=("pyenv", "python 3")),
    Steer("nvm", ("~/.nvm/alias/*",), ("nvm alias",), asked=("nvm", "node")),
    Steer("rbenv", ("~/.rbenv/version", "./.ruby-version"), (".ruby-version",), asked=("ruby",)),
    Steer("version managers", ("~/.tool-versions", "./.tool-versions", "~/.config/mise/*"), (), asked=("asdf", "mise")),
    Steer("file", ("/etc/magic*", "~/.magic*"), ("magic",), used=("file", "magic")),
    Steer("ipython", ("~/.ipython/*",), (), asked=("ipython", "jupyter", "notebook")),
    Steer("sudo's rules", ("/etc/sudoers*", "/etc/doas.conf", "/etc/polkit-1/*"), ("sudo", "doas", "polkit", "admin")),
    Steer("R", ("/etc/R/*",), (), asked=("rprofile", "renviron")),
    Steer(
        "git's view of commits",
        ("*/refs/replace/*", "*/packed-refs"),
        ("git replace", "refs/replace"),
        {"GIT_NO_REPLACE_OBJECTS": "1"},
    ),
    Steer(
        "uv's settings of a project",
        ("./pyproject.toml", "/pyproject.toml"),
        ("tool.uv",),
        {"UV_CONFIG_FILE": "{folder}/uv.toml"},
        used=("uv", "uvx"),
        asked=("uv ", "pyproject"),
        work=True,
    ),
    Steer("go", ("~/.config/go/env",), ("go env",), {"GOENV": "off"}),
    Steer(
        "R",
        ("~/.Rprofile", "./.Rprofile", "~/.Renviron", "./.Renviron"),
        (),
        {"R_PROFILE_USER": "{folder}/empty", "R_ENVIRON_USER": "{folder}/empty"},
    ),
    Steer("psql", ("~/.psqlrc",), (), {"PSQLRC": "/dev/null"}),
    Steer("psql", ("/etc/postgresql-common/psqlrc",), ("psqlrc",)),
    Steer(
        "openssl", ("/etc/ssl/openssl.cnf", "/etc/pki/tls/openssl.cnf", "/usr/lib/ssl/openssl.cnf"), ("openssl.cnf",)
    ),
    Steer("sqlite3", ("~/.sqliterc", "~/.config/sqlite3/*"), ()),
    Steer("mysql", ("~/.my.cnf", "~/.mylogin.cnf"), ()),
    Steer("cargo", ("~/.cargo/config", "~/.cargo/config.toml"), (".cargo",)),
    Steer("cmake", ("~/.cmake/*",), (), asked=("cmake",)),
    Steer("maven", ("~/.m2/settings.xml", "~/.mavenrc"), (".m2",)),
    Steer("gradle", ("~/.gradle/init.gradle*", "~/.gradle/init.d/*", "~/.gradle/gradle.properties"), (".gradle",)),
    Steer("yarn", ("~/.yarnrc", "~/.yarnrc.yml"), ()),
    Steer("bundler", ("~/.bundle/config",), ("bundle config",)),
    Steer("distutils", ("~/.pydistutils.cfg",), ()),
    Steer("gdb", ("~/.gdbinit", "~/.config/gdb/*"), ()),
    Steer("julia", ("~/.julia/config/startup.jl", "/etc/julia/*"), ("startup.jl",)),
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
        asked=("apt repository", "apt source", "apt mirror", "package repository", "package mirror"),
    ),
    Steer("the resolver", ("/etc/resolv.conf", "/etc/host.conf", "/etc/gai.conf"), ("resolv.conf", "gai.conf")),
    Steer(
        "the time zone",
        ("/etc/localtime", "/etc/timezone"),
        ("localtime", "/etc/timezone", "timedatectl", "tzdata"),
        asked=("timezone", "time zone", "time-zone", "tz", "utc", "local time", "clock"),
    ),
    Steer(
        "types of files",
        ("/etc/mime.types", "/etc/*/mime.types", "/etc/mailcap", "~/.mime.types", "~/.mailcap"),
        ("mime.types", "mailcap"),
    ),
    Steer(
        "names of services and hosts",
        ("/etc/services", "/etc/protocols", "/etc/networks", "/etc/rpc", "/etc/ethers", "/etc/netgroup"),
        ("getent",),
        asked=("services", "protocols", "networks", "service name", "named port"),
    ),
    Steer("name lookups", ("/etc/nsswitch.conf",), ("nsswitch", "name service")),
    Steer(
        "logins",
        (
            *("/etc/pam.d/*", "/etc/pam.conf", "/etc/security/*", "/etc/environment", "/etc/environment.d/*"),
            *("/etc/login.defs", "/etc/default/su", "/etc/default/useradd", "/etc/adduser.conf", "~/.pam_environment"),
        ),
        ("pam.d", "/etc/security", "/etc/environment", "login.defs", "/etc/default/useradd", "adduser.conf"),
    ),
    Steer(
        "apt's downloads",
        ("/var/lib/apt/lists/*", "/var/cache/apt/*"),
        ("apt-cache", "apt list", "/var/lib/apt", "/var/cache/apt"),
    ),
)


def steering(change: Change, ground: Ground) -> Steer | None:
    """Which tool of the verifier's this change would steer, unless the author names it."""
    path, home, workdir = change.path, ground.home, ground.workdir
    for steer in _STEERS if _any_of_them(home, workdir).match(path) else ():
        if any(fnmatch.fnmatchcase(path, _at(glob, home, workdir)) for glob in steer.files):
            meant = ground.author.says(_distinct(path), *steer.named) or ground.author.instruction_says(*steer.asked)
            idle = steer.used and not any(map(ground.author.tests_run, steer.used))
            return None if meant or idle else steer
    if path.startswith("/etc/alternatives/") and change.kind != "added" and not ground.author.says("alternatives"):
        return None if asks_to_install(path, ground.author) else Steer("the choice between programs", (), ())
    return _of_a_tool(change, ground)


def _of_a_tool(change: Change, ground: Ground) -> Steer | None:
    """A file of settings in the verifier's home, called after a program that the tests use and nobody asked about."""
    path = change.path
    rest = path.removeprefix(f"{ground.home}/")
    name, _, inside = rest.removeprefix(".config/").partition("/")
    ours = rest.startswith(".config/") or (rest.startswith(".") and rest != ".config" and "/" not in inside)
    if rest == path or not ours or is_login_file(path) or name.startswith(_APART):
        return None
    if not rest.startswith(".config/") and (change.type == "dir" or (inside and not _IN_A_FOLDER.search(inside))):
        return None  # a folder may hold a toolchain
    named = f".config/{name}" if rest.startswith(".config/") else name
    tool = _SETTINGS.sub("", name.lstrip(".").lower())
    author = ground.author
    if len(tool) < 2 or author.instruction_says(tool) or not author.tests_run(tool) or author.names_file(named):
        return None
    return Steer(tool, (), ())


def _distinct(path: str) -> str:
    """As much of a path as nobody writes who means something else."""
    name = name_of(path)
    return name if name.startswith(".") else "/".join(path.split("/")[-2:])


@cache
def _any_of_them(home: str, workdir: str) -> re.Pattern[str]:
    """Most paths concern no tool at all: asked once for all of them."""
    return re.compile("|".join(fnmatch.translate(_at(glob, home, workdir)) for s in _STEERS for glob in s.files))


def _at(glob: str, home: str, workdir: str) -> str:
    if glob.startswith("~/"):
        return home + glob[1:]
    return workdir + glob[1:] if glob.startswith("./") else glob
