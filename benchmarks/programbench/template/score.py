"""Builds what the agent left and runs ProgramBench's tests on it; the reward is the share that passed.

Runs in the box with the Python that is there, so only the standard library is used. If the tests cannot be had, it ends
without a reward: that says nothing about the agent.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import xml.etree.ElementTree as xml
from pathlib import Path

TESTS = Path(__file__).resolve().parent
WORKSPACE = Path("/workspace")
LOGS = Path("/logs/verifier")
ARCHIVES = "https://huggingface.co/datasets/programbench/ProgramBench-Tests/resolve/main"
BUILD_SECONDS, BRANCH_SECONDS = 900, 3600
RESOLVER = Path("/etc/resolv.conf")


def main() -> int:
    spec = json.loads((TESTS / "spec.json").read_text())
    with tempfile.TemporaryDirectory(prefix="programbench-") as scratch:
        try:
            archives = {branch: archive(spec, branch, Path(scratch)) for branch in spec["branches"]}
        except OSError as error:
            print(f"the tests of {spec['id']} cannot be had: {error}", file=sys.stderr)
            return 1
        outputs: dict[str, str | None] = dict.fromkeys(archives)
        error = build(spec["clean_hashes"])
        if error is None:
            built = Path(scratch) / "built"
            subprocess.run(["cp", "-a", WORKSPACE, built], check=True)
            for branch, packed in archives.items():
                outputs[branch] = run_branch(branch, packed, built)
    reward, counts = score(spec["branches"], outputs)
    report = {"error": error, "reward": reward, "branches": counts}
    (LOGS / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (LOGS / "reward.txt").write_text(f"{reward}\n")
    print(error or "", json.dumps(counts))
    return 0


def archive(spec: dict, branch: str, scratch: Path) -> Path:
    """The packed tests of a branch, from the task or from where ProgramBench keeps them."""
    if spec["embedded"]:
        return TESTS / "blobs" / f"{branch}.tar.gz"
    target = scratch / f"{branch}.tar.gz"
    with urllib.request.urlopen(f"{ARCHIVES}/{spec['id']}/tests/{branch}.tar.gz", timeout=300) as answer:
        target.write_bytes(answer.read())
    return target


def build(clean_hashes: list[str]) -> str | None:
    """Run compile.sh without copies of the original program and without names of hosts; what went wrong."""
    for path in list(WORKSPACE.rglob("*")):
        if clean_hashes and path.is_file() and not path.is_symlink() and digest(path) in clean_hashes:
            path.unlink()
    executable = WORKSPACE / "executable"
    executable.unlink(missing_ok=True)
    script = WORKSPACE / "compile.sh"
    if not script.is_file():
        return "no compile.sh"
    script.chmod(script.stat().st_mode | 0o755)
    seed_git()
    hosts = RESOLVER.read_bytes() if RESOLVER.is_file() and os.access(RESOLVER, os.W_OK) else None
    if hosts is not None:
        RESOLVER.write_text("nameserver 0.0.0.0\n")
    try:
        code = run(["./compile.sh"], BUILD_SECONDS, "compile.log")
    finally:
        if hosts is not None:
            RESOLVER.write_bytes(hosts)
    if code != 0:
        return "compile.sh took too long" if code is None else f"compile.sh ended with {code}"
    if not executable.is_file():
        return "compile.sh made no executable"
    executable.chmod(0o755)
    return None


def seed_git() -> None:
    """Some builds ask git for a version; the commit is the same every time."""
    if (WORKSPACE / ".git").exists() or not shutil.which("git"):
        return
    date = "2000-01-01T00:00:00Z"
    names = {f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in
             (("DATE", date), ("NAME", "submission"), ("EMAIL", "submission@localhost"))}  # fmt: skip
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-q", "--allow-empty", "-m", "submission"]):
        subprocess.run(["git", *args], cwd=WORKSPACE, env={**os.environ, **names}, check=False)


def run_branch(branch: str, packed: Path, built: Path) -> str | None:
    """The JUnit report of one branch. A crashed worker is given a second try, with one worker."""
    best: str | None = None
    for workers in (None, "1"):
        for entry in WORKSPACE.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        subprocess.run(["cp", "-a", f"{built}/.", WORKSPACE], check=True)
        subprocess.run(["tar", "-xzf", packed, "--no-same-owner", "-C", WORKSPACE], check=True)
        executable = WORKSPACE / "executable"
        executable.unlink(missing_ok=True)
        subprocess.run(["cp", "-p", built / "executable", executable], check=True)
        report, script = WORKSPACE / "eval/results.xml", WORKSPACE / "eval/run.sh"
        report.unlink(missing_ok=True)
        # By signal, a test that takes too long fails; by thread it takes the other tests of its worker with it.
        script.write_text(script.read_text().replace("--timeout-method=thread", "--timeout-method=signal"))
        script.chmod(0o755)
        more = {"PYTEST_ADDOPTS": "--max-worker-restart=4"}
        more |= {"PYTEST_XDIST_AUTO_NUM_WORKERS": workers} if workers else {}
        run(["./eval/run.sh"], BRANCH_SECONDS, f"{branch}.log", more)
        text = report.read_text("utf-8", "replace") if report.is_file() else None
        if best is None or (text is not None and useful(text) > useful(best)):
            best = text
        if text is not None and not crashes(text):
            break
    if best is not None:
        (LOGS / f"{branch}.xml").write_text(best)
    return best


def score(branches: dict, outputs: dict[str, str | None]) -> tuple[float, dict]:
    """ProgramBench's rule: passed of reported and missing tests, those ignored left out; an unreadable report is 0."""
    counts = {}
    for branch, names in branches.items():
        ignored, text = set(names["ignored"]), outputs[branch]
        try:
            reported = [] if text is None else cases(text)
        except xml.ParseError as error:
            return 0.0, {branch: {"unreadable": str(error)}}
        counted = [(name, passed) for name, passed in reported if name not in ignored]
        seen = ignored | {name for name, _ in reported}
        missing = [name for name in names["tests"] if name not in seen]
        passed = sum(passed for _, passed in counted)
        counts[branch] = {"passed": passed, "total": len(counted) + len(missing), "missing": len(missing)}
    total = sum(branch["total"] for branch in counts.values())
    return (sum(branch["passed"] for branch in counts.values()) / total if total else 0.0), counts


def cases(text: str) -> list[tuple[str, bool]]:
    """Every test of a JUnit report and whether it passed: it has neither failure nor error, and was not skipped."""
    found = []
    for case in xml.fromstring(text).iter("testcase"):
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        if name:
            found.append((name, not any(child.tag in ("failure", "error", "skipped") for child in case)))
    return found


def crashes(text: str) -> int:
    try:
        bad = [child for case in xml.fromstring(text).iter("testcase") for child in case]
    except xml.ParseError:
        return 0
    words = [f"{child.get('message')} {child.text}" for child in bad if child.tag in ("failure", "error")]
    return sum("worker '" in said and "crashed" in said for said in words)


def useful(text: str) -> int:
    try:
        return len(cases(text)) - crashes(text)
    except xml.ParseError:
        return -1


def run(argv: list[str], seconds: float, log: str, more: dict[str, str] | None = None) -> int | None:
    """Run in the workspace, with its own log; the exit code, or None when time was up."""
    with (LOGS / log).open("wb") as output:
        process = subprocess.Popen(
            argv,
            cwd=WORKSPACE,
            env={**os.environ, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return None


def digest(path: Path) -> str:
    made = hashlib.sha256()
    with path.open("rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            made.update(piece)
    return made.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
