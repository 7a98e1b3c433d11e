"""Faults that happen a number of times, whatever the script says."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from benchflow_testing.script import Step

__all__ = ["Faults"]


@dataclass
class _Planned:
    step: Step
    times: int
    aux: bool


class Faults:
    """A queue of what goes wrong next."""

    def __init__(self) -> None:
        self._planned: deque[_Planned] = deque()

    def add(self, step: Step, times: int, aux: bool) -> None:
        if times > 0:
            self._planned.append(_Planned(step, times, aux))

    def take(self, is_aux: bool) -> Step | None:
        """The fault of this request, if one is due."""
        for planned in self._planned:
            if planned.aux or not is_aux:
                planned.times -= 1
                if planned.times == 0:
                    self._planned.remove(planned)
                return planned.step
        return None
