"""Whose is it, and what can it do to the verifier? The plan for a box on the agent's files, from the list of changes.

Pure: the same changes give the same plan. What only the box can answer is listed as a question for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.asked import asked, asks_to_install
from benchflow_core.verify.findings import Finding
from benchflow_core.verify.ground import ACCOUNTS, Ground, ancestors, name_of, parent_of, under
from benchflow_core.verify.links import in_the_way, in_the_way_itself, leads_to_tests, links_of, other_names
from benchflow_core.verify.logins import means_start_up
from benchflow_core.verify.noted import noted
from benchflow_core.verify.plan import Plan
from benchflow_core.verify.programs import program, system_folder
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
from benchflow_core.verify.together import (
    BROUGHT,
    bytecode,
    own_folders,
    own_installs,
    own_tools,
    sourced,
    whole_packages,
)

__all__ = ["classify"]

_PACKAGE_SOURCE = re.compile(r"^/(?:opt|usr|var)/.*(?:\.whl|/simple/[^/]+/[^/]+)$")
_CONFIGS = ("pyproject.toml", "tox.ini", "setup.cfg")
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


def classify(changes: Sequence[Change], ground: Ground) -> Plan:
    """The plan for a verifier's box on these changes, which are sorted by path."""
    plan = Plan()
    own_folders(changes, ground, plan)
    rules = _Rules(changes, ground, plan)
    agents = [c for c in changes if not plan.reverts(c.path) and c.path not in ground.provided and rules.apply(c)]
    whole_packages(agents, plan)
    own_installs(agents, ground, plan)
    own_tools(agents, plan)
    bytecode(agents, plan)
    written_back = set(plan.configs)
    plan.agents = [c for c in agents if c.kind != "deleted" and (c.path in written_back or not plan.reverts(c.path))]
    sourced(ground, plan)
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
            plan.undo(change, "shadowing-command", BROUGHT)
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
