"""What commands print with: plain text, light to import, the same everywhere.

Results go to stdout, everything said about them to stderr, so that `bench … --json | jq` always works. Colour only on
a terminal and only without `NO_COLOR`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, TextIO

from benchflow_core.quick import dataclass

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from benchflow_core.contracts.core import Core
    from benchflow_core.contracts.results import ResultsReader

__all__ = ["Ui", "printable", "terminal_columns"]

_STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
_SGR: Final = re.compile(r"(\x1b\[(?:0|1|2|31|32|33)m)")
_MIN_LAST_COLUMN: Final = 24


def printable(text: str, *, lines: bool = False) -> str:
    """Untrusted text made safe for a terminal: control, bidi and unpaired characters become visible escapes.

    Line ends and tabs become a space, unless `lines` keeps them.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _visible(c, lines) for c in text)


def _visible(char: str, lines: bool) -> str:
    if char in "\n\t":
        return char if lines else " "
    if char.isspace() and char not in "\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029":
        return " "
    return char.encode("unicode_escape", "backslashreplace").decode()


def _width(text: str) -> int:
    """Terminal cells."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def terminal_columns(stream: TextIO) -> int | None:
    """`None` when it is no terminal: then nothing is wrapped."""
    forced = os.environ.get("COLUMNS", "")
    if forced.isdigit() and int(forced) > 0:
        return int(forced)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def _wants_colour(stream: TextIO) -> bool:
    try:
        return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    except ValueError:
        return False


def _shown(line: str, stream: TextIO) -> str:
    """Printable, but for the few sequences that `Ui.style` makes: text can at worst colour itself."""
    if "\x1b" not in line or not _wants_colour(stream):
        return printable(line, lines=True)
    return "".join(part if _SGR.fullmatch(part) else printable(part, lines=True) for part in _SGR.split(line))


@dataclass(slots=True)
class Ui:
    """How this run of `bench` speaks. Commands get it with `@click.pass_obj`."""

    json: bool = False
    quiet: bool = False
    verbose: int = 0
    emitted: bool = field(default=False, init=False)
    """A JSON document was printed; there is never a second one."""

    def out(self, line: str = "") -> None:
        """A line of the result."""
        print(_shown(line, sys.stdout), file=sys.stdout)

    def note(self, line: str) -> None:
        """Something worth knowing, unless `--quiet`."""
        if not self.quiet:
            print(_shown(line, sys.stderr), file=sys.stderr)

    def warn(self, line: str) -> None:
        """Something the user should look at."""
        print(f"{self.style('warning:', 'yellow', sys.stderr)} {printable(line)}", file=sys.stderr)

    def error(self, line: str) -> None:
        """Why the command ends."""
        print(f"{self.style('error:', 'red', sys.stderr)} {printable(line)}", file=sys.stderr)

    def emit(self, data: Any, text: Callable[[], None]) -> None:
        """The result: one JSON document under `--json`, else whatever `text` prints."""
        if self.json:
            self.document(data)
        else:
            text()

    def document(self, data: Any) -> None:
        """One JSON document on stdout; indented, and plain ASCII, when a person watches."""
        import json

        self.emitted = True
        watched = sys.stdout.isatty()
        print(json.dumps(data, indent=2 if watched else None, ensure_ascii=watched), file=sys.stdout)

    def results(self) -> ResultsReader:
        """Jobs and rollouts on disk, as commands of plugins read them."""
        from benchflow_core.evaluation.stored import results_reader

        return results_reader()

    def core(self) -> Core:
        """Plugins, tasks and rollouts, as commands of plugins use them."""
        from benchflow_core.cli.core import CoreOfCommands

        return CoreOfCommands()

    def complete(self, what: str, incomplete: str) -> list[CompletionItem]:
        """What a shell may put in place of an incomplete word."""
        from benchflow_core.cli.completion import completions

        return completions(what, incomplete)

    def style(self, text: str, style: str, stream: TextIO | None = None) -> str:
        """`bold`, `dim`, `red`, `green` or `yellow`, where colour is wanted."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if _wants_colour(stream or sys.stdout) else text

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Aligned columns; on a terminal the last one is wrapped to fit."""
        cells = [[printable(cell) for cell in row] for row in rows]
        widths = [max(map(_width, column)) for column in zip(*([list(columns), *cells]), strict=True)][:-1]
        indent = sum(widths) + 2 * len(widths)
        available = terminal_columns(sys.stdout)
        room = available - indent if available and available - indent >= _MIN_LAST_COLUMN else None
        header = "  ".join(_padded(columns, widths)).rstrip()
        print(self.style(header, "bold"), file=sys.stdout)
        for row in cells:
            first, *rest = _wrapped(row[-1], room)
            print("  ".join([*_padded(row[:-1], widths), first]).rstrip(), file=sys.stdout)
            for line in rest:
                print(" " * indent + line, file=sys.stdout)


def _padded(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    fills = [*widths, 0]
    return [cell + " " * (fill - _width(cell)) for cell, fill in zip(cells, fills, strict=False)]


def _wrapped(cell: str, room: int | None) -> list[str]:
    if room is None or _width(cell) <= room:
        return [cell]
    from textwrap import wrap

    return wrap(cell, room, break_on_hyphens=False) or [""]
