"""Rule two: what the agent added stays, but does not run by itself inside the verifier.

These are the places where an interpreter, a loader, a shell or a test runner takes up code without being asked to. They
are fixed by the programs that read them, which is why they can be named; what lies there is judged by whose it is.
"""

from __future__ import annotations

import re

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.ground import SYSTEM, Ground, ancestors, name_of, parent_of, under

__all__ = ["is_login_file", "is_path_file", "starts_by_itself", "tests_config"]

_PYTHON_HOOK = re.compile(r"/(?:sitecustomize|usercustomize)(?:\.[^/]*)?$")
_PYTHON_LAYOUT = re.compile(r"/(?:python\d+\.zip|pybuilddir\.txt|pyvenv\.cfg|[^/]*\._pth)$")
_PATH_FILE = re.compile(r"/(?:site-packages|dist-packages|python\d\.\d+)/[^/]+\.pth$")
_PERL_HOOK = re.compile(r"^/etc/perl/.*\.p[ml]$|/sitecustomize\.pl$")
_RUBY_HOOK = re.compile(r"/rubygems/defaults/(?:operating_system|ruby)\.rb$|/rubygems_plugin\.rb$")
_TCL_INDEX = re.compile(r"/(?:pkgIndex\.tcl|tclIndex|[^/]+\.tm)$")
_COMPILER = re.compile(
    r"/lib(?:exec)?/gcc/[^/]+/[^/]+/(?:specs|collect-ld|real-ld)$|^/usr/[^/]+/bin/(?:collect|real)-ld$"
)
_OBJECT_TOOLS = re.compile(r"/bfd-plugins/[^/]+$")
_JAVA_PROCESSOR = re.compile(r"/META-INF/services/javax\.annotation\.processing\.Processor$")
_ACCOUNT_HOOK = re.compile(r"/adduser\.local$")
_LOADER = re.compile(r"^/etc/(?:ld\.so\.preload|ld-musl-[^/]+\.path)$|^/etc/suid-debug$")
_NAME_SERVICE = re.compile(r"/libnss_[^/]+\.so(?:\.[0-9.]+)?$")
_PACKAGE_HOOK = re.compile(
    r"^/var/lib/dpkg/triggers/|^/etc/dpkg/dpkg\.cfg|^/etc/apt/apt\.conf|^/etc/apk/.*hooks"
    r"|^/var/lib/dpkg/info/[^/]+\.(?:preinst|postinst|prerm|postrm|config)$"
)
_LOGIN_FILES = re.compile(
    r"^/etc/(?:profile|profile\.d/.*|bash\.bashrc|bashrc|bash\.bash_logout|bash_completion\.d/.*|zsh/.*|zshenv|fish/.*)$"
    r"|/\.(?:bashrc|bash_completion|bash_profile|bash_login|bash_aliases|bash_logout|profile|zshenv|zprofile|zshrc|zlogin|zlogout|kshrc|mkshrc"
    r"|config/fish/.*)$"
)
_LOGIN_SHELL = re.compile(r"sh\s+.*-\w*[li]|--login|\b(?:zsh|fish)\b")
_RUNNER_CONFIG = re.compile(
    r"conftest\.py|\.?pytest\.(?:ini|toml)|pyproject\.toml|tox\.ini|setup\.(?:cfg|py)|__init__\.py|package\.json"
    r"|node_modules|tsconfig\.json|\.babelrc|\.swcrc|\.mocharc\.\w+"
    r"|(?:jest|vitest|babel|playwright|karma|ava|eslint)\.config\.\w+"
)


def starts_by_itself(change: Change, ground: Ground) -> tuple[str, str] | None:
    """Code and reason for a change that would make the agent's code run unasked, or nothing."""
    path = change.path
    if change.kind == "deleted":
        return None
    if _PYTHON_HOOK.search(path):
        return "interpreter-hook", "Python runs it at every start"
    if _PYTHON_LAYOUT.search(path) and any(under(path, prefix) for prefix in SYSTEM) and not ground.in_work(path):
        return "interpreter-hook", "it moves the library of an interpreter of the image"
    if _PERL_HOOK.search(path):
        return "interpreter-hook", "Perl finds it before its own library"
    if _RUBY_HOOK.search(path):
        return "interpreter-hook", "Ruby runs it at every start"
    if _TCL_INDEX.search(path) and not ground.in_work(path) and not ground.author.instruction_says("tcl"):
        return "interpreter-hook", "Tcl runs every index it finds when it looks for a package"
    if _COMPILER.search(path):
        return "tool-config", "the compiler takes it in place of its own settings or linker"
    asked = ground.author.instruction_says
    if _JAVA_PROCESSOR.search(path) and ground.author.tests_run("javac") and not asked("processor", "annotation"):
        return "tool-config", "the compiler runs what it names in every compilation"
    if _ACCOUNT_HOOK.search(path) and not ground.author.says("adduser.local"):
        return "shell-hook", "it is run for every account that the tests add"
    if _OBJECT_TOOLS.search(path) and not ground.in_work(path):
        return "loader-hook", "the tools for object files load it by themselves"
    if _LOADER.match(path):
        return "loader-hook", "the loader takes it into every program"
    if _NAME_SERVICE.search(path) and not ground.in_work(path) and not ground.author.instruction_says("nss"):
        return "loader-hook", "every program that looks up a name would load it"
    if _PACKAGE_HOOK.match(path) and not ground.author.says("apt.conf", "dpkg.cfg"):
        return "package-hook", "the package manager runs it when the verifier installs something"
    if is_login_file(path) and _LOGIN_SHELL.search(ground.author.first_line):
        return "shell-hook", "the test script's own shell reads it at its start"
    return None


def is_login_file(path: str) -> bool:
    """A shell reads it when somebody logs in."""
    return _LOGIN_FILES.search(path) is not None


def is_path_file(path: str) -> bool:
    """A `.pth` file where Python reads them: its paths are configuration, its `import` lines are start-up code."""
    return _PATH_FILE.search(path) is not None


def tests_config(change: Change, ground: Ground) -> str | None:
    """Why a file would configure the verifier's test runner, for what can be told from its place alone."""
    path, name = change.path, name_of(change.path)
    if parent_of(path) in ancestors(ground.tests) and parent_of(path) != ground.workdir:
        hidden = change.kind == "added" and name.startswith(".") and not ground.author.says(path)
        if change.kind != "deleted" and (hidden or _RUNNER_CONFIG.fullmatch(name)):
            return "test runners look for it above the tests"
    elif change.kind == "modified" and name in ("conftest.py", "pytest.ini", ".pytest.ini"):
        return "it came with the image and configures the test runner"
    return None
