"""The sandbox suite: one class of tests per concern, put together here."""

from __future__ import annotations

from benchflow_core.testing.sandbox.commands import CommandTests
from benchflow_core.testing.sandbox.endings import EndingTests
from benchflow_core.testing.sandbox.hostile import HostileTests
from benchflow_core.testing.sandbox.images import ImageTests
from benchflow_core.testing.sandbox.lifecycle import LifecycleTests
from benchflow_core.testing.sandbox.limits import LimitTests
from benchflow_core.testing.sandbox.network import NetworkTests
from benchflow_core.testing.sandbox.processes import ProcessTests
from benchflow_core.testing.sandbox.snapshots import SnapshotTests
from benchflow_core.testing.sandbox.transfers import TransferTests
from benchflow_core.testing.sandbox.walls import WallTests

__all__ = ["SandboxConformance"]


class SandboxConformance(
    CommandTests,
    EndingTests,
    ProcessTests,
    TransferTests,
    HostileTests,
    ImageTests,
    LifecycleTests,
    WallTests,
    NetworkTests,
    SnapshotTests,
    LimitTests,
):
    """Everything a sandbox promises. Tests of a capability that the spec does not declare are skipped."""
