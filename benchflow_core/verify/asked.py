"""What an instruction asks to have made, changed or removed: it is the work, wherever it lies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.author import AuthorText
from benchflow_core.verify.ground import Ground, ancestors, name_of, parent_of
from benchflow_core.verify.programs import package_of

__all__ = ["asked", "asks_to_change", "asks_to_install"]

_VERB: Final = (
    r"(?:fix|repair|correct|patch|modif(?:y|ies)|edit|chang|rewrit|replac|updat|upgrad|downgrad|bump|pin|(?:re|un)?install"
    r"|remov|delet|purg|wrap|overrid|debug|port|extend|improv|harden|convert|bug|error|problem|issue|broken)\w*"
)
_THING: Final = (
    r"(?:packages?|librar(?:y|ies)|modules?|programs?|commands?|scripts?|tools?|binar(?:y|ies)|utilit(?:y|ies)|dependenc(?:y|ies)"
    r"|versions?\s+of)"
)
_OF_IT: Final = (
    r"(?:depend|packag|modul|librar|script|project|code|binding|file|env|virtual|wheel|ext|plugin|app|require|test)"
)
"""Behind the name of a language: not the language itself is meant."""
_LANGUAGES: Final = r"(?:python|bash|sh|shell|perl|node|ruby|php|awk|sed|java|lua|tcl|make|git|npm|pip)[\d.]*"
_SAID: Final = (
    r"(?:(?:(?:re|un)?install|upgrad|downgrad|purg|bump)\w*"
    r"\s+(?:(?:the|all|latest|newest)\s+|[\w.=<>~-]+(?:,|,?\s+and)?\s+){0,5}?[`\"']?NAME(?![`\"']?\s+OF_IT)"
    r"|(?:compil|build)\w*\s+(?:\w+\s+){0,2}?[`\"']?NAME(?=[`\"']?\s*(?:$|[.,;\d]|v\d|version|from|and\s+install|into))"
    r"|(?:remov|delet|updat|pin)\w*\s+[`\"']?NAME(?![`\"']?\s+OF_IT)"
    r"|default\s+(?:version\s+of\s+)?[`\"']?NAME(?![`\"']?\s+OF_IT)"
    r"|VERB\s+(?:[\w'-]+\s+){0,4}?THING\s+(?:called\s+|named\s+)?[`\"']?NAME"
    rf"|VERB\s+(?:the\s+)?(?:\w+\s+){{0,2}}?[`\"']?(?!{_LANGUAGES}\b)NAME[`\"']?"
    r"\s+(?:program|command|script|tool|binary|utility|package|library))(?![\w/-]|\.\w)"
)
_BY_NAME: Final = _SAID.replace("VERB", _VERB).replace("THING", _THING).replace("OF_IT", _OF_IT)
"""A bare name is a word like any other, unless the verb is one for programs, or it says what kind of thing it is."""
_STOPS: Final = (
    "so that until using use uses with via by which when if run runs running call calls calling execute executes invoke"
    " pass passes check checks checked checking test tests tested verify verified verifies like from"
)
_USED = re.compile(
    r"\b(?:run|us(?:e|es|ing)|with|via|call(?:s|ing)?|execut(?:e|es|ing)|invok(?:e|es|ing)|by|like)\s+(?:the\s+)?\W*$"
)
_STATE = re.compile(
    r"[^\w.;]*\s+(?:(?:which|that|currently|always|often)\s+)*(?:fails|crashes|does(?:\s+not|n't)\s+work"
    r"|(?:is|are|has|have|contains?|seems?)\s+(?:\w+\s+){0,3}?(?:broken|buggy|wrong|outdated|vulnerable|bugs?)"
    r"|(?:must|should|needs\s+to|has\s+to)\s+be\s+(?:fixed|repaired|replaced|removed|upgraded|updated|changed|rewritten|patched))\b"
)
_NOT = re.compile(r"^(?:not|never|without|avoid|cannot)$|n't$")
_MAKES = re.compile(
    r"\b(?:writ|creat|add|mak|implement|provid|put|build|generat|produc|complet|fill|fix|sav|stor|develop|configur|updat)\w*\b"
    r"|\bset\s+up\b|\b(?:in|into|as|to|called|named)\s+(?:an?\s+|the\s+)?(?:file\s+|module\s+)?\W?$"
)
_SENTENCE: Final = r"[.!?](?:\s|$)|\n\s*\n|;"
_NEAR: Final = 90
_PROJECT = re.compile(r"^/(?:opt|usr/src|usr/local/src)/")
_INSTALLED = re.compile(r"/(?:s?bin|lib\d*|libexec|[^/]+-packages|node_modules)/")
_RUNNERS_AND_SHELLS: Final = frozenset(("pytest", "bash", "sh", "env", "c"))
_RUNNERS: Final = ("pytest", "_pytest", "pluggy", "iniconfig", "unittest", "nose2")
"""Instructions speak of what runs the tests without meaning that it should be changed."""


def asked(change: Change, ground: Ground) -> bool:
    """Is it what the agent was told to make, where the image has none, or else to change?"""
    path, text = change.path, ground.author.instruction
    if change.kind == "added":
        return _asks_for(path, ground.workdir, text)
    return any(_asked(name, text) for name in _names_of(path)) or _in_a_project(path, text)


def asks_to_change(name: str, author: AuthorText) -> bool:
    """The same, for a distribution by its name."""
    return not name.startswith(_RUNNERS) and _asked(name, author.instruction)


def asks_to_install(path: str, author: AuthorText) -> bool:
    """A command, library or header: is the software that brings it to be installed, so that it comes first?"""
    name = re.sub(r"^lib(?=.*\.(?:so|a)\b)|\.(?:so|a|h|hpp|pc)\b.*$", "", name_of(path).lower())
    names = {name, name.rstrip("0123456789.-"), f"{name}.js"} - _RUNNERS_AND_SHELLS
    return any(len(one) > 1 and _asked(one, author.instruction) for one in names)


def _asks_for(path: str, workdir: str, instruction: str) -> bool:
    names = {path, path.removeprefix(f"{workdir.rstrip('/')}/")} - {""}
    if name_of(path) == "__init__.py":
        names |= {parent_of(path), f"{name_of(parent_of(path))}/"}
    elif "." in name_of(path).strip("."):
        names.add(name_of(path))
    names = {name for name in names if name.lower() in instruction and re.search(r"[/.]", name)}
    return any(_made(instruction[:at], whole=name == path) for name in names for at in _places(name, instruction))


def _made(before: str, *, whole: bool) -> bool:
    """Does the sentence want what is named next? A whole path says more than the name of a file, which may be any."""
    sentence = re.split(_SENTENCE, before[-160:])[-1]
    words = re.findall(r"[\w']+", sentence)
    if _USED.search(before[-40:]) or any(map(_NOT.search, words)):
        return False
    return whole or _MAKES.search(sentence) is not None


def _in_a_project(path: str, instruction: str) -> bool:
    """In a folder of sources that the instruction names, where programs are not installed."""
    place = _PROJECT.match(path)
    if place is None or _INSTALLED.search(path):
        return False
    return any(any(_spans(folder, instruction)) for folder in ancestors(path) if len(folder) > len(place[0]))


def _names_of(path: str) -> list[str]:
    """By which names people speak of a file: by its path, as a command, or as the package that it is part of."""
    package = package_of(path)
    if package is None:
        name = name_of(path)
        return [path, *([] if len(name) < 3 or name.startswith(_RUNNERS) else [name])]
    name = re.sub(r"\.py$|-[^-]+\.(?:dist|egg)-info$", "", package[1])
    plain = re.sub(r"[-_.]+", "-", name).lower()
    if plain.startswith(_RUNNERS):
        return []
    return list(dict.fromkeys((path, name, plain, plain.replace("-", "_"))))


@lru_cache(maxsize=4096)
def _asked(name: str, instruction: str) -> bool:
    if "/" not in name:
        return name in instruction and _asked_by_name(name, instruction)
    spans = _spans(name, instruction)
    return any(_wanted_before(instruction[:at]) or _STATE.match(instruction[end:]) for at, end in spans)


def _asked_by_name(name: str, instruction: str) -> bool:
    said = re.search(rf"{_THING}\s+[`\"']?{re.escape(name.lower())}(?![\w/-]|\.\w)", instruction)
    if said and _STATE.match(instruction[said.end() :]):
        return True
    for found in re.finditer(rf"\b{_BY_NAME.replace('NAME', re.escape(name.lower()))}", instruction):
        before = re.findall(r"[\w']+", instruction[max(0, found.start() - 30) : found.start()])[-3:]
        words = re.findall(r"[\w']+", found[0])
        if not any(map(_NOT.search, before)) and not any(word in _STOPS.split() for word in words):
            return True
    return False


def _wanted_before(text: str) -> bool:
    """A verb that asks for a change, and nothing between it and the name that makes it concern something else."""
    sentence = re.split(_SENTENCE, text[-_NEAR:])[-1]
    words = re.findall(r"[\w'./-]+", sentence)
    for place, word in reversed(list(enumerate(words))[-8:]):
        if word in _STOPS.split() or _NOT.search(word):
            return False
        if re.fullmatch(_VERB, word):
            return not any(_NOT.search(before) for before in words[max(0, place - 3) : place])
    return False


def _places(name: str, text: str) -> Iterator[int]:
    return (at for at, _ in _spans(name, text))


def _spans(name: str, text: str) -> Iterator[tuple[int, int]]:
    """`text` is lower case."""
    if name.lower() not in text:
        return iter(())
    pattern = rf"(?<![\w./-]){re.escape(name.lower())}(?![\w-]|/\w|\.\w)"
    return (found.span() for found in re.finditer(pattern, text))
