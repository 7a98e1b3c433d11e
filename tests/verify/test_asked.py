"""What an instruction asks for, and where tests let programs look: read from their texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchflow_core.contracts.sandboxes import Change
from benchflow_core.verify.asked import asked, asks_to_change, asks_to_install
from benchflow_core.verify.author import AuthorText
from benchflow_core.verify.ground import Ground
from benchflow_core.verify.logins import _stays as stays
from benchflow_core.verify.searchpath import put_on

CHECKER = "/usr/local/bin/checker"
LIBRARY = "/usr/lib/python3/dist-packages/helper_lib/__init__.py"


def _ground(instruction: str) -> Ground:
    return Ground("/app", "/root", (), "/tests", "/logs/verifier", AuthorText(instruction, (), "test.sh"))


@pytest.mark.parametrize(
    ("path", "instruction", "expected"),
    [
        (CHECKER, "There is a bug in `/usr/local/bin/checker`: it fails. Fix it.", True),
        (CHECKER, "The script /usr/local/bin/checker is broken: it looks for 42.", True),
        (CHECKER, "/usr/local/bin/checker must be rewritten in C.", True),
        (CHECKER, "Uninstall the program checker.", True),
        (CHECKER, "Repair the command `checker`.", True),
        (CHECKER, "Purge checker.", True),
        (CHECKER, "The command checker should be replaced.", True),
        (CHECKER, "Fix main.c. Your work is checked with /usr/local/bin/checker.", False),
        (CHECKER, "Fix the program so that checker passes.", False),
        (CHECKER, "Fix the bug and run checker to see.", False),
        (CHECKER, "Fix the bug. Do not modify /usr/local/bin/checker.", False),
        (CHECKER, "You must not replace the command checker.", False),
        (CHECKER, "Repair it without changing /usr/local/bin/checker.", False),
        ("/usr/bin/sort", "Change the sort order and fix the sort function in sort.py.", False),
        ("/usr/bin/link", "Remove the link.", False),
        ("/usr/bin/node", "Remove all node modules.", False),
        (LIBRARY, "Upgrade helper_lib to version 2.", True),
        (LIBRARY, "Install flask, requests and helper-lib 1.26.", True),
        (LIBRARY, "Use helper_lib to fix the bug.", False),
        (LIBRARY, "Do not install helper_lib.", False),
        ("/usr/lib/python3/dist-packages/pytest/__init__.py", "Install pytest.", False),
        ("/opt/service/app.py", "The code is in /opt/service. Make it faster.", True),
        ("/opt/service/bin/python", "The code is in /opt/service. Make it faster.", False),
    ],
)
def test_changes_that_are_asked_for(path: str, instruction: str, expected: bool) -> None:
    assert asked(Change(path, "modified", "file", 0o755), _ground(instruction)) is expected


@pytest.mark.parametrize(
    ("path", "instruction", "expected"),
    [
        ("/app/statistics.py", "Write /app/statistics.py with a function mean.", True),
        ("/app/statistics.py", "Write statistics.py.", True),
        ("/app/statistics.py", "Compute statistics.", False),
        ("/app/json.py", "Write data.json.", False),
        ("/app/cat", "Write a cat picture site.", False),
        ("/app/tests/conftest.py", "Write main.py and conftest.py.", True),
        ("/app/tests/conftest.py", "Save the fixtures in tests/conftest.py", True),
        ("/app/tests/conftest.py", "The project has tests; conftest.py is not to be touched.", False),
        ("/app/tests/conftest.py", "Do not add a conftest.py.", False),
        ("/app/tests/conftest.py", "Our conftest.py sets up a database.", False),
        ("/app/tokenize/__init__.py", "Make a package /app/tokenize.", True),
        ("/usr/local/bin/git", "Put a wrapper at /usr/local/bin/git.", True),
        ("/usr/local/bin/git", "Use /usr/local/bin/git for it.", False),
        ("/usr/local/bin/git", "Commit it with git.", False),
    ],
)
def test_files_that_are_asked_for(path: str, instruction: str, expected: bool) -> None:
    assert asked(Change(path, "added", "file", 0o755), _ground(instruction)) is expected


@pytest.mark.parametrize(
    ("path", "instruction", "expected"),
    [
        ("/usr/local/bin/python3", "Install Python 3.12 from source.", True),
        (
            "/usr/local/bin/python3",
            "Install Python dependencies. Build the Python package. Fix the python script.",
            False,
        ),
        ("/usr/local/bin/node", "Install Node.js 20.", True),
        ("/usr/local/bin/node", "Install node modules.", False),
        ("/usr/local/bin/sqlite3", "Compile the latest SQLite from source.", True),
        ("/usr/local/lib/libsqlite3.so.0.8.6", "Compile the latest SQLite from source.", True),
        ("/usr/local/include/sqlite3.h", "Compile the latest SQLite from source.", True),
        ("/usr/local/bin/cat", "Build a cat picture site.", False),
        ("/usr/local/bin/make", "Build the project with make.", False),
        ("/etc/alternatives/java", "Make Java 17 the default java.", True),
        ("/usr/local/bin/bash", "Install bash.", False),
    ],
)
def test_software_that_is_to_be_installed(path: str, instruction: str, expected: bool) -> None:
    assert asks_to_install(path, AuthorText(instruction, (), "test.sh")) is expected


def test_distributions_that_are_asked_for() -> None:
    author = AuthorText("Install numlib 1.26 and pytest.", (), "test.sh")
    assert asks_to_change("numlib", author)
    assert not asks_to_change("pytest", author)


@pytest.mark.parametrize(
    ("variable", "text", "folders"),
    [
        ("PATH", "export PATH=$HOME/.local/bin:$PATH", ["~/.local/bin"]),
        ("PATH", 'export PATH="/root/.cargo/bin:${PATH}"', ["/root/.cargo/bin"]),
        ("PATH", "ROOT=/app\nexport PATH=$ROOT/bin:$PATH", ["/app/bin"]),
        ("PATH", "export PATH=$TOOLS:$PATH", ["."]),
        ("PATH", "PATH=.:$PATH run", ["."]),
        ("PATH", 'export PATH="$(pwd)/bin:$PATH"', ["./bin"]),
        ("PATH", 'export PATH="$(go env GOPATH)/bin:$PATH"', []),
        ("PATH", "os.environ['PATH'] = '/app/bin:' + os.environ['PATH']", ["/app/bin"]),
        ("PATH", "env={'PATH': f\"/app/bin:{os.environ['PATH']}\"}", ["/app/bin"]),
        ("PATH", "PYTHONPATH=/app run", []),
        ("LD_LIBRARY_PATH", "export LD_LIBRARY_PATH=/app/lib:$LD_LIBRARY_PATH", ["/app/lib", "."]),
        ("LD_LIBRARY_PATH", "LD_LIBRARY_PATH=/a${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} x", ["/a"]),
    ],
)
def test_search_paths(variable: str, text: str, folders: list[str]) -> None:
    assert list(put_on(variable, text)) == folders


@pytest.mark.parametrize(
    ("name", "instruction", "test", "expected"),
    [
        ("API_URL", "", "", True),
        ("TAR_OPTIONS", "", "", False),
        ("TZ", "", "", False),
        ("TZ", "Set the time zone.", "", True),
        ("LANG", "", "bash -lc 'echo $LANG'", True),
        ("RUSTC_WRAPPER", "", "", False),
        ("PYTHONPATH", "", "echo $PYTHONPATH", False),
        ("PYTHONPATH", "Set PYTHONPATH to /app.", "", True),
        ("LD_PRELOAD", "Set LD_PRELOAD.", "", False),
    ],
)
def test_variables_of_start_up_files(tmp_path: Path, name: str, instruction: str, test: str, expected: Any) -> None:
    (tmp_path / "test.sh").write_text(test)
    assert stays(name, AuthorText(instruction, (tmp_path,), "test.sh")) is expected
