"""Text that comes piece by piece: a secret that is cut in two is still one."""

from __future__ import annotations

from typing import Any

from benchflow_core.results.redact import HEAD, MARK, Redactor

__all__ = ["Pieces"]

Stream = tuple[Any, ...]


class Pieces:
    """What several streams say. Only an end that begins like a secret, for some characters, waits for what follows."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._before: dict[Stream, str] = {}
        """The last characters that went through, too few to be held back."""
        self._held: dict[Stream, str] = {}

    def add(self, stream: Stream, text: str) -> str:
        """The next piece, without what has to wait, and with what waited."""
        if not self._redactor.heads:
            return text
        before = self._before.get(stream, "")
        whole = before + self._held.pop(stream, "") + text
        at = len(before)
        spans = self._redactor.spans(whole)
        done = spans[-1][1] if spans else 0
        end = max(len(whole) - self._open_end(whole[done:]), at)
        said = []
        for start, stop in spans:
            if stop > at:
                said.append(whole[at : max(start, at)] + MARK)
                at = stop
        said.append(whole[at:end])
        if end < len(whole):
            self._held[stream] = whole[end:]
        self._before[stream] = whole[max(end - HEAD + 1, done) : end]
        return "".join(said)

    def waiting(self) -> dict[Stream, str]:
        """What is held back by each stream, which has said its last word."""
        held, self._held, self._before = self._held, {}, {}
        return held

    def _open_end(self, text: str) -> int:
        """How many characters at the end may be the beginning of a secret."""
        longest, text = 0, text[-self._redactor.longest :]
        for head, forms in self._redactor.heads.items():
            at = text.find(head)
            while at >= 0:
                rest = text[at:]
                if any(form.startswith(rest) for form in forms):
                    longest = max(longest, len(rest))
                    break
                at = text.find(head, at + 1)
        return longest
