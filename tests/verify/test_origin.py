"""Whose is it, and what becomes of it: the rules as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.author import AuthorText
from benchflow_core.verify.ground import Ground
from benchflow_core.verify.origin import classify
from benchflow_core.verify.plan import Plan

PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@pytest.fixture
def ground(tmp_path: Path) -> Any:
    def make(*, instruction: str = "Do it.", test: str = "#!/bin/bash\n", **more: Any) -> Ground:
        folder = tmp_path / "tests"
        folder.mkdir(exist_ok=True)
        (folder / "test.sh").write_text(test)
        values: dict[str, Any] = {"workdir": "/app", "home": "/root", "path": PATH, "tests": "/tests"}
        author = AuthorText(instruction, (folder,), "test.sh")
        return Ground(**values | {"logs": "/logs/verifier", "author": author} | more)

    return make


def change(path: str, kind: Any = "modified", type: Any = "file", mode: int = 0o644, **more: Any) -> Change:
    return Change(path, kind, type, mode if kind != "deleted" else 0, **more)


def codes(plan: Plan, path: str) -> list[str]:
    return [f.code for f in plan.findings if f.path == path]


# --- programs ---------------------------------------------------------------------------------------------------------

PUT_BACK = [
    ("/usr/bin/cat", "modified", 0o755),
    ("/usr/bin/cat", "modified", 0o644),
    ("/usr/bin/cat", "deleted", 0),
    ("/bin/bash", "modified", 0o755),
    ("/usr/lib/x86_64-linux-gnu/libc.so.6", "modified", 0o755),
    ("/lib64/ld-linux-x86-64.so.2", "modified", 0o755),
    ("/usr/lib/python3.11/json/__init__.py", "modified", 0o644),
    ("/usr/lib/python3.11/json/__init__.py", "deleted", 0),
    ("/usr/lib/python3/dist-packages/yaml/__init__.py", "modified", 0o644),
    ("/usr/local/lib/python3.12/site-packages/pytest/__init__.py", "modified", 0o644),
    ("/opt/conda/lib/python3.11/site-packages/numpy/__init__.py", "modified", 0o644),
    ("/opt/venv/bin/python", "modified", 0o755),
    ("/opt/tool/run", "modified", 0o755),
    ("/root/.pyenv/versions/3.12.1/lib/python3.12/os.py", "modified", 0o644),
    ("/root/.nvm/versions/node/v20/bin/node", "modified", 0o755),
    ("/root/.local/bin/uv", "modified", 0o755),
    ("/app/.venv/lib/python3.11/site-packages/pytest/__main__.py", "modified", 0o644),
    ("/app/node_modules/jest/build/index.js", "modified", 0o644),
    ("/app/node_modules/@scope/x/index.js", "deleted", 0),
    ("/usr/share/perl5/JSON.pm", "modified", 0o644),
    ("/usr/include/stdio.h", "modified", 0o644),
    ("/etc/python3.11/sitecustomize.py", "modified", 0o644),
    ("/usr/local/bin/checker", "modified", 0o755),
    ("/var/lib/dpkg/info/libc-bin.postinst", "modified", 0o755),
    ("/app/.venv/bin/python", "modified", 0o755),
    ("/go/pkg/mod/x@v1/x.go", "modified", 0o644),
    ("/root/.m2/repository/junit/junit.jar", "modified", 0o644),
]
STAYS = [
    ("/app/main.py", "modified", 0o644),
    ("/app/bin/run", "modified", 0o755),
    ("/app/run.sh", "deleted", 0),
    ("/root/script.sh", "modified", 0o755),
    ("/root/.ssh/config", "modified", 0o600),
    ("/root/.config/app/settings.py", "modified", 0o644),
    ("/srv/site/index.php", "modified", 0o644),
    ("/data/run.sh", "modified", 0o755),
    ("/etc/ssh/sshd_config", "modified", 0o644),
    ("/etc/nginx/nginx.conf", "deleted", 0),
    ("/etc/init.d/app", "modified", 0o755),
    ("/usr/share/doc/x/README", "deleted", 0),
    ("/usr/local/etc/app.conf", "modified", 0o644),
    ("/usr/lib/systemd/system/app.service", "modified", 0o644),
    ("/opt/tool/settings.json", "modified", 0o644),
    ("/var/log/app.log", "modified", 0o644),
]


@pytest.mark.parametrize(("path", "kind", "mode"), PUT_BACK)
def test_programs_of_the_image_are_put_back(ground: Any, path: str, kind: str, mode: int) -> None:
    plan = classify([change(path, kind, mode=mode)], ground())
    assert path in plan.revert
    assert [f.action for f in plan.findings] == ["put-back"]


@pytest.mark.parametrize(("path", "kind", "mode"), STAYS)
def test_work_stays(ground: Any, path: str, kind: str, mode: int) -> None:
    plan = classify([change(path, kind, mode=mode)], ground())
    assert not plan.revert and not plan.findings


@pytest.mark.parametrize("path", [p for p, kind, _ in PUT_BACK if kind == "modified"])
def test_declared_changes_stay(ground: Any, path: str) -> None:
    plan = classify([change(path, mode=0o755)], ground(keep=(path,)))
    assert path not in plan.revert
    assert [(f.code, f.action) for f in plan.findings] == [("declared", "kept")]
    folder = path.rpartition("/")[0]
    assert not classify([change(path)], ground(keep=(folder,))).revert
    assert not classify([change(path)], ground(keep=(folder + "/*",))).revert
    assert classify([change(path, mode=0o755)], ground(keep=("/somewhere/else/*",))).revert


def test_working_directory_below_a_system_folder_is_work(ground: Any) -> None:
    inside = change("/usr/src/app/server.py", mode=0o755)
    assert not classify([inside], ground(workdir="/usr/src/app")).revert
    assert classify([change("/usr/bin/cat")], ground(workdir="/usr/src/app")).revert
    assert classify([change("/usr/bin/cat")], ground(workdir="/")).revert
    assert classify([change("/usr/bin/cat")], ground(workdir="/usr")).revert


def test_a_folder_with_another_mode_is_left_alone_and_a_replaced_one_is_not(ground: Any) -> None:
    assert not classify([change("/usr/bin", type="dir", mode=0o777)], ground()).revert
    for replaced in (
        change("/bin", type="dir", mode=0o755),
        change("/usr/bin/git", type="dir", mode=0o755, was="file"),
    ):
        assert replaced.path in classify([replaced], ground()).revert


# --- what runs by itself ----------------------------------------------------------------------------------------------

SITE = "/usr/local/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    "path",
    [
        f"{SITE}/sitecustomize.py",
        f"{SITE}/usercustomize.py",
        f"{SITE}/sitecustomize.cpython-311-x86_64-linux-gnu.so",
        "/app/sitecustomize.py",
        "/root/.local/lib/python3.11/site-packages/usercustomize.py",
        "/usr/lib/python311.zip",
        "/usr/local/bin/pyvenv.cfg",
        "/etc/ld.so.preload",
        "/etc/perl/strict.pm",
        "/etc/apt/apt.conf.d/99hook",
        "/var/lib/dpkg/triggers/File",
    ],
)
def test_start_up_code_is_set_aside(ground: Any, path: str) -> None:
    plan = classify([change(path, "added")], ground())
    assert path in plan.revert
    assert [f.action for f in plan.findings] == ["set-aside"]


def test_virtual_environments_of_the_agent_are_whole(ground: Any) -> None:
    changes = [
        change("/app/venv", "added", "dir"),
        change("/app/venv/bin/python", "added", "link", 0o777, target="/usr/bin/python3"),
        change("/app/venv/pyvenv.cfg", "added"),
    ]
    plan = classify(changes, ground())
    assert not plan.revert and not plan.commands


def test_path_files_are_read_and_weights_are_not(ground: Any) -> None:
    changes = [change("/app/model.pth", "added"), change(f"{SITE}/x.pth", "added")]
    plan = classify(changes, ground())
    assert plan.path_files == [f"{SITE}/x.pth"] and list(plan.revert) == [f"{SITE}/x.pth"]


@pytest.mark.parametrize(
    ("first", "expected"), [("#!/bin/bash", False), ("#!/bin/bash -l", True), ("#!/usr/bin/env zsh", True)]
)
def test_shell_start_up_files_matter_to_a_login_shell(ground: Any, first: str, expected: bool) -> None:
    for path in ("/root/.bash_profile", "/etc/profile.d/x.sh", "/root/.zshenv"):
        plan = classify([change(path, "added")], ground(test=f"{first}\n", instruction="Edit the .profile."))
        assert bool(plan.revert) is expected and not plan.logins
        plan = classify([change(path, "added")], ground(test=f"{first}\n"))
        assert list(plan.revert) == plan.logins == [path]


def test_start_up_files_of_users_that_the_agent_made_are_its_work(ground: Any) -> None:
    assert not classify([change("/home/bob/.bashrc", "added")], ground()).revert
    linked = change("/etc/profile.d", "modified", "link", 0o777, target="/srv/p", was="dir")
    assert "/srv/p/x.sh" in classify([linked, change("/srv/p/x.sh", "added")], ground()).revert


# --- the test runner --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "kind", "reverted"),
    [
        ("/conftest.py", "added", True),
        ("/pytest.ini", "added", True),
        ("/node_modules", "added", True),
        ("/jest.config.js", "added", True),
        ("/answer.json", "added", False),
        ("/app/conftest.py", "modified", True),
        ("/app/pytest.ini", "modified", True),
        ("/app/conftest.py", "added", False),
        ("/app/package.json", "modified", False),
    ],
)
def test_configuration_of_the_test_runner(ground: Any, path: str, kind: str, reverted: bool) -> None:
    assert (path in classify([change(path, kind)], ground()).revert) is reverted


def test_changed_project_configuration_is_written_back(ground: Any) -> None:
    plan = classify([change("/app/pyproject.toml", size=7)], ground())
    assert plan.configs == ["/app/pyproject.toml"] and "/app/pyproject.toml" in plan.revert
    assert [c.path for c in plan.agents] == ["/app/pyproject.toml"] and not plan.findings


# --- the verifier's own folders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reverted"),
    [
        ([change("/tests", "added", "dir"), change("/tests/conftest.py", "added")], {"/tests", "/tests/conftest.py"}),
        ([change("/logs/verifier/reward.txt", "added")], {"/logs/verifier/reward.txt"}),
        ([change("/logs", "modified", "link", 0o777, target="/app", was="dir")], {"/logs"}),
        ([change("/tests", "modified", "link", 0o777, target="/app", was="dir")], {"/tests"}),
        ([change("/logs", "deleted", "dir")], {"/logs"}),
        ([change("/logs", "modified", "dir", 0o777), change("/logs/agent/x", "added")], set()),
    ],
)
def test_the_verifiers_folders_are_new(ground: Any, changes: list[Change], reverted: set[str]) -> None:
    assert set(classify(changes, ground()).revert) == reverted


@pytest.mark.parametrize(
    ("links", "into"),
    [
        ({"/app/a": "/tests/expected"}, True),
        ({"/app/a": "../tests/expected"}, True),
        ({"/app/a": "/proc/self/root/tests/x"}, True),
        ({"/app/a": "/proc/1/cwd/../tests/x"}, True),
        ({"/app/a": "b/x", "/app/b": "/tests"}, True),
        ({"/app/a": "r/tests/x", "/app/r": "/"}, True),
        ({"/app/a": "/logs/verifier/reward.txt"}, True),
        ({"/app/a": "/solution/solve.sh"}, True),
        ({"/app/a": "/testsuite/x"}, False),
        ({"/app/a": "b", "/app/b": "a"}, False),
        ({"/app/a": "/usr/bin/python3"}, False),
        ({"/app/a": "/app/tests/x"}, False),
    ],
)
def test_links_to_the_tests(ground: Any, links: dict[str, str], into: bool) -> None:
    changes = [change(p, "added", "link", 0o777, target=t) for p, t in sorted(links.items())]
    assert ("/app/a" in classify(changes, ground()).revert) is into


def test_a_place_behind_a_link_has_the_rules_of_the_link(ground: Any) -> None:
    def behind(link: str, target: str, *files: Change) -> Plan:
        made = change(link, "added", "link", 0o777, target=target)
        return classify(sorted((made, *files), key=lambda c: c.path), ground())

    plan = behind("/root/.config", "/srv/c", change("/srv/c/pip/pip.conf", "added"))
    assert "PIP_CONFIG_FILE" in plan.env and "/srv/c/pip/pip.conf" in plan.revert
    assert "/srv/a/apt.conf.d/9" in behind("/etc/apt", "../srv/a", change("/srv/a/apt.conf.d/9", "added")).revert
    plan = behind("/root/.local", "/srv/l", change("/srv/l/bin/cat", "added", mode=0o755))
    assert plan.commands == ["/srv/l/bin/cat"]
    plan = behind("/usr/local/bin/tac", "/app/tac", change("/app/tac", "added", mode=0o755))
    assert plan.commands == ["/usr/local/bin/tac"] and not plan.revert
    plan = behind("/usr/local/sbin", "/srv/b", change("/srv/b/rm", "added", mode=0o755))
    assert "/srv/b/rm" in plan.revert and not plan.commands
    replaced = change("/etc", "modified", "link", 0o777, target="/srv/e", was="dir")
    assert "/etc" in classify([replaced], ground()).revert


# --- packages ---------------------------------------------------------------------------------------------------------


def test_an_upgraded_package_is_put_back_whole(ground: Any) -> None:
    changes = [
        change(f"{SITE}/numpy-1.0.dist-info", "deleted", "dir"),
        change(f"{SITE}/numpy-2.0.dist-info", "added", "dir"),
        change(f"{SITE}/numpy-2.0.dist-info/METADATA", "added"),
        change(f"{SITE}/numpy/__init__.py"),
        change(f"{SITE}/numpy/newer.py", "added"),
        change(f"{SITE}/other", "added", "dir"),
        change(f"{SITE}/other/__init__.py", "added"),
    ]
    plan = classify(changes, ground())
    assert [c.path for c in plan.agents] == [f"{SITE}/other", f"{SITE}/other/__init__.py"]
    assert not classify(changes, ground(keep=(f"{SITE}/numpy*",))).revert


def test_added_packages_stay(ground: Any) -> None:
    names = ("flask", "flask-3.0.dist-info", "google/cloud")
    changes = [change(f"{SITE}/{n}", "added", "dir") for n in names]
    assert not classify(changes, ground()).revert


def test_what_the_tests_install_themselves(ground: Any) -> None:
    names = ("pytest-99.dist-info", "pytest", "_pytest", "pluggy-9.dist-info", "pluggy", "flask-3.0.dist-info", "flask")
    changes = sorted((change(f"{SITE}/{n}", "added", "dir") for n in names), key=lambda c: c.path)
    plan = classify(changes, ground(test="#!/bin/bash\npip install \\\n  'pytest>=8' requests\n"))
    assert {p.rpartition("/")[2] for p in plan.revert} == {n for n in names if not n.startswith("flask")}
    assert not classify(changes, ground(test="#!/bin/bash\npytest\n")).revert


def test_bytecode_of_the_images_modules(ground: Any) -> None:
    changes = [
        change("/app/__pycache__/given.cpython-311.pyc", "added"),
        change("/app/__pycache__/mine.cpython-311.pyc", "added"),
        change("/app/mine.py", "added"),
        change("/usr/lib/python3.11/__pycache__/os.cpython-311.pyc", "added"),
    ]
    plan = classify(changes, ground())
    assert set(plan.revert) == {changes[0].path, changes[3].path}


# --- shadows ----------------------------------------------------------------------------------------------------------


def test_added_commands_are_asked_about(ground: Any) -> None:
    changes = [
        change("/root/.local/bin/cat", "added", mode=0o755),
        change("/usr/local/bin/data", "added", mode=0o644),
        change("/usr/local/bin/link", "added", "link", 0o777, target="/app/x"),
        change("/usr/local/bin/tool", "added", mode=0o755),
        change("/app/bin/cat", "added", mode=0o755),
    ]
    plan = classify(sorted(changes, key=lambda c: c.path), ground())
    assert plan.commands == ["/root/.local/bin/cat", "/usr/local/bin/link", "/usr/local/bin/tool"]
    assert classify([changes[4]], ground(path=("/app/bin", *PATH))).commands == ["/app/bin/cat"]


def test_names_that_cannot_be_ordered_are_not_asked_about(ground: Any) -> None:
    plan = classify([change("/usr/local/bin/a\nremove usr", "added", mode=0o4755)], ground())
    assert not plan.commands and not plan.setuid and len(plan.revert) == 1
    plan = classify([change("/usr/local/lib/liba\n.so", "added", mode=0o4755)], ground())
    assert not plan.libraries and plan.setuid == plan.executables == ["/usr/local/lib/liba\n.so"]


@pytest.mark.parametrize(
    ("path", "test", "instruction", "reverted"),
    [
        ("/usr/local/bin/curl", "curl -s x", "Do it.", False),
        ("/usr/local/bin/curl", "command -v curl || apt-get install -y curl; curl -s x", "Do it.", True),
        ("/usr/local/bin/uvx", "curl -LsSf https://astral.sh/uv/install.sh | sh; uvx pytest", "Do it.", True),
        ("/usr/local/bin/node", "node /app/main.js", "Do it.", False),
        ("/usr/local/bin/node", "nvm install 20; node /app/main.js", "Do it.", True),
        ("/usr/local/bin/curl", "curl -s x", "Install curl.", False),
        ("/usr/local/bin/curl", "wget x", "Do it.", False),
        ("/usr/local/bin/greet", "greet", "Do it.", False),
        ("/usr/bin/curl", "curl -s x", "Do it.", False),
        ("/usr/bin/curl", "apt-get install -y curl; curl -s x", "Do it.", True),
        ("/usr/bin/curl", "apt-get install -y curl; dpkg -l nginx", "Do it.", False),
        ("/usr/local/bin/python3.13", "uvx -p 3.13 pytest", "Do it.", True),
        ("/usr/local/bin/python3.13", "uvx -p 3.13 pytest", "Install Python 3.13.", False),
    ],
)
def test_tools_that_the_tests_bring(ground: Any, path: str, test: str, instruction: str, reverted: bool) -> None:
    changes = [change(path, "added", mode=0o755), change("/var/lib/dpkg/status")]
    plan = classify(changes, ground(test=f"#!/bin/bash\n{test}\n", instruction=instruction))
    assert (path in plan.revert) is reverted
    assert ("/var/lib/dpkg/status" in plan.revert) is (reverted and path.startswith("/usr/bin"))


@pytest.mark.parametrize(
    ("path", "instruction", "kept"),
    [
        ("/app/prog", "Write /app/prog.", False),
        ("/app/prog", "Make /app/prog setuid.", True),
        ("/usr/bin/sudo", "Let bob use sudo.", True),
        ("/usr/bin/sudo", "Do it.", False),
    ],
)
def test_rights_that_are_asked_for(ground: Any, path: str, instruction: str, kept: bool) -> None:
    plan = classify([change(path, "added", mode=0o4755)], ground(instruction=instruction))
    assert (path not in plan.setuid and path not in plan.executables) is kept


def test_libraries_and_modules_are_asked_about(ground: Any) -> None:
    changes = [
        change("/app/lib/libc.so.6", "added"),
        change("/opt/new", "added", "dir"),
        change("/opt/new/libc.so.6", "added"),
        change(f"{SITE}/numpy.libs/libx.so.1", "added"),
        change("/usr/lib/python3.11/json/decoder", "added", "dir"),
        change("/usr/local/lib/libc.so.6", "added"),
        change("/usr/local/share/perl/5.36.0/strict.pm", "added"),
    ]
    plan = classify(sorted(changes, key=lambda c: c.path), ground())
    assert plan.libraries == ["/usr/local/lib/libc.so.6"]
    searched = classify(changes[:1], ground(library_path=("/app/lib",)))
    assert searched.libraries == ["/app/lib/libc.so.6"]
    assert plan.modules["/usr/lib/python3.11/json/decoder"][0] == "/usr/lib/python3.11/json/decoder.py"
    assert "/usr/share/perl/5.36/strict.pm" in plan.modules["/usr/local/share/perl/5.36.0/strict.pm"]


def test_setuid(ground: Any) -> None:
    plan = classify([change("/app/x", "added", mode=0o4755), change("/srv/y", mode=0o2755)], ground())
    assert plan.setuid == ["/app/x", "/srv/y"] and {f.action for f in plan.findings} == {"disarmed"}


# --- configuration of tools -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "named", "variable"),
    [
        ("/root/.config/pip/pip.conf", "pip.conf", "PIP_CONFIG_FILE"),
        ("/root/.npmrc", ".npmrc", "NPM_CONFIG_USERCONFIG"),
        ("/root/.curlrc", "~/.curlrc", "CURL_HOME"),
        ("/root/.wgetrc", "wgetrc", "WGETRC"),
        ("/root/.config/uv/uv.toml", "uv.toml", "UV_CONFIG_FILE"),
        ("/root/.cache/uv/wheels/x", ".cache/uv", "UV_CACHE_DIR"),
        ("/root/.local/share/uv/python/x", ".local/share/uv", "UV_PYTHON_INSTALL_DIR"),
        ("/app/.Rprofile", ".Rprofile", "R_PROFILE_USER"),
    ],
)
def test_a_tool_is_told_to_look_elsewhere(ground: Any, path: str, named: str, variable: str) -> None:
    plan = classify([change(path, "added")], ground())
    assert not plan.revert and variable in plan.env and codes(plan, path) == ["tool-config"]
    assert [c.path for c in plan.agents] == [path]
    spoken_of = classify([change(path, "added")], ground(instruction=f"Edit {named} as you like."))
    assert not spoken_of.env and not spoken_of.findings
    assert path in classify([change(path, "modified")], ground()).revert


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/root/.sqliterc", ".sqliterc"),
        ("/root/.cargo/config.toml", ".cargo/config.toml"),
        ("/etc/apt/sources.list.d/x.list", "/etc/apt/sources.list.d"),
        ("/etc/resolv.conf", "resolv.conf"),
        ("/etc/pam.d/su", "/etc/pam.d/su"),
        ("/etc/environment", "/etc/environment"),
        ("/etc/ssl/openssl.cnf", "openssl.cnf"),
    ],
)
def test_configuration_without_a_switch_is_put_back(ground: Any, path: str, named: str) -> None:
    assert path in classify([change(path)], ground()).revert
    assert not classify([change(path)], ground(test=f"#!/bin/bash\ngrep x {named}\n")).revert


def test_alternatives(ground: Any) -> None:
    switched = change("/etc/alternatives/awk", "modified", "link", 0o777, target="/srv/awk")
    assert classify([switched], ground()).revert
    assert not classify([switched], ground(instruction="Use update-alternatives.")).revert
    new = change("/etc/alternatives/java", "added", "link", 0o777, target="/opt/jdk/bin/java")
    assert not classify([new], ground()).revert


def test_accounts_are_merged_unless_the_task_is_about_them(ground: Any) -> None:
    plan = classify([change("/etc/passwd")], ground())
    assert plan.accounts and set(plan.revert) == {"/etc/passwd"} and not plan.findings
    assert not classify([change("/etc/passwd")], ground(instruction="Change root's shell.")).accounts
    for gone in (
        change("/etc/passwd", "deleted"),
        change("/etc/group", type="other"),
        change("/etc/passwd", type="dir"),
    ):
        plan = classify([gone], ground())
        assert gone.path in plan.revert and not plan.accounts


def test_shell_code_that_the_tests_take_in_is_named(ground: Any) -> None:
    login, sourced = change("/root/.profile"), change("/root/.cargo/env", "added")
    asked = {"instruction": "Change the .profile."}
    plan = classify([sourced, login], ground(test="#!/bin/bash\n. ~/.cargo/env\nbash -lc true\n", **asked))
    assert [f.path for f in plan.findings if f.code == "agent-code-in-verifier"] == [sourced.path, login.path]
    assert not plan.revert and not classify([sourced, login], ground(test="#!/bin/bash\ntrue\n", **asked)).findings


@pytest.mark.parametrize(
    ("path", "twin"),
    [
        ("/usr/share/perl5/strict.pm", "/usr/lib/x86_64-linux-gnu/perl-base/strict.pm"),
        ("/usr/local/share/perl/5.36.0/JSON.pm", "/usr/share/perl5/JSON.pm"),
        ("/usr/include/x86_64-linux-gnu/assert.h", "/usr/include/assert.h"),
        ("/usr/lib/gcc/x86_64-linux-gnu/12/include/assert.h", "/usr/include/assert.h"),
        ("/usr/include/assert.h", None),
    ],
)
def test_what_an_addition_could_hide(ground: Any, path: str, twin: str | None) -> None:
    found = classify([change(path, "added")], ground()).modules.get(path, [])
    assert path not in found and (twin in found if twin else not found)


def test_hosts_and_loader_cache_are_merged(ground: Any) -> None:
    plan = classify([change("/etc/hosts"), change("/etc/ld.so.cache")], ground())
    assert plan.hosts and plan.relink and set(plan.revert) == {"/etc/hosts", "/etc/ld.so.cache"} and not plan.findings


def test_name_service_is_the_images_unless_it_is_the_task(ground: Any) -> None:
    changes = [change("/etc/nsswitch.conf"), change("/usr/lib/x86_64-linux-gnu/libnss_x.so.2", "added")]
    assert list(classify(changes, ground()).revert) == [c.path for c in changes]
    assert not classify(changes, ground(instruction="Edit nsswitch.conf.")).revert
    assert not classify([change("/app/libnss_x.so.2", "added")], ground()).revert


def test_package_sources_of_the_image(ground: Any) -> None:
    assert classify([change("/opt/wheels/pytest-99-py3-none-any.whl", "added")], ground()).revert
    assert not classify([change("/app/dist/x-1-py3-none-any.whl", "added")], ground()).revert
    assert not classify(
        [change("/opt/wheels/x-1-py3-none-any.whl", "added")], ground(instruction="Put it in /opt/wheels.")
    ).revert


# --- git --------------------------------------------------------------------------------------------------------------


def test_git_hooks(ground: Any) -> None:
    hook = change("/app/.git/hooks/post-checkout", "added", mode=0o755)
    assert classify([hook], ground()).revert
    assert not classify([hook], ground(instruction="Write a git hook.")).revert
    own = [change("/srv/x.git", "added", "dir"), change("/srv/x.git/hooks/post-receive", "added", mode=0o755)]
    assert not classify(own, ground()).revert
    react = change("/app/src/hooks/use-auth", "added")
    assert not classify([react], ground()).revert
    assert classify([change("/app/.git/config"), change("/root/.gitconfig", "added")], ground()).git_configs == [
        "/app/.git/config",
        "/root/.gitconfig",
    ]


def test_files_that_the_task_provided_are_not_the_agents(ground: Any) -> None:
    given = change("/app/conftest.py", "added")
    assert not classify([given], ground(provided=frozenset({given.path}))).agents


def test_cost_grows_with_the_number_of_changes_and_not_faster(ground: Any) -> None:
    import sys

    def calls(count: int) -> int:
        """How many functions are called for that many changes: the same on every machine."""
        named = (change(f"{SITE}/pkg{n % 200}/module{n}.py", "added", size=n) for n in range(count))
        changes = sorted(named, key=lambda c: c.path)
        seen = 0

        def count_calls(frame: Any, event: str, arg: Any) -> None:
            nonlocal seen
            seen += event == "call"

        sys.setprofile(count_calls)
        try:
            assert len(classify(changes, ground()).agents) == count
        finally:
            sys.setprofile(None)
        return seen

    assert calls(4000) < 2.5 * calls(2000)


# --- settings, folders and accounts that nobody asked about -----------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "test", "instruction", "reverted"),
    [
        ("/root/.jq", "jq . /app/x", "Do it.", True),
        ("/root/.jq", "jq . /app/x", "Set up jq.", False),
        ("/root/.jq", "grep . ~/.jq", "Do it.", False),
        ("/root/.jq", "jq -f /tests/filter.jq", "Do it.", True),
        ("/root/.jq", "grep x /app/x", "Do it.", False),
        ("/root/.vimrc", "vim -es x", "Do it.", True),
        ("/root/.config/ruff/ruff.toml", "ruff check /app", "Do it.", True),
        ("/root/.config/rclone/rclone.conf", "rclone listremotes", "Add a remote to rclone.", False),
        ("/root/.mypy.ini", "mypy /app", "Do it.", True),
        ("/app/mypy.ini", "mypy /app", "Do it.", False),
        ("/root/.config/systemd/user/x.service", "systemd-analyze verify x", "Do it.", False),
        ("/etc/php/8.2/cli/conf.d/9.ini", "php /tests/x.php", "Do it.", True),
        ("/etc/php/8.2/cli/conf.d/9.ini", "php /tests/x.php", "Configure PHP.", False),
        ("/etc/login.defs", "su nobody -c true", "Do it.", True),
        ("/var/lib/apt/lists/x_Packages", "apt-get install -y x", "Do it.", True),
        ("/usr/lib/ruby/vendor_ruby/rubygems/defaults/operating_system.rb", "ruby x", "Do it.", True),
        ("/usr/share/tcltk/x/pkgIndex.tcl", "tclsh x", "Do it.", True),
        ("/usr/share/tcltk/x/pkgIndex.tcl", "tclsh x", "Write a Tcl package.", False),
        ("/usr/share/git-core/templates/hooks/pre-commit", "git init", "Do it.", True),
        ("/var/lib/dpkg/info/new.postinst", "dpkg -s new", "Install new.", True),
    ],
)
def test_settings_of_tools_that_the_tests_use(
    ground: Any, path: str, test: str, instruction: str, reverted: bool
) -> None:
    plan = classify([change(path, "added")], ground(test=f"#!/bin/bash\n{test}\n", instruction=instruction))
    assert (path in plan.revert) is reverted


@pytest.mark.parametrize(
    ("path", "mode", "uid", "opened"),
    [
        ("/usr/bin", 0o777, 0, True),
        ("/", 0o755, 65534, True),
        ("/logs", 0o777, 0, True),
        ("/root", 0o777, 0, True),
        ("/usr/lib/python3.11", 0o775, 0, True),
        ("/usr/bin", 0o755, 0, False),
        ("/opt/data", 0o777, 0, False),
        ("/app", 0o777, 0, False),
        ("/tmp", 0o1777, 0, False),
        ("/srv", 0o777, 0, False),
    ],
)
def test_folders_of_programs_are_roots(ground: Any, path: str, mode: int, uid: int, opened: bool) -> None:
    plan = classify([change(path, "modified", "dir", mode, uid=uid)], ground())
    assert (plan.opened == [path]) is opened and not plan.revert


def test_folders_that_the_tests_put_on_the_path(ground: Any) -> None:
    test = '#!/bin/bash\nexport PATH="$HOME/x/bin:/app/venv/bin:$PATH"\n'
    commands = [change("/app/venv/bin/sed", "added", mode=0o755), change("/root/x/bin/sed", "added", mode=0o755)]
    environment = change("/app/venv/pyvenv.cfg", "added")
    assert classify(commands, ground(test=test)).commands == [c.path for c in commands]
    assert classify([*commands, environment], ground(test=test)).commands == ["/root/x/bin/sed"]
    assert not classify(commands, ground()).commands


def test_links_where_the_tests_write(ground: Any) -> None:
    test = "#!/bin/bash\nx > /app/out.txt 2>&1\ncp -r /tests/a /app/into/a\ncat /tmp/read /app/read\n"

    def reverts(path: str, target: str = "/app/answer", instruction: str = "Do it.") -> bool:
        link = change(path, "added", "link", 0o777, target=target)
        return bool(classify([link], ground(test=test, instruction=instruction)).revert)

    assert reverts("/app/out.txt") and reverts("/app/into") and reverts("/tmp/read")
    assert not reverts("/app/read") and not reverts("/tmp/other") and not reverts("/app/out.txt", "/dev/null")
    assert not reverts("/tmp/read", instruction="Make a link called read.")


# --- what stays in effect and is said ---------------------------------------------------------------------------------


def noted(plan: Plan) -> list[tuple[str, str]]:
    return [(f.code, f.path) for f in plan.findings if f.action == "noted"]


@pytest.mark.parametrize(
    ("changed", "test", "instruction", "expected"),
    [
        (change("/usr/lib/x/plugin.so", "added"), "", "", "part-added"),
        (change("/usr/local/lib/python3.11/site-packages/speedups.py", "added"), "", "", "part-added"),
        (change("/usr/share/doc/x", "added", "dir"), "", "", None),
        (change("/srv/x.so", "added"), "", "", None),
        (change("/app/prog", "added", mode=0o755), "/app/prog 1\n", "", "agent-program"),
        (change("/app/prog", "added", mode=0o755), "/app/program 1\n", "", None),
        (change("/app/main.py", "added"), "python3 main.py\n", "", "agent-program"),
        (change("/app/Makefile"), "make -C /app\n", "", "agent-program"),
        (change("/app/.eslintrc.json", "added"), "npx eslint .\n", "", "agent-program"),
        (change("/app/.eslintrc.json", "added"), "true\n", "", None),
        (change("/app/jest.config.js", "added"), "jest\n", "", "agent-program"),
        (change("/app/nose2.cfg", "added"), "nose2 -v\n", "", "agent-program"),
        (change("/data/golden.csv"), "cmp /app/a /data/golden.csv\n", "", "image-file-changed"),
        (change("/data/golden.csv"), "cmp /app/a /data/golden.csv\n", "Correct golden.csv.", None),
        (change("/data/other.csv"), "cmp /app/a /data/golden.csv\n", "", None),
        (change("/app/spec/hard.rb", "deleted"), "rspec spec\n", "", "image-file-changed"),
        (change("/app/spec/hard.rb", "deleted"), "rspec /app/spec/easy.rb\n", "", None),
    ],
)
def test_what_cannot_be_told_apart_is_said(
    ground: Any, changed: Change, test: str, instruction: str, expected: str | None
) -> None:
    plan = classify([changed], ground(test=f"#!/bin/bash\n{test}", instruction=instruction))
    assert noted(plan) == ([(expected, changed.path)] if expected else []) and not plan.revert


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/root/.rustup/settings.toml", "Use the nightly Rust."),
        ("/app/.python-version", "It needs Python 3.12."),
        ("/root/.nvm/alias/default", "Make Node 20 the default."),
        ("/root/.rbenv/version", "Switch Ruby."),
        ("/app/.tool-versions", "Pin them with asdf."),
        ("/etc/sudoers.d/x", "Let bob use sudo."),
        ("/etc/magic", "Extend /etc/magic."),
        ("/etc/localtime", "Set the time zone to Tokyo."),
        ("/etc/default/useradd", "Change /etc/default/useradd."),
    ],
)
def test_who_chooses_the_verifiers_tools(ground: Any, path: str, asked: str) -> None:
    test = "#!/bin/bash\nfile x\n"
    for kind in ("added", "modified"):
        assert path in classify([change(path, kind)], ground(test=test)).revert
        assert not classify([change(path, kind)], ground(test=test, instruction=asked)).revert


def test_a_folder_is_said_once(ground: Any) -> None:
    changes = [
        change("/opt/tool", "added", "dir"),
        change("/opt/tool/a.so", "added"),
        change("/opt/tool/b.so", "added"),
    ]
    assert noted(classify(changes, ground())) == [("part-added", "/opt/tool")]


def test_virtual_environments_elsewhere(ground: Any) -> None:
    made = [change("/opt/env", "added", "dir"), change("/opt/env/pyvenv.cfg", "added")]
    assert not classify(made, ground()).revert
    assert "/opt/env" in classify(made, ground(test="python3 -m venv --clear /opt/env\n")).revert
    asked = ground(test="python3 -m venv /opt/env\n", instruction="Make an environment in /opt/env.")
    assert not classify(made, asked).revert
    assert "/usr/pyvenv.cfg" in classify([change("/usr/pyvenv.cfg", "added")], ground()).revert


def test_commands_that_npx_prefers(ground: Any) -> None:
    local = change("/app/node_modules/.bin/jest", "added", mode=0o755)
    assert classify([local], ground(test="npx jest\n")).commands == [local.path]
    assert not classify([local], ground(test="jest\n")).commands


def test_what_a_project_says_to_uv(ground: Any) -> None:
    for kind in ("added", "modified"):
        project = change("/app/pyproject.toml", kind)
        plan = classify([project], ground(test="uvx pytest\n"))
        assert plan.env == {"UV_CONFIG_FILE": "{folder}/uv.toml"} and project in plan.agents
        assert not classify([project], ground(test="pytest\n")).env
        assert not classify([project], ground(test="uvx pytest\n", instruction="Manage it with uv in time.")).env


@pytest.mark.parametrize(
    ("test", "rewards", "expected"),
    [
        ("echo 1 > /logs/verifier/reward.txt\n", ["reward.txt", "reward.json"], ["reward.json"]),
        ("echo 1 > /logs/verifier/reward.txt\n", ["reward.json"], []),
        ("echo 1 > reward.txt; cat x > reward.json\n", ["reward.txt", "reward.json"], []),
        ("echo 0 > reward.txt; uvx -p 3.13 grader /tests\n", ["reward.txt", "reward.json"], []),
        (
            "uvx -w pytest==8.4 -w pytest-x pytest; echo 0 > reward.txt\n",
            ["reward.txt", "reward.json"],
            ["reward.json"],
        ),
        ("echo 0 > reward.txt; p.with_suffix('.json')\n", ["reward.txt", "reward.json"], []),
        ("echo 0 > reward.txt; echo > reward.$x\n", ["reward.txt", "reward.json"], []),
        ("python3 /tests/x.py\n", ["reward.txt", "reward.json"], []),
    ],
)
def test_rewards_that_no_test_names(ground: Any, test: str, rewards: list[str], expected: list[str]) -> None:
    assert ground(test=test).author.not_theirs(rewards) == expected


@pytest.mark.parametrize(
    ("test", "bare"),
    [
        ("python3 -S -c 'x'\n", True),
        ("python3 -uS x.py\n", True),
        ("run(['python3', '-S', 'x.py'])\n", True),
        ("python3 -I -c 'print(-S)'\n", False),
        ("python3 x.py -S\n", False),
        ("python3 -m pytest -sS\n", False),
    ],
)
def test_python_without_site(ground: Any, test: str, bare: bool) -> None:
    assert ground(test=test).author.starts_bare_python is bare
    plan = classify([change("/app/json.py", "added"), change("/app/mine.py", "added")], ground(test=test))
    assert list(plan.revert) == (["/app/json.py"] if bare else [])
