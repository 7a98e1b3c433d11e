"""What keeps every program of a box in: the filter of system calls, what root may do, and the program's own view."""

from __future__ import annotations

import os
import resource
from typing import NamedTuple

from benchflow_boxkit.inside import system, view

from benchflow_sandbox_local.helper import linux


class Confinement(NamedTuple):
    """What all programs in the boxes of one helper are held to."""

    seccomp: bytes
    single_user: bool
    """Only one uid is mapped: there is nothing to switch to, and setuid programs must stay powerless."""
    nesting: bool = False
    """Root of the box keeps every capability over what is the box's own: namespaces, mounts."""


class ConfinedProgram(view.ViewIsolation):
    """The isolation of one program."""

    def __init__(self, confinement: Confinement, wanted: view.View | None) -> None:
        super().__init__(*([wanted] if wanted else []))
        self.confinement = confinement

    def enter(self) -> None:
        if self.views:
            system.prctl(system.PR_SET_DUMPABLE, 1)  # else the id maps belong to nobody and cannot be written
            super().enter()
            linux.drop_bounding_set()  # a new user namespace comes with a full one
        # One byte: a core handler of the host, which would run outside, is not called for our crashes.
        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
        if self.confinement.single_user:
            system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)
        if self.confinement.seccomp:
            system.load_filter(self.confinement.seccomp)

    def shut(self) -> None:
        if os.getuid() == 0 and not self.confinement.nesting:
            linux.limit_capabilities()
