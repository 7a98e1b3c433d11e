"""The table of powers, what a clean reading undoes, and how culprits are found: as data, without a box."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from benchflow_feature_isolation.clean import Undo, judge
from benchflow_feature_isolation.evidence import find_culprits, split_covered
from benchflow_feature_isolation.origin import Places
from benchflow_feature_isolation.powers import BadGlob, compile_glob, load_table
from benchflow_feature_isolation.shadowing import ImageNames

from benchflow_core.contracts import Change, ReferenceRun

PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
PLACES = Places("/app", "/root", PATH, "/tests", "/logs/verifier", frozenset({"expected.txt"}))
NAMES = ImageNames(
    command=frozenset({"cat", "python3"}),
    library=frozenset({"libz.so.1"}),
    python=frozenset({"json", "pytest"}),
    perl=frozenset({"strict.pm"}),
    package=frozenset({"/app/image_package"}),
)
ROWS = load_table("/root", "/app").powers


def added(path: str, mode: int = 0o644, **more: object) -> Change:
    return Change(path, "added", mode=mode, **more)  # type: ignore[arg-type]


def undone(*changes: Change, places: Places = PLACES) -> dict[str, str]:
    """Path to row."""
    return {undo.path: undo.row for undo in judge(changes, places, NAMES).undos}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_glob_of_the_table_can_be_understood(row) -> None:
    assert row.why and not row.why.endswith("."), "it follows the word `because`"
    for glob in (*row.paths, *row.but, *row.names):
        compile_glob(glob)


def test_rows_are_named_once() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("glob", ["a**b", "{a", "a}", "[a", "a,{"])
def test_a_bad_glob_is_named(glob: str) -> None:
    with pytest.raises(BadGlob, match=r"cannot be understood|do not match"):
        compile_glob(glob)


@pytest.mark.parametrize(
    ("change", "row"),
    [
        (added("/app/conftest.py"), "test-code"),
        (added("/app/deep/er/tests/__init__.py"), "tests"),
        (added("/root/.config/pip/pip.conf"), "pip-settings"),
        (added("/root/.curlrc"), "home-settings"),
        (added("/root/.bash_history"), None),
        (added("/root/.cache/x/y"), None),
        (added("/srv/g/hooks/post-checkout"), "git"),
        (added("/app/.git/hooks/pre-commit.sample"), None),
        (added("/usr/lib/python3.11/sitecustomize.py"), "python-start"),
        (added("/usr/lib/python3.11/json/decoder/__init__.py"), "python-library"),
        (added("/usr/local/lib/python3.11/dist-packages/mine/__init__.py"), None),
        (added("/tmp/out.log"), None),
        (added("/tmp/a/b", 0o755), "temporary-programs"),
        (added("/app/bin/cat", 0o755), "hides-command"),
        (added("/app/bin/cat"), None),
        (added("/app/bin/mine", 0o755), None),
        (added("/app/json.py"), "hides-python-module"),
        (added("/app/image_package/json.py"), None),
        (added("/app/lib/libz.so.1"), "hides-library"),
        (added("/app/lib/strict.pm"), "hides-perl-module"),
        (added("/app/p", 0o4755), "rights"),
        (added("/app/p", 0o2755), "rights"),
        (added("/app/a", type="link", target="/tests/expected.txt"), "link"),
        (added("/app/a", type="link", target="/dev/stdin"), "link"),
        (added("/app/a", type="link", target="b"), None),
        (added("/app/expected.txt", type="link", target="a"), "link-in-the-way"),
        (added("/tmp/out.txt", type="link", target="/app/a"), "temporary-programs"),
        (added("/app/package.json"), None),
        (Change("/app/package.json", "modified"), "build-files"),
        (Change("/app/main.py", "modified"), None),
        (Change("/usr/bin/grep", "deleted"), "program"),
        (Change("/usr/share/doc/x/README", "modified"), None),
        (Change("/usr/bin", "modified", type="dir", mode=0o777), "rights"),
        (Change("/app/.git", "modified", type="file", was="dir"), "git-folder"),
        (Change("/app/venv/lib/python3.11/site-packages/x.py", "modified"), "program"),
        (Change("/etc/demo.conf", "modified"), None),
    ],
    ids=lambda value: value.path if isinstance(value, Change) else str(value),
)
def test_what_a_clean_reading_undoes(change: Change, row: str | None) -> None:
    assert undone(change).get(change.path) == row


def test_a_package_of_the_agents_that_hides_one_is_undone_whole() -> None:
    folder = Change("/app/pytest", "added", type="dir")
    assert undone(folder, added("/app/pytest/__init__.py")) == {"/app/pytest": "hides-python-module"}
    assert undone(added("/app/own/__init__.py"), added("/app/own/json.py")) == {}, "inside a package it hides nothing"


def test_a_changed_package_of_the_image_is_put_back_whole() -> None:
    site = "/usr/lib/python3/dist-packages"
    changes = (
        Change(f"{site}/requests/api.py", "modified"),
        added(f"{site}/requests/new.py"),
        Change(f"{site}/requests-1.0.dist-info/METADATA", "deleted"),
        added(f"{site}/requests-2.0.dist-info/METADATA"),
        added(f"{site}/another/__init__.py"),
    )
    found = judge(changes, PLACES, NAMES).undos
    assert {undo.path for undo in found} == {change.path for change in changes[:4]}
    assert {undo.unit for undo in found} == {"package:requests"}


def test_compiled_copies_without_a_source_of_the_agents_are_in_no_reading() -> None:
    orphan, own = "/usr/lib/python3/x/__pycache__/a.cpython-311.pyc", "/app/__pycache__/m.cpython-311.pyc"
    found = judge((added(own), added("/app/m.py"), added(orphan)), PLACES, NAMES)
    assert found.always == (orphan,) and not found.undos
    stale = "/app/__pycache__/test_a.cpython-311.pyc"
    assert undone(added(stale), added("/app/test_a.py")) == {stale: "tests", "/app/test_a.py": "tests"}


def test_the_verifiers_own_folders_are_new_in_every_reading() -> None:
    found = judge((added("/tests/conftest.py"), Change("/logs", "modified", type="link", target="/app")), PLACES, NAMES)
    assert found.always == ("/tests/conftest.py", "/logs") and not found.undos


def test_ten_thousand_changes_are_judged_in_under_a_second() -> None:
    folders = ("/app/src/deep/er", "/usr/lib/python3.11/dist-packages/x/y", "/root/.cache/x", "/opt/tool/share")
    changes = [added(f"{folder}/part{n // 50}/file{n}.py") for folder in folders for n in range(2500)]
    began = time.process_time()
    judge(changes, PLACES, NAMES)
    assert time.process_time() - began < 1.0


def _undo(unit: str) -> Undo:
    return Undo(f"/{unit}", "added", "row", "why", unit)


@pytest.mark.asyncio
@pytest.mark.parametrize("guilty", [{"u3"}, {"u0"}, {"u40"}, {"u7", "u33"}])
async def test_culprits_are_found_by_halving_within_the_runs(guilty: set[str]) -> None:
    runs = 0

    async def differs(some: Sequence[Undo]) -> bool:
        nonlocal runs
        runs += 1
        return guilty <= {undo.unit for undo in some}

    found = await find_culprits([_undo(f"u{n}") for n in range(41)], differs, most=12)
    assert guilty <= {undo.unit for undo in found} and runs <= 12
    assert len(guilty) > 1 or {undo.unit for undo in found} == guilty
    runs = 0
    found = await find_culprits([_undo(f"u{n}") for n in range(1000)], differs)
    assert runs <= 8 and guilty <= {undo.unit for undo in found}


def test_a_solution_covers_the_same_files_packages_and_rows() -> None:
    site = "/usr/lib/python3/dist-packages"
    reference = ReferenceRun(
        (
            added("/etc/pip.conf"),
            Change(f"{site}/requests/api.py", "modified"),
            added("/app/venv/bin/python3", type="link", target="/usr/bin/python3"),
            added("/root/.curlrc"),
        ),
        {"reward": 1.0},
        "sha256:0",
    )
    mine = (
        added("/root/.config/pip/pip.conf"),
        Change(f"{site}/requests/models.py", "modified"),
        added("/app/.venv/bin/python3", type="link", target="/usr/bin/python3"),
        added("/root/.vimrc"),
        Change("/usr/bin/grep", "modified"),
    )
    covered, rest = split_covered(judge(mine, PLACES, NAMES).undos, reference, PLACES, NAMES)
    assert {undo.path for undo in covered} == {change.path for change in mine[:3]}
    assert {undo.path for undo in rest} == {"/root/.vimrc", "/usr/bin/grep"}


def test_a_link_to_the_tests_is_not_covered_by_the_answer_that_the_solution_writes() -> None:
    reference = ReferenceRun((added("/app/answer.txt"),), {"reward": 1.0}, "sha256:0")
    cheat = judge((added("/app/answer.txt", type="link", target="/tests/expected.txt"),), PLACES, NAMES)
    assert split_covered(cheat.undos, reference, PLACES, NAMES) == ([], list(cheat.undos))
