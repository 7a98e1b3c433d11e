"""What is to be done with the agent's files before the verifier sees them."""

from __future__ import annotations

from dataclasses import field

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.quick import dataclass
from benchflow_core.verify.findings import Action, Finding
from benchflow_core.verify.ground import ancestors

__all__ = ["Plan"]


@dataclass(slots=True)
class Plan:
    """Filled by the rules of `origin`; what only the box can answer is a question for it."""

    revert: dict[str, None] = field(default_factory=dict)
    """Paths to put back or remove, before any process of the box runs."""
    findings: list[Finding] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    """Variables that keep the verifier's tools away from the agent's configuration; `{folder}` is ours in the box."""
    commands: list[str] = field(default_factory=list)
    """Added commands: does one of the same name exist?"""
    libraries: list[str] = field(default_factory=list)
    modules: dict[str, list[str]] = field(default_factory=dict)
    """Additions to a Python's own library, and the modules they would hide if these are there."""
    setuid: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    """Folders of the system that others than root may write to now."""
    executables: list[str] = field(default_factory=list)
    """They may have capabilities, which no list of changes shows."""
    path_files: list[str] = field(default_factory=list)
    """`.pth` files, reverted: their paths are to be written back."""
    configs: list[str] = field(default_factory=list)
    """Reverted files whose pytest section is the image's; the agent's version is to be written back."""
    git_configs: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    """Start-up files of shells, reverted: what they set is to be written back."""
    hosts: bool = False
    accounts: bool = False
    """Reverted; the agent's are to be written back, but for those that the verifier uses itself."""
    relink: bool = False
    """The loader's cache was made anew: is everything of the image still found where it was?"""
    agents: list[Change] = field(default_factory=list)
    """What is the agent's in the verifier's box."""

    def reverts(self, path: str) -> bool:
        """Is it, or a folder above it, put back?"""
        return path in self.revert or any(folder in self.revert for folder in ancestors(path))

    def undo(self, change: Change, code: str, why: str) -> None:
        self.revert[change.path] = None
        action: Action = "set-aside" if change.kind == "added" else "put-back"
        self.findings.append(Finding(code, change.path, action, why))
