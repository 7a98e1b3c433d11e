"""The sandbox suite: one class of tests per concern, put together here."""

from __future__ import annotations

from benchflow_testing_kit.sandbox.commands import CommandTests
from benchflow_testing_kit.sandbox.endings import EndingTests
from benchflow_testing_kit.sandbox.hostile import HostileTests
from benchflow_testing_kit.sandbox.images import ImageTests
from benchflow_testing_kit.sandbox.lifecycle import LifecycleTests
from benchflow_testing_kit.sandbox.limits import LimitTests
from benchflow_testing_kit.sandbox.network import NetworkTests
from benchflow_testing_kit.sandbox.processes import ProcessTests
from benchflow_testing_kit.sandbox.snapshots import SnapshotTests
from benchflow_testing_kit.sandbox.transfers import TransferTests
from benchflow_testing_kit.sandbox.walls import WallTests

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
