"""`check` explains: file, line, what is wrong, what to do. Below `live` nothing of the task runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchflow_command_authoring.check import check_task, live_findings

from benchflow_core.cli.core import CoreOfCommands
from benchflow_core.contracts.adapters import Finding

CORE = CoreOfCommands()


def found(folder: Path, level: str = "structural") -> dict[str, Finding]:
    return {finding.code: finding for finding in check_task(CORE, folder, level)}


def test_a_good_task_has_no_findings(make_task) -> None:
    assert check_task(CORE, make_task()) == []


CASES = {
    "missing-tests": ({"tests/test.sh": None}, "error", "tests/test.sh", None),
    "syntax": ({"task.toml": "a = \n"}, "error", "task.toml", 1),
    "notice": ({"task.toml": "[agent]\ntimeout = 5\n"}, "warning", "task.toml", 2),
    "no-instruction": ({"instruction.md": " \n"}, "error", ".", None),
    "placeholder": ({"solution/solve.sh": "#!/bin/sh\n\n# [REPLACE: this]\n"}, "error", "solution/solve.sh", 3),
    "crlf": ({"tests/test.sh": "#!/bin/sh\r\necho reward\r\n"}, "error", "tests/test.sh", 1),
    "no-shebang": ({"tests/test.sh": "echo reward\n"}, "warning", "tests/test.sh", 1),
    "no-solution": ({"solution/solve.sh": None}, "warning", ".", None),
    "no-reward-seen": ({"tests/test.sh": "#!/bin/sh\ntrue\n"}, "info", "tests", None),
    "unpinned-image": (
        {"environment/Dockerfile": "FROM debian:12 AS base\nFROM base\nFROM ubuntu\n"},
        "info",
        "environment/Dockerfile",
        3,
    ),
    "copy-outside": (
        {"environment/Dockerfile": "FROM debian:12\nCOPY --chown=1 a ../solution/solve.sh /x\n"},
        "error",
        "environment/Dockerfile",
        2,
    ),
    "leak": ({"environment/answer.sh": "#!/bin/sh\ntrue\n"}, "warning", "environment/answer.sh", None),
    "junk": ({"tests/__pycache__/x.pyc": "x"}, "info", "tests/__pycache__", None),
    "no-image": ({"environment/Dockerfile": None, "environment/x": "x"}, "error", ".", None),
}


@pytest.mark.parametrize("code", CASES)
def test_each_finding_names_its_place(make_task, code: str) -> None:
    files, severity, place, line = CASES[code]
    folder = make_task(files=files)
    finding = found(folder)[code]
    assert (finding.severity, finding.file, finding.line) == (severity, folder / place, line)
    assert finding.message and not finding.message.endswith(".")


def test_every_problem_of_a_config_is_its_own_finding(make_task) -> None:
    findings = check_task(CORE, make_task(files={"task.toml": '[environment]\ncpus = "a"\ngpus = "b"\n'}))
    assert [(f.severity, f.line) for f in findings] == [("error", 2), ("error", 3)]


def test_schema_looks_at_the_config_alone(make_task) -> None:
    folder = make_task(files={"solution/solve.sh": None})
    assert check_task(CORE, folder, "schema") == []
    assert [f.code for f in check_task(CORE, folder, "structural")] == ["no-solution"]


def test_errors_come_first(make_task) -> None:
    files = {"solution/solve.sh": None, "instruction.md": "", "environment/Dockerfile": "FROM debian\n"}
    assert [f.severity for f in check_task(CORE, make_task(files=files))] == ["error", "warning", "info"]


def test_a_link_out_of_the_tests_is_an_error(make_task) -> None:
    folder = make_task()
    (folder / "tests" / "x").symlink_to("/etc/passwd")
    finding = found(folder)["link-outside"]
    assert finding.severity == "error" and finding.remedy == "Copy the file into the task."


def test_nothing_is_executed(make_task, tmp_path: Path) -> None:
    trap = f"#!/bin/sh\ntouch {tmp_path}/ran; echo reward\n"
    files = dict.fromkeys(["tests/test.sh", "solution/solve.sh", "environment/benchflow-pre-compose.sh"], trap)
    check_task(
        CORE, make_task(files={**files, "tests/conftest.py": f"open('{tmp_path}/ran', 'w')"}), "runtime-capability"
    )
    assert not (tmp_path / "ran").exists()


def test_needs_against_a_sandbox(make_task) -> None:
    from benchflow_core.plugins import registry
    from benchflow_core.rollout.choose import sandbox_capabilities

    here = [s for s in registry().all("sandbox") if s.spec.available().ok]
    sandbox = next(s.name for s in here if "gpu" not in sandbox_capabilities(s))
    folder = make_task(files={"task.toml": '[environment]\nos = "windows"\ngpus = 8\n', "tests/test.bat": "x"})
    errors = [
        f for f in check_task(CORE, folder, "runtime-capability", sandbox=sandbox) if f.code == "missing-capability"
    ]
    assert any("gpu" in f.message and sandbox in f.message for f in errors)
    assert "no-sandbox" in found(folder, "runtime-capability")


def test_a_substitute_may_stand_for_the_image(make_task) -> None:
    from benchflow_core.plugins import registry

    for sandbox in registry().all("sandbox"):
        declared = sandbox.spec.capabilities
        if "image-build" not in (declared() if callable(declared) else declared) and sandbox.spec.available().ok:
            break
    else:
        pytest.skip("every sandbox here builds images")
    folder = make_task()
    assert "--allow-substitute" in found(folder, "runtime-capability")["missing-capability"].remedy
    allowed = check_task(CORE, folder, "runtime-capability", sandbox=sandbox.name, allow_substitute=True)
    assert not [finding for finding in allowed if finding.severity == "error"]
    (folder / "environment/Dockerfile").write_text("FROM a:1\nONBUILD RUN x\n")
    (folder / "trajectory.json").write_text("{}")
    findings = check_task(CORE, folder, "runtime-capability", sandbox=sandbox.name, allow_substitute=True)
    codes = {f.code: f.message for f in findings if f.severity != "info"}
    assert "Dockerfile:2: ONBUILD" in codes["refused"] and "prior-conversation" in codes


def test_unknown_method_and_host_variables(make_task) -> None:
    judged = "---\nverifier:\n  strategies:\n    main: {type: reward-kit, root: kit}\n---\n"
    config = '---\nname: demo\nimage: img:1\nverifier: {env: {K: "${JUDGE_KEY}"}}\n---\n\nDo it.\n'
    files = {
        "task.toml": None,
        "task.md": config,
        "verifier/verifier.md": judged,
        "verifier/kit/x": "",
        "tests/test.sh": None,
    }
    findings = found(make_task(files=files), "runtime-capability")
    assert "reward-kit" in findings["no-verifier"].message
    assert findings["host-variable"].remedy == "Allow it with --allow-env JUDGE_KEY."


def run(reward: float | None, error: str | None = None) -> dict[str, object]:
    return {"reward": reward, "error": error, "verifier_error": None, "findings": []}


@pytest.mark.parametrize(
    ("reference", "idle", "expected"),
    [
        (run(0.5), run(0), "under fresh: the reference solution earns 0.5, not 1"),
        (run(1), run(1), "under fresh: an agent that does nothing earns 1"),
        (run(None, "boom"), run(0), "under fresh: the reference solution ended with: boom"),
    ],
)
def test_what_a_live_run_says(tmp_path: Path, reference, idle, expected: str) -> None:
    fresh = {"reference": reference, "null": idle, "works": False}
    report = {"sandbox": "s", "certified": False, "policies": {"fresh": fresh}}
    (finding,) = live_findings(report, tmp_path)
    assert (finding.severity, finding.message) == ("error", expected)


def test_a_task_that_works_under_a_weaker_policy_only(tmp_path: Path) -> None:
    good = {"reference": run(1), "null": run(0), "works": True}
    bad = {"reference": run(0), "null": run(0), "works": False}
    report = {"sandbox": "s", "certified": True, "policies": {"fresh": bad, "shared": good}}
    assert [(f.severity, f.code) for f in live_findings(report, tmp_path)] == [
        ("warning", "live"),
        ("info", "certified"),
    ]
