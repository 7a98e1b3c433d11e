"""Gmail's search language: parsed into a predicate over a message's row."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

__all__ = ["MailQuery", "Mailbox", "parse_query"]

Row = Mapping[str, Any]
Test = Callable[[Row], bool]


@dataclass(frozen=True)
class Mailbox:
    """What a query is asked against."""

    user: str
    now_ms: int
    labels: Mapping[str, str]
    """Label name as searched (lower case, spaces and slashes as dashes) to id."""


@dataclass(frozen=True)
class MailQuery:
    test: Test
    everywhere: bool
    """It names spam or trash itself, so these are not left out."""


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<open>[({]) | (?P<close>[)}]) | (?P<or>(?:OR|\|)(?=[\s({"]|$)) | (?P<and>AND(?=[\s({"]|$))
      | (?P<not>-(?=\S)) | (?P<around>AROUND\s+\d+(?=\s|$))
      | (?P<op>[A-Za-z][\w]*):(?P<arg>"[^"]*"?|[({]|[^\s(){}]*)
      | "(?P<phrase>[^"]*)"? | (?P<word>[^\s(){}"]+)
    )""",
    re.VERBOSE,
)


def parse_query(text: str, mailbox: Mailbox) -> MailQuery:
    parser = _Parser(text[:5000], mailbox)
    test = parser.conjunction(closing="")
    return MailQuery(test, parser.everywhere)


class _Parser:
    def __init__(self, text: str, mailbox: Mailbox) -> None:
        self.tokens = [m for m in _TOKEN.finditer(text) if m.group().strip()]
        self.at = 0
        self.depth = 0
        self.box = mailbox
        self.everywhere = False

    def conjunction(self, closing: str, operator: str = "", any_of: bool = False) -> Test:
        """Terms up to `closing`, all of them wanted, or any inside braces. OR joins only its two neighbours."""
        tests: list[Test] = []
        joining = False
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.group("close"):
                self.at += 1
                if closing:
                    break
                continue
            if token.group("or"):
                joining, self.at = bool(tests), self.at + 1
                continue
            if token.group("and") or token.group("around"):
                self.at += 1
                continue
            test = self.term(operator)
            if joining:
                tests[-1] = _any([tests[-1], test])
                joining = False
            else:
                tests.append(test)
        return _any(tests) if any_of else _all(tests)

    def term(self, operator: str) -> Test:
        token = self.tokens[self.at]
        self.at += 1
        if token.group("not"):
            return self.negation(operator)
        if token.group("open"):
            return self.group(token.group("open"), operator)
        if token.group("op") is not None:
            name, argument = token.group("op").lower(), token.group("arg")
            if name in _OPERATORS or name in _TIMES:
                if argument in ("(", "{"):
                    return self.group(argument, name)
                return self.operator(name, argument.strip('"'))
            return _words("everything", f"{name} {argument}")
        text = token.group("phrase") if token.group("phrase") is not None else token.group("word").lstrip("+")
        return self.operator(operator, text) if operator else _words("everything", text)

    def negation(self, operator: str) -> Test:
        """One dash was read; more may follow."""
        wanted = False
        while self.at < len(self.tokens) and self.tokens[self.at].group("not"):
            self.at += 1
            wanted = not wanted
        if self.at >= len(self.tokens) or self.tokens[self.at].group("close"):
            return _always
        before = self.everywhere
        inner = self.term(operator)
        self.everywhere = before
        return lambda row: inner(row) is wanted

    def group(self, opening: str, operator: str) -> Test:
        self.depth += 1
        if self.depth > 50:
            return _never
        test = self.conjunction(")" if opening == "(" else "}", operator, any_of=opening == "{")
        self.depth -= 1
        return test

    def operator(self, name: str, argument: str) -> Test:
        if name in _TIMES:
            return _TIMES[name](argument, self.box)
        if name == "in" and argument.lower() in ("trash", "spam", "anywhere"):
            self.everywhere = True
        if name in ("label", "is") and argument.lower() in ("trash", "spam"):
            self.everywhere = True
        return _OPERATORS[name](argument, self.box)


def _always(row: Row) -> bool:
    return True


def _never(row: Row) -> bool:
    return False


def _all(tests: list[Test]) -> Test:
    return tests[0] if len(tests) == 1 else lambda row: all(test(row) for test in tests)


def _any(tests: list[Test]) -> Test:
    return lambda row: any(test(row) for test in tests)


# -- words


def _flat(text: str) -> str:
    return " " + " ".join(re.findall(r"\w+", text.lower())) + " "


_FIELDS: Mapping[str, tuple[str, ...]] = {
    "from": ("sender",),
    "to": ("recipients", "cc", "bcc"),
    "cc": ("cc",),
    "bcc": ("bcc",),
    "subject": ("subject",),
    "everything": ("subject", "sender", "recipients", "cc", "bcc", "body", "filenames"),
}


def _words(field: str, text: str) -> Test:
    """Whole words in sequence, whatever stands between them."""
    wanted = _flat(text.rstrip("*"))
    if not wanted.strip():
        return _always
    if text.endswith("*"):
        wanted = wanted.rstrip()
    columns = _FIELDS[field]
    return lambda row: any(wanted in _flat(row[column]) for column in columns)


def _field(name: str) -> Callable[[str, Mailbox], Test]:
    def make(argument: str, box: Mailbox) -> Test:
        me = name in ("from", "to", "cc", "bcc") and argument.lower() == "me"
        return _words(name, box.user if me else argument)

    return make


# -- labels and states


def has_label(label: str) -> Test:
    wanted = f'"{label}"'
    return lambda row: wanted in row["labels"]


_PLACES = {"sent": "SENT", "draft": "DRAFT", "drafts": "DRAFT", "inbox": "INBOX", "trash": "TRASH", "spam": "SPAM"}
_PLACES |= {"starred": "STARRED", "important": "IMPORTANT", "unread": "UNREAD", "chat": "CHAT", "chats": "CHAT"}
_CATEGORIES = {"primary": "CATEGORY_PERSONAL", "personal": "CATEGORY_PERSONAL", "social": "CATEGORY_SOCIAL"}
_CATEGORIES |= {"promotions": "CATEGORY_PROMOTIONS", "updates": "CATEGORY_UPDATES", "forums": "CATEGORY_FORUMS"}


def label_key(name: str) -> str:
    return re.sub(r"[\s/&()]+", "-", name.strip().lower())


def _label(argument: str, box: Mailbox) -> Test:
    key = label_key(argument)
    if key in box.labels:
        return has_label(box.labels[key])
    if key in _PLACES:
        return has_label(_PLACES[key])
    return has_label(argument.upper()) if argument.upper() in box.labels.values() else _never


def _in(argument: str, box: Mailbox) -> Test:
    word = argument.lower()
    if word in ("anywhere", "all"):
        return _always
    if word == "archive":
        return lambda row: not any(f'"{name}"' in row["labels"] for name in ("INBOX", "TRASH", "SPAM", "DRAFT", "SENT"))
    if word in _PLACES:
        return has_label(_PLACES[word])
    return _label(argument, box)


def _is(argument: str, box: Mailbox) -> Test:
    word = argument.lower()
    if word == "read":
        return lambda row: '"UNREAD"' not in row["labels"]
    if word in ("muted", "snoozed"):
        return _label(argument, box)
    return has_label(_PLACES[word]) if word in _PLACES else _never


def _has(argument: str, box: Mailbox) -> Test:
    word = argument.lower()
    if word == "attachment":
        return lambda row: row["filenames"] != "[]"
    if word in ("userlabels", "nouserlabels"):
        marked = word == "userlabels"
        return lambda row: ('"Label_' in row["labels"]) is marked
    if word == "yellow-star" or word == "star":
        return has_label("STARRED")
    links = {"drive": "drive.google.com", "document": "docs.google.com/document", "youtube": "youtube.com"}
    links |= {"spreadsheet": "docs.google.com/spreadsheets", "presentation": "docs.google.com/presentation"}
    link = links.get(word)
    return (lambda row: link in row["body"]) if link else _never


def _category(argument: str, box: Mailbox) -> Test:
    label = _CATEGORIES.get(argument.lower())
    if label == "CATEGORY_PERSONAL":
        others = [name for name in _CATEGORIES.values() if name != label]
        return lambda row: not any(f'"{name}"' in row["labels"] for name in others)
    return has_label(label) if label else _never


def _file(argument: str, box: Mailbox) -> Test:
    wanted = argument.lower().lstrip("*")

    def test(row: Row) -> bool:
        for name in json.loads(row["filenames"]):
            name = name.lower()
            if name == wanted or name.endswith("." + wanted.lstrip(".")) or _flat(wanted) in _flat(name):
                return True
        return False

    return test if wanted else _never


def _rfc822(argument: str, box: Mailbox) -> Test:
    wanted = argument.strip("<> ").lower()
    return lambda row: row["rfc822_id"].strip("<> ").lower() == wanted


def _list(argument: str, box: Mailbox) -> Test:
    wanted = _flat(argument)
    return lambda row: wanted in _flat(row["recipients"])


def _size(larger: bool) -> Callable[[str, Mailbox], Test]:
    def make(argument: str, box: Mailbox) -> Test:
        found = re.fullmatch(r"(\d{1,12})\s*([kmg]?)b?", argument.lower())
        if not found:
            return _never
        limit = int(found.group(1)) * {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}[found.group(2)]
        return (lambda row: row["size"] > limit) if larger else (lambda row: row["size"] < limit)

    return make


# -- times


def parse_date(text: str) -> int | None:
    """Milliseconds of a day's beginning (UTC), or of an epoch in seconds."""
    if re.fullmatch(r"\d{9,11}", text):
        return int(text) * 1000
    parts = re.split(r"[/.-]", text)
    try:
        numbers = [int(part) for part in parts]
        if len(numbers) == 3:
            year, month, day = numbers if len(parts[0]) == 4 else (numbers[2], numbers[0], numbers[1])
        elif len(numbers) == 2:
            (year, month), day = numbers, 1
        else:
            (year,), month, day = numbers, 1, 1
        return int(datetime(year, month, day, tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return None


def _date(later: bool) -> Callable[[str, Mailbox], Test]:
    def make(argument: str, box: Mailbox) -> Test:
        at = parse_date(argument)
        if at is None:
            return _never
        return (lambda row: row["internal_date"] >= at) if later else (lambda row: row["internal_date"] < at)

    return make


def _age(newer: bool) -> Callable[[str, Mailbox], Test]:
    def make(argument: str, box: Mailbox) -> Test:
        found = re.fullmatch(r"(\d{1,4})([hdwmy])", argument.lower())
        if not found:
            return _never
        days = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}[found.group(2)]
        at = box.now_ms - int(timedelta(days=days * int(found.group(1))).total_seconds() * 1000)
        return (lambda row: row["internal_date"] > at) if newer else (lambda row: row["internal_date"] < at)

    return make


_TIMES = {
    "after": _date(True),
    "newer": _date(True),
    "before": _date(False),
    "older": _date(False),
    "newer_than": _age(True),
    "older_than": _age(False),
}
_OPERATORS: Mapping[str, Callable[[str, Mailbox], Test]] = {
    "from": _field("from"),
    "to": _field("to"),
    "cc": _field("cc"),
    "bcc": _field("bcc"),
    "deliveredto": _field("to"),
    "subject": _field("subject"),
    "label": _label,
    "in": _in,
    "is": _is,
    "has": _has,
    "category": _category,
    "filename": _file,
    "rfc822msgid": _rfc822,
    "list": _list,
    "larger": _size(True),
    "size": _size(True),
    "smaller": _size(False),
}
