"""The Python guard by itself, in every interpreter of this machine that it is made for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.guards import Knowledge, guard_line, lay_out


def _interpreters() -> list[str]:
    """This one, and the oldest and the newest of those on PATH and those that a version manager keeps beside it."""
    named = (shutil.which(f"python3.{minor}") for minor in range(6, 16))
    beside = map(str, Path(sys.base_prefix).parent.glob("*/bin/python3"))
    found = {}
    for path in (sys.executable, *sorted(beside), *filter(None, named)):
        code = "import sys; print('%d.%d' % sys.version_info[:2]); sys.exit(sys.version_info < (3, 6))"
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found.setdefault(done.stdout.strip(), path)
    ordered = sorted(found, key=lambda version: int(version.split(".")[1]))
    return list(dict.fromkeys((sys.executable, found[ordered[0]], found[ordered[-1]])))


INTERPRETERS = _interpreters()


class Place:
    """A working directory with files of the agent's and of the image's, and the guard's folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.app, self.folder = root, root / "app", root / "guard"
        self.app.mkdir()
        self.agents: list[Change] = []

    def write(self, path: str, text: str, *, agents: bool) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if agents:
            self.agents.append(Change(str(file), "added", size=len(text)))
        return file

    def agents_folder(self, path: str) -> None:
        (self.root / path).mkdir(parents=True)
        self.agents.append(Change(str(self.root / path), "added", "dir"))

    def guard(self, **more: object) -> None:
        self.folder.mkdir()
        lay_out(self.folder, Knowledge(self.agents, **more), {})  # type: ignore[arg-type]

    def run(self, python: str, *argv: str, env: dict[str, str] | None = None, cwd: str = "app") -> str:
        base = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        full = {**base, "PYTHONPATH": str(self.folder), **(env or {})}
        done = subprocess.run(
            [python, *argv], cwd=self.root / cwd, env=full, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


each = pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: Path(path).resolve().name)


@each
def test_a_program_started_as_a_module(place: Place, python: str) -> None:
    """Whose it is decides, wherever Python finds it: the verifier's own is not the agent's of the same name."""
    place.write("app/mine.py", "import queue\nprint(queue.X)\n", agents=True)
    place.write("app/queue.py", "X = 'AGENT'\n", agents=True)
    place.write("app/timeit.py", "print('AGENT')\n", agents=True)
    place.guard()
    own_path = {"PYTHONPATH": f"{place.app}:{place.folder}"}
    for env in ({}, own_path):
        assert place.run(python, "-m", "mine", env=env) == "AGENT\n", "the agent's program finds what is the agent's"
        assert "AGENT" not in place.run(python, "-m", "timeit", "-n1", "-r1", "pass", env=env)


@each
def test_the_standard_library_is_not_shadowed(place: Place, python: str) -> None:
    place.write("app/json.py", "print('AGENT')\n", agents=True)
    place.write("app/check.py", "import json\nprint(json.dumps(1))\n", agents=False)
    place.guard()
    assert place.run(python, "-c", "import json; print(json.dumps(1))") == "1\n"
    assert place.run(python, "check.py") == "1\n"
    assert place.run(python, "-m", "check") == "1\n"


@each
def test_distutils_is_that_of_setuptools_where_python_has_none(place: Place, python: str) -> None:
    shim = "m = sys.modules['distutils'] = types.ModuleType('distutils')\nm.__path__, m.OURS = [], False\n"
    place.write("app/setuptools/__init__.py", f"import sys, types\n{shim}", agents=True)
    place.guard(editable={"distutils": "/nowhere"})
    code = (
        "import sys; sys.path[:] = [p for p in sys.path if 'python3' not in p]; import distutils; print(distutils.OURS)"
    )
    assert place.run(python, "-c", code, env={"SETUPTOOLS_USE_DISTUTILS": "stdlib"}) == "False\n"


@each
def test_what_is_asked_for_is_the_agents_but_not_for_the_library(place: Place, python: str) -> None:
    asked = place.write("app/calendar.py", "MINE = 42\n", agents=True)
    place.write("app/queue.py", "MINE = 42\n", agents=True)
    place.guard(asked=[str(asked)])
    assert place.run(python, "-c", "import calendar; print(calendar.MINE)") == "42\n"
    assert "AttributeError" in place.run(python, "-c", "import queue; print(queue.MINE)")
    assert place.run(python, "-c", "import http.cookiejar as c; print(hasattr(c.timegm, '__code__'))") == "True\n"


@each
def test_an_agents_program_notices_nothing(place: Place, python: str) -> None:
    place.write("app/queue.py", "VALUE = 42\n", agents=True)
    place.write("app/json.py", "VALUE = 43\n", agents=True)
    text = (
        "import os, sys\nbefore = ' '.join(sorted(sys.modules))\nimport queue, json\nprint(queue.VALUE, json.VALUE)\n"
    )
    place.write("app/main.py", text + "print(os.environ.get('PYTHONPATH', ''))\nprint(before)\n", agents=True)
    place.guard()
    values, path, modules = place.run(python, "main.py").splitlines()
    _, _, without = place.run(python, "main.py", env={"PYTHONPATH": ""}).splitlines()
    assert (values, path) == ("42 43", "")
    assert set(modules.split()) - set(without.split()) <= {"sitecustomize"}


@each
def test_code_of_the_agent_gets_what_it_wants_inside_the_verifier(place: Place, python: str) -> None:
    place.write("site/lib.py", "NEW = False\n", agents=False)
    place.write("app/lib.py", "NEW = True\n", agents=True)
    place.write("app/wants.py", "from lib import NEW\n", agents=True)
    place.guard(python_path=(str(place.root / "site"),))
    assert place.run(python, "-c", "import wants; print(wants.NEW)") == "True\n"
    assert place.run(python, "-c", "import lib; print(lib.NEW)") == "False\n"


@each
def test_the_images_path_comes_back(place: Place, python: str) -> None:
    place.write("site/given.py", "print('given')\n", agents=False)
    place.guard(python_path=(str(place.root / "site"),))
    assert place.run(python, "-c", "import given, sys; print(any('guard' in p for p in sys.path))") == "given\nFalse\n"


@each
def test_the_next_sitecustomize_runs(place: Place, python: str) -> None:
    place.write("site/sitecustomize.py", "print('image')\n", agents=False)
    place.guard(python_path=(str(place.root / "site"),))
    assert place.run(python, "-c", "import sitecustomize; print(sitecustomize.__file__)").startswith("image\n")


@each
def test_editable_installs_work_without_their_code(place: Place, python: str) -> None:
    place.write("app/src/demo/__init__.py", "X = 42\n", agents=True)
    place.guard(editable={"demo": str(place.app / "src" / "demo")})
    assert place.run(python, "-c", "import demo; print(demo.X)", cwd="guard") == "42\n"


@each
def test_a_line_in_a_path_file_starts_it_too(place: Place, python: str) -> None:
    place.write("app/json.py", "print('AGENT')\n", agents=True)
    place.guard()
    code = f"import site; exec({guard_line(str(place.folder))!r}); import json; print(json.dumps(1))"
    assert place.run(python, "-c", code, env={"PYTHONPATH": ""}) == "1\n"
    assert place.run(python, "-c", code) == "1\n"


@each
def test_files_that_the_verifier_wrote_anew_are_its_own(place: Place, python: str) -> None:
    place.write("site/lib.py", "WHO = 'image'\n", agents=False)
    file = place.write("app/lib.py", "WHO = 'agent'\n", agents=True)
    place.guard(python_path=(str(place.root / "site"),))
    os.chmod(file, 0o600)
    assert place.run(python, "-c", "import lib; print(lib.WHO)") == "image\n", "another mode does not make it ours"
    file.write_text("WHO = 'the verifier'\n")
    assert place.run(python, "-c", "import lib; print(lib.WHO)") == "the verifier\n"


@each
def test_what_ran_is_reported(place: Place, python: str) -> None:
    file = place.write("app/solution.py", "X = 1\n", agents=True)
    place.guard()
    place.run(python, "-c", "import solution")
    seen = list((place.folder / "seen").iterdir())
    assert [path.read_text() for path in seen] == [f"ran {file}"]


@each
def test_odd_names_survive(place: Place, python: str) -> None:
    place.write("app/a\tb\\n\nc/x.py", "print('odd')\n", agents=True)
    place.guard()
    assert place.run(python, "-c", "print('fine')") == "fine\n"


def test_flags_and_subprocesses(place: Place) -> None:
    place.write("app/json.py", "print('AGENT')\n", agents=True)
    place.guard()
    code = (
        "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-Wd', '-X', 'utf8', '-c', 'import json']))"
    )
    assert place.run(sys.executable, "-u", "-c", code) == ""
    assert place.run(sys.executable, "-I", "-c", "import json; print('isolated')") == "isolated\n"
    assert place.run(sys.executable, "-m", "venv", "--without-pip", str(place.root / "v")) == ""
    assert place.run(str(place.root / "v" / "bin" / "python"), "-c", "import json; print('venv')") == "venv\n"


# --- pytest -----------------------------------------------------------------------------------------------------------

PASS_ALL = "import pytest\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport():\n    out = yield\n    out.get_result().outcome = 'passed'\n"


PYTEST = os.environ.get("BENCHFLOW_TEST_PYTEST", sys.executable)
"""An interpreter with another version of pytest, to try that one."""


def _result(place: Place, *argv: str) -> str:
    return place.run(PYTEST, "-m", "pytest", "-q", "-p", "no:cacheprovider", *argv)


def test_configuration_of_the_agent_does_not_count(place: Place) -> None:
    place.write("app/test_it.py", "def test_it():\n    assert False\n", agents=False)
    place.write("app/conftest.py", PASS_ALL, agents=True)
    place.write("app/pytest.ini", "[pytest]\naddopts = --collect-only\n", agents=True)
    place.guard()
    assert "1 failed" in _result(place, "test_it.py") and "1 failed" in _result(place)


def test_the_images_version_of_a_changed_configuration_counts(place: Place) -> None:
    place.write("app/test_it.py", "import layout\ndef test_it():\n    assert layout.X\n", agents=False)
    place.write("app/src/layout.py", "X = 1\n", agents=False)
    copy = place.write("copies/pyproject.toml", '[tool.pytest.ini_options]\npythonpath = ["src"]\n', agents=False)
    mine = place.write("app/pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--collect-only'\n", agents=True)
    place.guard(configs={str(mine): str(copy)})
    assert "1 passed" in _result(place, "test_it.py")


def test_configuration_of_task_and_image_counts(place: Place) -> None:
    place.write("app/mine.py", "", agents=True)
    place.write("tests/conftest.py", "import pytest\n@pytest.fixture\ndef number():\n    return 42\n", agents=False)
    place.write("tests/test_it.py", "def test_it(number):\n    assert number == 42\n", agents=False)
    place.guard()
    assert "1 passed" in _result(place, "../tests/test_it.py")


def test_the_agents_own_tests_are_run_as_they_are(place: Place) -> None:
    place.agents_folder("app/mytests")
    place.write(
        "app/mytests/conftest.py", "import pytest\n@pytest.fixture\ndef number():\n    return 42\n", agents=True
    )
    place.write("app/mytests/test_it.py", "def test_it(number):\n    assert number == 42\n", agents=True)
    place.guard()
    assert "1 passed" in _result(place, "mytests") and "1 passed" in _result(place, "mytests/test_it.py")
    place.write("app/mytests/test_verifier.py", "def test_it(number):\n    pass\n", agents=False)
    assert "1 error" in _result(place, "mytests/test_verifier.py"), "beside the verifier's tests it does not count"


def test_a_package_around_the_verifiers_tests_is_empty(place: Place) -> None:
    place.agents_folder("app/tests")
    place.write("app/tests/__init__.py", "raise SystemExit(0)\n", agents=True)
    place.guard()
    place.write("app/tests/test_it.py", "def test_it():\n    assert False\n", agents=False)
    assert "1 failed" in _result(place, "tests/test_it.py")


def test_tests_of_the_agent_among_those_of_the_verifier_are_not_collected(place: Place) -> None:
    place.agents_folder("app/tests")
    place.write("app/tests/test_aaa.py", "import os\nos._exit(0)\n", agents=True)
    place.write("app/tests/deep/test_aab.py", "import os\nos._exit(0)\n", agents=True)
    place.guard()
    place.write("app/tests/test_it.py", "def test_it():\n    assert False\n", agents=False)
    assert "1 failed" in _result(place, "tests")
    assert _result(place, "tests/test_aaa.py") == "", "what was named is run"
    said = "\n".join(file.read_text() for file in (place.folder / "seen").iterdir()).splitlines()
    assert f"ran {place.app}/tests/test_aaa.py" in said, "and said before it ends the process"


def test_plugins_of_the_agent_are_not_loaded(place: Place) -> None:
    place.write("site/allpass.py", PASS_ALL, agents=True)
    place.write("site/allpass-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: allpass\nVersion: 1\n", agents=True)
    place.write("site/allpass-1.dist-info/entry_points.txt", "[pytest11]\nallpass = allpass\n", agents=True)
    place.write("site/greeter.py", "def pytest_report_header(config):\n    return 'GREETER'\n", agents=False)
    place.write("site/greeter-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: greeter\nVersion: 1\n", agents=False)
    place.write("site/greeter-1.dist-info/entry_points.txt", "[pytest11]\ngreeter = greeter\n", agents=False)
    place.write("app/test_it.py", "def test_it():\n    assert False\n", agents=False)
    place.guard(python_path=(str(place.root / "site"),))
    output = place.run(PYTEST, "-m", "pytest", "-p", "no:cacheprovider", "test_it.py")
    assert "1 failed" in output and "GREETER" in output


def test_plugins_in_an_archive_of_the_agent_are_not_loaded(place: Place) -> None:
    import zipfile

    archive = place.root / "allpass.egg"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("allpass.py", PASS_ALL)
        out.writestr("EGG-INFO/PKG-INFO", "Metadata-Version: 2.1\nName: allpass\nVersion: 1\n")
        out.writestr("EGG-INFO/entry_points.txt", "[pytest11]\nallpass = allpass\n")
    place.agents.append(Change(str(archive), "added", size=archive.stat().st_size))
    place.write("app/test_it.py", "def test_it():\n    assert False\n", agents=False)
    place.guard(python_path=(str(archive),))
    assert "1 failed" in _result(place, "test_it.py")


def test_a_test_runner_of_the_agent_is_reported(place: Place) -> None:
    place.write("app/pytest_like/pytest.py", "print('all passed')\n", agents=True)
    place.guard()
    assert place.run(sys.executable, "pytest_like/pytest.py") == "all passed\n"
    assert [p.read_text() for p in (place.folder / "seen").iterdir()] == ["ran pytest_like/pytest.py"]
