"""Whose is it, and what can it do to the verifier? The plan for a box on the agent's files, from the list of changes.

Pure: the same changes give the same plan. What only the box can answer is listed as a question for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.quick import dataclass
from benchflow_core.verify.asked import asked, asks_to_change, asks_to_install
from benchflow_core.verify.author import normal
from benchflow_core.verify.findings import Action, Finding
from benchflow_core.verify.ground import ACCOUNTS, Ground, ancestors, name_of, parent_of, under
from benchflow_core.verify.links import in_the_way, in_the_way_itself, leads_to_tests, links_of, other_names
from benchflow_core.verify.logins import means_start_up
from benchflow_core.verify.noted import noted
from benchflow_core.verify.programs import Package, package_of, program, system_folder
from benchflow_core.verify.repositories import Repositories
from benchflow_core.verify.shadows import (
    DISTRIBUTION,
    brought_by_tests,
    hides_from_bare_python,
    hides_own_makefile,
    is_our_tool,
    may_shadow_command,
    may_shadow_library,
    module_twins,
)
from benchflow_core.verify.startup import is_login_file, is_path_file, starts_by_itself, tests_config
from benchflow_core.verify.steering import steering

__all__ = ["Plan", "classify"]

_CACHED = re.compile(r"^(.*)/__pycache__/([^/.]+)\.[^/]*\.pyc$")
_METADATA = re.compile(r"^(.+?)-[^-/]+\.(?:dist|egg)-info$")
_PACKAGE_DATABASE = re.compile(r"^/var/lib/(?:dpkg|rpm)/|^/lib/apk/db/")
_PACKAGE_SOURCE = re.compile(r"^/(?:opt|usr|var)/.*(?:\.whl|/simple/[^/]+/[^/]+)$")
_CONFIGS = ("pyproject.toml", "tox.ini", "setup.cfg")
_BROUGHT = "the tests bring this tool themselves"
_ACCOUNTS = (ACCOUNTS, "/etc/group", "/etc/shadow")
_MEANS_ACCOUNTS = (
    "chsh",
    "usermod",
    "login shell",
    "root's shell",
    "shell of root",
    "root's home",
    "^root:",
    "root:x:0",
)
_MEANS_RIGHTS = ("setuid", "suid", "setgid", "set-uid", "u+s", "chmod 4", "mode 4")
_UNWRITABLE = re.compile(r"[\x00-\x1f]")


@dataclass(slots=True)
class Plan:
    """What is to be done with the agent's files before the verifier sees them."""

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


def classify(changes: Sequence[Change], ground: Ground) -> Plan:
    """The plan for a verifier's box on these changes, which are sorted by path."""
    plan = Plan()
    _own_folders(changes, ground, plan)
    rules = _Rules(changes, ground, plan)
    agents = [c for c in changes if not plan.reverts(c.path) and c.path not in ground.provided and rules.apply(c)]
    _whole_packages(agents, plan)
    _own_installs(agents, ground, plan)
    _own_tools(agents, plan)
    _bytecode(agents, plan)
    written_back = set(plan.configs)
    plan.agents = [c for c in agents if c.kind != "deleted" and (c.path in written_back or not plan.reverts(c.path))]
    _sourced(ground, plan)
    plan.findings += noted([c for c in changes if not plan.reverts(c.path)], plan.agents, rules.added_folders, ground)
    for questions in (plan.commands, plan.libraries, plan.setuid, plan.executables, plan.git_configs):
        questions[:] = [path for path in questions if not plan.reverts(path)]
    return plan


class _Rules:
    """The rules that look at one change at a time; the first that applies decides."""

    def __init__(self, changes: Sequence[Change], ground: Ground, plan: Plan) -> None:
        self.ground, self.plan = ground, plan
        self.added_folders = {c.path for c in changes if c.kind == "added" and c.type == "dir"}
        self.links = links_of(changes)
        self.names = other_names(self.links, ground)
        self.git = Repositories(changes, ground, self.added_folders)
        self.disarm_logins = not means_start_up(ground.author)
        self.environments = {
            parent_of(c.path) for c in changes if c.kind == "added" and name_of(c.path) == "pyvenv.cfg"
        }

    def apply(self, change: Change) -> bool:
        """Is it the agent's on its own account? False where the task declares it."""
        if self.plan.reverts(change.path):
            return True
        if self.ground.declared(change.path):
            if program(change, self.ground):
                why = "the task declares it in keep_changes"
                self.plan.findings.append(Finding("declared", change.path, "kept", why))
            return False
        if not (self._unasked(change) or self._changed(change) or self._steers(change) or self._by_other_name(change)):
            self._ask(change)
        return True

    def _by_other_name(self, change: Change) -> bool:
        """Reached through a link of the agent's, a file stands where the rules of that place apply."""
        path = change.path
        for folder in (path, *ancestors(path)) if self.names and path not in self.links else ():
            for link in self.names.get(folder, ()):
                shown = replace(change, path=link + path[len(folder) :])
                if found := starts_by_itself(shown, self.ground):
                    self.plan.undo(change, *found)
                    return True
                if steer := steering(shown, self.ground):
                    self.plan.env.update(steer.env if shown.kind == "added" else {})
                    self.plan.undo(change, "tool-config", f"by way of {link} it would steer {steer.tool}")
                    return True
                if (
                    folder != path
                    and self.disarm_logins
                    and is_login_file(shown.path)
                    and self._verifiers_own(shown.path)
                ):
                    self.plan.undo(change, "shell-hook", f"by way of {link} shells of the tests would run it")
                    return True
                if folder != path and is_our_tool(shown):
                    self.plan.undo(change, "shadowing-command", "our own scripts would run it in the box")
                    return True
                if folder != path and may_shadow_command(shown, self.ground):
                    self.plan.commands.append(path)
                if self.git.is_config(shown):
                    self.plan.git_configs.append(path)
        return False

    def _unasked(self, change: Change) -> bool:
        path, plan = change.path, self.plan
        if self.disarm_logins and is_login_file(path) and self._verifiers_own(path) and change.kind != "deleted":
            plan.revert[path] = None
            plan.logins.append(path)
            why = "what it sets counts; anything else it does would be done in shells of the tests"
            plan.findings.append(Finding("shell-hook", path, "disarmed", why))
        elif not self._own_environment(path) and (found := starts_by_itself(change, self.ground)):
            plan.undo(change, *found)
        elif is_path_file(path) and change.kind != "deleted":
            plan.revert[path] = None
            plan.path_files.append(path)
        elif path.startswith(("/etc/ld.so.cache", "/etc/ld.so.conf")):
            plan.relink = True
            if path == "/etc/ld.so.cache":
                plan.revert[path] = None
        elif path in self.links and leads_to_tests(path, self.links, self.ground):
            plan.undo(change, "link-to-tests", "it would show the verifier's own files as the agent's")
        elif path in self.links and in_the_way(path, self.links, self.ground):
            plan.undo(change, "link-to-tests", "the tests would write a file of their own through it")
        elif self.git.is_foreign_hook(change):
            plan.undo(change, "git-hook", "the verifier's git would run it in a repository that came with the image")
        else:
            return False
        return True

    def _changed(self, change: Change) -> bool:
        path, plan = change.path, self.plan
        if why := program(change, self.ground):
            if not asked(change, self.ground):
                plan.undo(change, "program-changed", why)
                return True
            plan.findings.append(Finding("declared", path, "kept", "the instruction asks to have it changed"))
            return False
        if is_our_tool(change):
            plan.undo(change, "shadowing-command", "our own scripts would run it in the box")
            return True
        if asked(change, self.ground):
            return False
        if why := tests_config(change, self.ground):
            plan.undo(change, "test-runner-config", why)
        elif brought_by_tests(change, self.ground) and not self._in_environment(path):
            plan.undo(change, "shadowing-command", _BROUGHT)
        elif change.kind != "deleted" and _PACKAGE_SOURCE.match(path) and self._in_image_folder(path):
            plan.undo(change, "tool-config", "the verifier's installers may take packages from this folder")
        elif in_the_way_itself(change, self.ground):
            plan.undo(change, "link-to-tests", "the tests make a file of this name themselves")
        elif self._made_by_tests(change):
            plan.undo(change, "own-install", "the tests make this environment themselves")
        elif self._is_option(change):
            plan.undo(change, "tool-config", "a program to which the tests hand all names would take it for an option")
        elif hides_own_makefile(change, self.ground):
            plan.undo(change, "tool-config", "make would read it in place of the file that the tests bring")
        elif hides_from_bare_python(change, self.ground):
            plan.undo(change, "shadowing-module", "the tests start Python without `site`, where nothing keeps it apart")
        elif _UNWRITABLE.search(path) and parent_of(path) in self.ground.command_folders:
            plan.undo(change, "shadowing-command", "no honest command has such a name")
        else:
            return False
        return True

    def _steers(self, change: Change) -> bool:
        path, plan = change.path, self.plan
        if path == "/etc/hosts" and change.kind != "deleted":
            plan.revert[path] = None
            plan.hosts = True
            return True
        if path in _ACCOUNTS and (change.kind == "deleted" or change.type != "file"):
            plan.undo(change, "tool-config", "without this file no program finds its user")
            return True
        if path == ACCOUNTS and not self.ground.author.says(*_MEANS_ACCOUNTS):
            plan.revert[path] = None
            plan.accounts = True
            return True
        steer = steering(change, self.ground)
        if steer is None:
            return False
        why = f"it would steer {steer.tool}, which the verifier may use"
        if not steer.env or (change.kind != "added" and not steer.work):
            plan.undo(change, "tool-config", why)
            return True
        plan.env.update(steer.env)
        plan.findings.append(Finding("tool-config", path, "disarmed", why))
        return False

    def _ask(self, change: Change) -> None:
        """Note what the box has to be asked, or what has to be done in it."""
        path, plan = change.path, self.plan
        if self.git.is_config(change):
            plan.git_configs.append(path)
        self._ask_rights(change)
        if change.type == "file" and change.kind == "modified" and name_of(path) in _CONFIGS:
            plan.revert[path] = None
            plan.configs.append(path)
        if _UNWRITABLE.search(path):
            return  # the box is asked line by line
        if asked(change, self.ground) or asks_to_install(path, self.ground.author):
            return
        if may_shadow_command(change, self.ground) and not self._in_environment(path):
            plan.commands.append(path)
        if may_shadow_library(change, self.ground, self.added_folders):
            plan.libraries.append(path)
        if twins := module_twins(change, self.ground):
            plan.modules[path] = twins

    def _ask_rights(self, change: Change) -> None:
        path, plan = change.path, self.plan
        if system_folder(change, self.ground) and (change.uid or change.mode & 0o022):
            plan.opened.append(path)
            why = "only root writes where the verifier's programs are"
            plan.findings.append(Finding("setuid", path, "disarmed", why))
        if change.type != "file" or change.kind == "deleted":
            return
        author = self.ground.author
        tool = parent_of(path) in DISTRIBUTION and author.instruction_names(name_of(path))
        if change.mode & 0o6000 and (tool or author.instruction_says(*_MEANS_RIGHTS)):
            plan.findings.append(Finding("setuid", path, "kept", "the instruction speaks of it"))
            return
        if change.mode & 0o111 and not author.says("setcap", "getcap", "cap_", "capabilit"):
            plan.executables.append(path)
        if change.mode & 0o6000:
            plan.setuid.append(path)
            plan.findings.append(Finding("setuid", path, "disarmed", "what the agent added gives no rights"))

    def _verifiers_own(self, path: str) -> bool:
        """Would a shell of the verifier's own user read it? Those of users that the agent made are its work."""
        return path.startswith("/etc/") or under(path, self.ground.home)

    def _own_environment(self, path: str) -> bool:
        """It makes a virtual environment of a folder that is the agent's own."""
        return name_of(path) == "pyvenv.cfg" and parent_of(path) in self.added_folders

    def _in_environment(self, path: str) -> bool:
        """In a virtual environment that the agent made where it was to work: its commands belong together."""
        place = parent_of(parent_of(path))
        return place in self.environments and (self.ground.in_work(path) or self.ground.author.instruction_says(place))

    def _made_by_tests(self, change: Change) -> bool:
        if change.kind != "added" or self.ground.in_work(change.path):
            return False
        author = self.ground.author
        places = (place.replace("~", self.ground.home, 1) for place in author.environments)
        return any(under(change.path, place) and not author.instruction_says(place.lower()) for place in places)

    def _is_option(self, change: Change) -> bool:
        name, author = name_of(change.path), self.ground.author
        return change.kind == "added" and name[0] == "-" and author.leaves_names_open and not author.says(name)

    def _in_image_folder(self, path: str) -> bool:
        if self.ground.in_work(path) or self.ground.author.says(parent_of(path)):
            return False
        return not any(folder in self.added_folders for folder in ancestors(path))


def _own_folders(changes: Sequence[Change], ground: Ground, plan: Plan) -> None:
    """`/tests` and the verifier's log folder are new: what the agent has there, or in their way, goes."""
    for change in changes:
        for target in (ground.tests, ground.logs):
            if change.path == ground.logs and change.type == "dir":
                continue  # made anew in the box
            if under(change.path, target):
                plan.revert[change.path] = None
                if change.path != target or change.type != "dir":
                    why = "the verifier's own folder starts new"
                    plan.findings.append(Finding("verifier-folder", change.path, "set-aside", why))
            elif change.path in ancestors(target) and (change.kind == "deleted" or change.type != "dir"):
                plan.undo(change, "verifier-folder", "it lies in the way of the verifier's own folders")


def _whole_packages(changes: Sequence[Change], plan: Plan) -> None:
    """A package of the image's that was changed is put back as a whole: no mixture of two versions."""
    touched: set[Package] = set()
    names: set[tuple[str, str]] = set()
    for change in changes:
        package = package_of(change.path)
        if package and change.kind != "added" and change.path in plan.revert and "__pycache__" not in change.path:
            touched.add(package)
            if metadata := _METADATA.match(package[1]):
                names.add((package[0], normal(metadata[1])))
    if not touched:
        return
    added = {c.path for c in changes if c.kind == "added"}
    for change in changes:
        package = package_of(change.path)
        if package is None or change.kind != "added" or plan.reverts(change.path):
            continue
        metadata = _METADATA.match(package[1])
        twin = metadata is not None and (package[0], normal(metadata[1])) in names
        if twin or (package in touched and "/".join(package) not in added):
            plan.undo(change, "program-changed", "part of another version of a library that came with the image")


def _own_installs(changes: Sequence[Change], ground: Ground, plan: Plan) -> None:
    """Distributions that the tests install for themselves: with the agent's copy in place they would get that one."""
    owned: set[Package] = set()
    for change in changes:
        package = package_of(change.path) if change.kind == "added" else None
        metadata = _METADATA.match(package[1]) if package else None
        if package and metadata and (name := normal(metadata[1])) in ground.author.installs:
            if asks_to_change(name, ground.author):
                continue
            module = name.replace("-", "_")
            owned |= {package, *((package[0], n) for n in (module, f"{module}.py", f"_{module}"))}
    for change in changes if owned else ():
        if change.kind == "added" and package_of(change.path) in owned and not plan.reverts(change.path):
            plan.undo(change, "own-install", "the tests install this distribution themselves")


def _own_tools(changes: Sequence[Change], plan: Plan) -> None:
    """Where a tool was set aside that the tests install, the package manager must not take it for installed."""
    if not any(f.why == _BROUGHT and parent_of(f.path) in DISTRIBUTION for f in plan.findings):
        return
    for change in changes:
        if _PACKAGE_DATABASE.match(change.path) and not plan.reverts(change.path):
            plan.undo(change, "own-install", "the tests install packages, starting from those of the image")


def _bytecode(changes: Sequence[Change], plan: Plan) -> None:
    """Compiled copies of modules that are not the agent's: Python would run them in place of the source."""
    own = {c.path for c in changes if c.kind != "deleted" and not plan.reverts(c.path)}
    for change in changes:
        found = _CACHED.match(change.path) if change.kind != "deleted" else None
        if found and f"{found[1]}/{found[2]}.py" not in own and not plan.reverts(change.path):
            plan.undo(change, "bytecode", "a compiled copy of a module that is not the agent's")


def _sourced(ground: Ground, plan: Plan) -> None:
    """Shell code of the agent's that the tests take into their own shell, or that a login shell of theirs reads."""
    sourced = {path.replace("~", ground.home, 1) for path in ground.author.sourced}
    for change in plan.agents:
        if change.path in sourced or (ground.author.starts_login_shells and is_login_file(change.path)):
            why = "the tests' own shell reads it, where nothing is safe from it"
            plan.findings.append(Finding("agent-code-in-verifier", change.path, "noted", why))
