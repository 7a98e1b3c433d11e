"""What the task's author wrote: instruction and tests. The agent cannot change it, so it counts as a declaration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from benchflow_core.verify.searchpath import put_on, stood_in

__all__ = ["AuthorText"]

_FILES: Final = 400
_STATEMENT: Final = 2000
_FILE_BYTES: Final = 512 * 1024
_INSTALL = re.compile(r"\b(?:(?:pip[0-9.]*|pipx|uv\s+pip|uv\s+tool)\s+install|(?:uv|poetry|pdm)\s+add)\b([^\n;&|]*)")
_WITH = re.compile(r"\s(?:--with|-w|--from)[\s=]+(\S+)")
_BACKGROUND = re.compile(
    r"\bpopen\(|\bnohup\b|\bcreate_subprocess_|[^&]&\s*$|\bserve_forever\b|--?daemon|\bctl\w*\s+.*\bstart\b"
    r"|(?:\s|\d>&\d\s*)&\s+\w+=\$!|\s&\s*(?:[)}]|(?:sleep|wait|disown|until|while|for|trap)\b)"
    r"|\.listen\(|\.bind\(\(|\bhttpserver\(|\bcreate_server\(|\bstart_server\(|\bmultiprocessing\b|\buvicorn\.run\("
    r"|\bservice\s+\S+\s+(?:re)?start\b|\bsystemctl\s+(?:re)?start\b",
    re.MULTILINE,
)
_ANY_PORT = re.compile(
    r"\A(?!.*(?<![\d.])\d{4,5}(?![\d.])).*(?:&\s*(?:$|[)}]|\w)|\bnohup\b|\bstart\b|serv|daemon|mock|\bapp|api|listen)",
    re.DOTALL | re.MULTILINE,
)
"""A server whose port is not told where it is started."""
_SYSTEM_INSTALL = re.compile(r"\b(?:apt-get|apt|apk|yum|dnf|microdnf|zypper)\s[^\n;&|]*(?:install|add)\b([^\n;&|]*)")
_SOURCE = re.compile(r"(?:^|[;&|({]|\b(?:then|do|else))[ \t]*(?:source|\.)[ \t]+([^\s;&|)]+)", re.MULTILINE)
_LOGIN = re.compile(r"\b(?:bash|sh|zsh|ksh)\s+(?:-\w+\s+)*-\w*[li]|--login\b|\bsu\s+(?:-\s|-l\b|--login)|\bsudo\s+-i")
_WRITTEN = re.compile(
    r"(?:>{1,2}|\btee(?:\s+-a)?|\s-o)\s*[\"']?(/[^\s\"';&|)<>]+)"
    r"|\b(?:cp|mv|install|ln)\s[^\n;&|]*?\s[\"']?(/[^\s\"';&|)<>]+)[\"']?\s*(?:$|[;&|\n)])",
    re.MULTILINE,
)
_ENVIRONMENT = re.compile(r"(?:-m\s+venv|\bvirtualenv|\buv\s+venv)\s+(?:-\S+\s+)*([^\s;&|)]+)")
_BARE_PYTHON = re.compile(r"\bpython[\d.]*[\"']?,?\s+(?:[\"']?-[^\s]+,?\s+)*[\"']?-[A-Za-z]*S")
_OTHER_USER = re.compile(r"\b(?:su|sudo|setpriv|runuser|gosu|su-exec|setuid|useradd|adduser|chroot)\b|\buser=|--user\b")
_MADE_UP = re.compile(
    r"with_suffix|reward[\"']?\s*\.?[\"']?\s*[{$%*+]|reward-?_?kit"
    r"|\b(?:uvx|npx|pipx\s+run|uv\s+tool\s+run)(?:\s+--?[\w-]+(?:[= ][^\s-]\S*)?)*+\s+(?!pytest)[a-z@]"
)
_EVERYTHING = re.compile(r"^[^#\n]*\w[^#\n]*\s\*(?:\.\w+)?(?=\s|$|[;&|)])", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_BRINGS: Final = {
    **dict.fromkeys(("node", "npm", "npx"), ("nodejs", "nodesource", "nvm install", "nvm use")),
    **dict.fromkeys(("pip", "pip3"), ("get-pip", "python3-pip", "ensurepip")),
    **dict.fromkeys(("uv", "uvx"), ("astral.sh", "install uv")),
}
"""Command to what an author writes who gets it."""
_TEST_RUNNER: Final = ("pluggy", "iniconfig", "packaging", "pygments", "exceptiongroup", "tomli")
"""What pytest brings along: whoever installs pytest means these too."""


class AuthorText:
    """Read once, and only when something is asked of it."""

    def __init__(self, instruction: str, folders: Sequence[Path], script: str) -> None:
        self._instruction, self._folders, self._script = instruction, folders, script

    def says(self, *phrases: str) -> bool:
        """Does the instruction or any test name one of these?"""
        return any(phrase.lower() in self._all for phrase in phrases)

    def tests_use(self, word: str) -> bool:
        return _word(word, self._tests)

    def tests_run(self, tool: str) -> bool:
        """Do the tests use a program of this name, with or without a version behind it?"""
        return re.search(rf"(?<![\w-]){re.escape(tool)}[\d.]*(?![\w-])", self._tests) is not None

    def names_file(self, name: str) -> bool:
        """Is this file named, and not only one that ends alike?"""
        return re.search(rf"(?<![\w*-]){re.escape(name.lower())}(?![\w-])", self._all) is not None

    def tests_name(self, name: str) -> bool:
        """Do the tests name this file or folder, and not only one that ends alike?"""
        name = name.lower()
        return (
            name in self._tests and re.search(rf"(?<![\w*.-]){re.escape(name)}(?![\w-]|/\w)", self._tests) is not None
        )

    def instruction_says(self, *phrases: str) -> bool:
        """What the agent was asked for, other than what the tests happen to use."""
        return any(phrase in self.instruction for phrase in phrases)

    def instruction_names(self, word: str) -> bool:
        return _word(word, self.instruction)

    @cached_property
    def installs(self) -> frozenset[str]:
        """Python distributions that the tests install for themselves, by normalised name."""
        text = re.sub(r"[\"',\[\]]+", " ", self._tests)
        words = [word for match in _INSTALL.finditer(text) for word in match[1].split()]
        words += [match[1] for match in _WITH.finditer(text)]
        words += [line for text in _texts(self._folders, "*requirements*.txt") for line in text.splitlines()]
        names = {normal(found[0]) for word in words if (found := _NAME.match(word))}
        return frozenset(names | (set(_TEST_RUNNER) if "pytest" in names else set()))

    @cached_property
    def sourced(self) -> frozenset[str]:
        """Files that the tests take into their own shell; `~` is the verifier's home."""
        words = (match[1].strip("\"'") for match in _SOURCE.finditer(self._written))
        return frozenset(re.sub(r"^\$\{?HOME\}?(?=/)", "~", word) for word in words)

    @cached_property
    def written(self) -> frozenset[str]:
        """Absolute paths that the tests write to."""
        found = (match[1] or match[2] for match in _WRITTEN.finditer(self._written))
        return frozenset(path.rstrip("/") for path in found if not path.startswith("/dev/"))

    @cached_property
    def path_folders(self) -> tuple[str, ...]:
        """Folders that the tests put on PATH; `~` is the verifier's home."""
        return put_on("PATH", self._written)

    @cached_property
    def library_folders(self) -> tuple[str, ...]:
        """Folders in which the tests let the loader look first."""
        return put_on("LD_LIBRARY_PATH", self._written)

    @cached_property
    def stood_in(self) -> tuple[str, ...]:
        return stood_in(self._written)

    @property
    def leaves_names_open(self) -> bool:
        """Do the tests hand every name of a folder to a program, which may take one for an option?"""
        return _EVERYTHING.search(self._written) is not None

    @cached_property
    def starts_login_shells(self) -> bool:
        return _LOGIN.search(self._tests) is not None

    @property
    def switches_user(self) -> bool:
        return _OTHER_USER.search(self._tests) is not None

    def not_theirs(self, rewards: Sequence[str]) -> list[str]:
        """Of these files, those that no test speaks of, beside one that they do.

        None where the tests make up names, or run a tool from elsewhere, which may write what they do not name.
        """
        named = [name for name in rewards if name in self._tests]
        if not named or _MADE_UP.search(self._tests):
            return []
        return [name for name in rewards if name not in named]

    def brings(self, name: str) -> bool:
        """Is a file of this name among the tests?"""
        return any(True for folder in self._folders for _ in folder.rglob(name))

    @cached_property
    def environments(self) -> tuple[str, ...]:
        """Where the tests make virtual environments; `~` is the verifier's home."""
        words = (match[1].strip("\"'") for match in _ENVIRONMENT.finditer(self._written))
        places = (re.sub(r"^\$\{?HOME\}?(?=/)", "~", word).rstrip("/") for word in words)
        return tuple(dict.fromkeys(place for place in places if place.startswith(("/", "~/"))))

    @property
    def starts_bare_python(self) -> bool:
        """Without the `site` module, where no guard can be."""
        return _BARE_PYTHON.search(self._written) is not None

    def tests_serve(self, port: int) -> bool:
        """Do the tests start servers themselves, on this port too, of which the instruction says nothing?"""
        named = re.compile(rf"(?<!\d){port}(?!\d)")
        if not named.search(self._tests) or named.search(self._instruction):
            return False
        called = {found[1] for found in re.finditer(rf"\b([a-z_]\w*)[\"']?\s*[:=]+\s*[\"']?{port}(?!\d)", self._tests)}
        words = re.compile("|".join([named.pattern, *(rf"\b{word}\b" for word in sorted(called))]))
        return any(words.search(one) or _ANY_PORT.search(one) for one in self._serving)

    @cached_property
    def _serving(self) -> list[str]:
        """The lines of the tests that start something in the background, or a server; with all of its arguments."""
        text, found = self._tests, []
        for match in _BACKGROUND.finditer(text):
            start, end = text.rfind("\n", 0, match.start()) + 1, match.end()
            depth = text.count("(", match.start(), end) - text.count(")", match.start(), end)
            while end < len(text) and (depth > 0 or text[end] != "\n") and end - start < _STATEMENT:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            found.append(text[start:end])
        return found

    def means_server(self, *names: str) -> bool:
        """Does the instruction name one of these, or a test that starts no server itself?"""
        if any(name.lower() in self.instruction for name in names):
            return True
        return any(name.lower() in self._tests for name in names) and _BACKGROUND.search(self._tests) is None

    def tests_install(self, command: str) -> bool:
        """Does a test install a package of this name with the distribution's package manager?"""
        return any(_word(command, match[1]) for match in _SYSTEM_INSTALL.finditer(self._tests))

    def means_host(self, name: str) -> bool:
        """Does the instruction name this host, or a test that looks into `/etc/hosts` for it?"""
        looked = rf"/etc/hosts\b[^\n]*{re.escape(name)}|{re.escape(name)}[^\n]*/etc/hosts\b"
        return self.instruction_names(name) or re.search(looked, self._tests) is not None

    def tests_bring(self, command: str) -> bool:
        """Do the tests get this command from anywhere: a package, an installer's address, or a tool that brings it?"""
        if command.rstrip("3") in self.installs or self.tests_install(command):
            return True
        if any(phrase in self._tests for phrase in _BRINGS.get(command, ())):
            return True
        got = rf"(?:https?://\S*|\binstall\b[^\n;&|]*(?<![\w.-])){re.escape(command)}(?![\w-])"
        return re.search(got, self._tests) is not None

    @cached_property
    def first_line(self) -> str:
        """The test script's `#!` line, or nothing."""
        for folder in reversed(self._folders):
            path = folder / self._script
            if path.is_file():
                with path.open("rb") as file:
                    line = file.readline(512).decode("utf-8", "replace").rstrip("\r\n")
                return line if line.startswith("#!") else ""
        return ""

    @cached_property
    def _tests(self) -> str:
        return self._written.lower()

    @cached_property
    def _written(self) -> str:
        return "\n".join(_texts(self._folders)).replace("\\\n", " ")

    @cached_property
    def _all(self) -> str:
        return f"{self.instruction}\n{self._tests}"

    @cached_property
    def instruction(self) -> str:
        """In lower case."""
        return self._instruction.lower()


def normal(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _word(word: str, text: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(word.lower())}(?![\w-])", text) is not None


def _texts(folders: Sequence[Path], names: str = "*") -> Iterator[str]:
    paths = (path for folder in folders for path in sorted(folder.rglob(names)))
    for _, path in zip(range(_FILES), paths, strict=False):
        if path.is_file():
            with path.open("rb") as file:
                data = file.read(_FILE_BYTES)
            if b"\0" not in data[:1024]:
                yield data.decode("utf-8", "replace")
