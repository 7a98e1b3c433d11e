"""The live view of a job on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchflow_core.cli.tracker import Tracker, amount, span
from benchflow_core.cli.ui import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

__all__ = ["Dashboard"]

_REST = 7
"""Lines of the screen that are not rows of rollouts."""


class Dashboard:
    """Drawn a few times a second on stderr, gone when it is closed. What others print appears above it."""

    def __init__(self, tracker: Tracker) -> None:
        from rich.console import Console
        from rich.live import Live

        self._tracker = tracker
        self._console = Console(stderr=True, highlight=False)
        self._live = Live(_View(tracker), console=self._console, refresh_per_second=4, transient=True)
        self._live.start()

    def line(self, text: str) -> None:
        """One line above the view. The text is untrusted."""
        from rich.text import Text

        self._console.print(Text(printable(text)), soft_wrap=True)

    def close(self) -> None:
        """Safe to call again."""
        self._live.stop()


class _View:
    """Made anew for every frame from the tracker's numbers."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield self._bar()
        t = self._tracker
        parts = [t.counts(), t.spent(), t.left()]
        yield Text(printable("  " + "  ·  ".join(part for part in parts if part)))
        if t.stopping:
            yield Text(f"  {printable(t.stopping)}: nothing new starts. Ctrl-C again stops what runs.", style="yellow")
        if t.running:
            yield self._table(max(console.size.height - _REST, 1))

    def _bar(self) -> RenderableType:
        from rich.columns import Columns
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        t = self._tracker
        bar = ProgressBar(total=max(t.total, 1), completed=t.done, width=40)
        return Columns([bar, Text(f"{t.done}/{t.total} in {span(t.seconds)}", style="bold")])

    def _table(self, most: int) -> RenderableType:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        names = ("  TASK", "PHASE", "TURN", "TOOLS", "TOKENS", "TIME", "LAST SIGN")
        for name in names:
            table.add_column(name, no_wrap=True, overflow="ellipsis")
        rows = sorted(self._tracker.running.values(), key=lambda row: -float(row.get("seconds") or 0))
        for row in rows[:most]:
            table.add_row(*(Text(cell) for cell in _cells(row)))
        if len(rows) > most:
            table.add_row(Text(f"  … and {len(rows) - most} more", style="dim"))
        return table


def _cells(row: Mapping[str, Any]) -> list[str]:
    arm = f" [{row['arm']}]" if row.get("arm") else ""
    again = f" (attempt {row['attempt']})" if (row.get("attempt") or 1) > 1 else ""
    quiet = row.get("quiet_sec")
    return [
        "  " + printable(f"{row.get('task', '')}{arm}{again}"),
        printable(str(row.get("phase", ""))),
        str(row.get("turn") or ""),
        str(row.get("tool_calls") or ""),
        amount(row["tokens"]) if row.get("tokens") else "",
        span(float(row.get("seconds") or 0)),
        "now" if quiet is not None and quiet < 2 else f"{span(quiet)} ago" if quiet is not None else "",
    ]
