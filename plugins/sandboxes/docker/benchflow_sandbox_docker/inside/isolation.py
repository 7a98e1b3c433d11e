"""What keeps one program of a box in: its view, where it has one, and the box's filter of system calls."""

from __future__ import annotations

from benchflow_boxkit.inside import system, view


class FilteredIsolation(view.ViewIsolation):
    def __init__(self, wanted: view.View | None, filter: bytes) -> None:
        super().__init__(*([wanted] if wanted else []))
        self.filter = filter

    def shut(self) -> None:
        if self.filter:
            system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
            system.load_filter(self.filter)
