"""Start-up files of shells: what they set is honest work and stays, what they would run does not.

The effect of the agent's files is looked at in its own box, where they may do what they like; the verifier's box gets
the image's version with these variables and aliases, and the agent's text behind a `return`, for tests that read it.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from benchflow_core.contracts.sandboxes import Sandbox
from benchflow_core.errors import BenchflowError
from benchflow_core.verify.author import AuthorText
from benchflow_core.verify.ground import DEFAULT_PATH

__all__ = ["Effect", "look", "means_start_up", "without_power"]

_MEANT: Final = (
    *(
        "bashrc",
        "bash_profile",
        "bash_login",
        "bash_aliases",
        ".profile",
        "/etc/profile",
        "profile.d",
        "zshrc",
        "zshenv",
    ),
    *("zprofile", "config.fish", "login shell", "shell function", "bash function", "start-up file", "startup file"),
)
_LOOK: Final = """
shell=$(command -v bash) || shell=/bin/sh
exec "$shell" -lic 'for f in ~/.bashrc; do [ ! -f "$f" ] || . "$f"; done >/dev/null 2>&1
printf "%s\\0" ----; env -0; printf "%s\\0" ----; alias' 2>/dev/null </dev/null
"""
_SECONDS: Final = 20.0
_MARK: Final = b"----\0"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ALIAS = re.compile(r"[A-Za-z0-9_.:-]+")
_POWER = re.compile(
    r"LD_.*|PYTHON.*|PERL.*|RUBY.*|GEM_.*|NODE_(?:OPTIONS|PATH|EXTRA_.*)|NPM_CONFIG_.*|GIT_.*|BASH.*|SHELLOPTS|ENV|IFS|PS[0-9]"
    r"|PROMPT_COMMAND|PATH|HOME|USER|LOGNAME|SHELL|SHLVL|PWD|OLDPWD|_|CDPATH|TMPDIR|COLUMNS|LINES|TERM.*|INPUTRC"
    r"|GCC_.*|COMPILER_PATH|LIBRARY_PATH|.*_?INCLUDE_PATH|CPATH|CC|CXX|LD|AR|[A-Z]*FLAGS|MAKEFILES|JAVA_TOOL_OPTIONS|JDK_.*|_JAVA.*"
    r"|CLASSPATH|LUA_.*|TCL.*|PHP.*|R_.*|PYTEST.*|PIP_.*|UV_.*|CURL_.*|.*WGETRC|.*_PROXY|LESS.*|.*PAGER|GREP_.*|AWK.*|GCONV_PATH"
    r"|LOCPATH|NLSPATH|MALLOC_.*|GLIBC_.*|RES_OPTIONS|HOSTALIASES|LOCALDOMAIN|SSL_.*|OPENSSL_.*|.*_PRELOAD|JQ_.*|PSQLRC|PG.*|XDG_.*",
    re.IGNORECASE,
)
"""Variables by which programs are steered: the verifier's are ours, unless the instruction names one."""
_STEERS = re.compile(
    r"TZ|TZDIR|LANG|LANGUAGE|LC_.*|POSIXLY_CORRECT|.*_OPT|.*_?OPTIONS|.*_OPTS|.*FLAGS|.*_ARGS|.*_WRAPPER|.*_HOOKS?|.*_RSH"
    r"|.*ASKPASS|GO(?:PROXY|ENV|ROOT|NOSUMDB|PRIVATE|TOOLCHAIN)|XZ_.*|GZIP|BZIP2?|ZIP|UNZIP|COVERAGE_.*|RIPGREP_.*|GUILE_.*|M4PATH"
)
"""The same, but tests that name one mean to see it."""
_OURS: Final = tuple("PATH HOME USER LOGNAME SHELL SHLVL PWD OLDPWD _ IFS ENV BASH_ENV LD_PRELOAD".split())  # noqa: SIM905
_BY_OTHER_WORDS: Final = {
    "TZ": ("timezone", "time zone"),
    "LANG": ("locale", "language"),
    "LC_ALL": ("locale", "language"),
}


@dataclass(frozen=True, slots=True)
class Effect:
    """What a shell has after its start that it did not have before."""

    variables: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    """Folders of commands, behind those of the image."""
    aliases: Mapping[str, str] = field(default_factory=dict)

    def lines(self) -> str:
        found = [f"export {name}={shlex.quote(value)}" for name, value in self.variables.items()]
        if self.path:
            found.append(f'PATH="${{PATH}}":{shlex.quote(":".join(self.path))}; export PATH')
        known = "command -v {0} >/dev/null 2>&1 || alias {0}={1}"
        found += [known.format(name, shlex.quote(value)) for name, value in self.aliases.items()]
        return "".join(f"{line}\n" for line in found)


def means_start_up(author: AuthorText) -> bool:
    """Is it what the agent was asked for? Then its files are left as they are."""
    return author.instruction_says(*_MEANT)


async def look(box: Sandbox, env: Mapping[str, str], user: str | None, author: AuthorText) -> Effect:
    """Start a shell where the agent's files are, and see; nothing where that cannot be done."""
    with contextlib.suppress(BenchflowError, OSError):
        argv = ("/bin/sh", "-c", _LOOK)
        done = await box.exec(argv, env=env, user=user, cwd="/", timeout=_SECONDS)
        return _effect(done.stdout, env, author)
    return Effect()


def without_power(agents: str, images: str, effect: Effect) -> str:
    """The start-up file for the verifier's box."""
    return f"{effect.lines()}{images.rstrip()}\nreturn 0\n{agents}"


def _effect(output: bytes, env: Mapping[str, str], author: AuthorText) -> Effect:
    _, mark, rest = output.partition(_MARK)
    listed, second, aliases = rest.partition(_MARK)
    if not mark or not second:
        return Effect()
    pairs = (entry.decode("utf-8", "replace").partition("=") for entry in listed.split(b"\0") if entry)
    now = {name: value for name, _, value in pairs if _NAME.fullmatch(name)}
    before = env.get("PATH", DEFAULT_PATH).split(":")
    path = [folder for folder in now.get("PATH", "").split(":") if folder.startswith("/") and folder not in before]
    new = {name: value for name, value in now.items() if env.get(name) != value and _stays(name, author)}
    return Effect(new, tuple(dict.fromkeys(path)), dict(_aliases(aliases.decode("utf-8", "replace"))))


def _stays(name: str, author: AuthorText) -> bool:
    asked = name not in _OURS and author.instruction_names(name)
    if asked or author.instruction_says(*_BY_OTHER_WORDS.get(name, ())):
        return True
    return not _POWER.fullmatch(name) and (not _STEERS.fullmatch(name) or author.tests_use(name))


def _aliases(text: str) -> list[tuple[str, str]]:
    found = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            words = shlex.split(line.removeprefix("alias "))
            name, equals, value = words[0].partition("=") if len(words) == 1 else ("", "", "")
            if equals and _ALIAS.fullmatch(name):
                found.append((name, value))
    return found
