"""Bundles: nothing secret leaves, the same job gives the same bytes, and what comes in is not trusted."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from benchflow_command_results.bundle import read_bundle, write_bundle

from benchflow_core.errors import ConfigurationError
from benchflow_core.results.redact import Cleaner, Redactor

SECRET = "very-secret-value"
KEY = "sk-ant-" + "a1B2" * 8


@pytest.fixture
def job(tmp_path: Path) -> Path:
    root = tmp_path / "jobs" / "j"
    (root / "r__1" / "agent").mkdir(parents=True)
    (root / "summary.json").write_text("{}")
    (root / "r__1" / "result.json").write_text(
        json.dumps({"task_name": "t", "path": "/home/me/tasks/t", "home": "/home/men"})
    )
    (root / "r__1" / "agent" / "log.bin").write_bytes(b"\x00\xff" + SECRET.encode() + b"\x01" + KEY.encode())
    (root / "r__1" / "state.json").write_text("{}")
    (root / ".hidden").write_text("x")
    (root / "link").symlink_to("/etc/passwd")
    return root


def pack(job: Path, target: Path) -> dict:
    return write_bundle(job, target, Cleaner(Redactor([SECRET]), "/home/me"))


def test_there_and_back(job, tmp_path):
    made = pack(job, tmp_path / "a.zip")
    target, read = read_bundle(tmp_path / "a.zip", tmp_path / "elsewhere")
    assert target == tmp_path / "elsewhere" / "j" and made["digest"] == read["digest"]
    files = sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file())
    assert files == ["r__1/agent/log.bin", "r__1/result.json", "summary.json"]
    assert json.loads((target / "r__1/result.json").read_text()) == {
        "task_name": "t",
        "path": "~/tasks/t",
        "home": "/home/men",
    }
    assert (target / "r__1/agent/log.bin").read_bytes() == b"\x00\xff[redacted]\x01[redacted]"
    assert sorted(made["redacted"]) == ["r__1/agent/log.bin", "r__1/result.json"]
    assert [p.name for p in (tmp_path / "elsewhere").iterdir()] == ["j"], "nothing else is left"


def test_the_same_job_gives_the_same_bytes(job, tmp_path):
    pack(job, tmp_path / "a.zip")
    (job / "summary.json").touch()
    pack(job, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    (job / "summary.json").write_text("{ }")
    pack(job, tmp_path / "c.zip")
    assert (tmp_path / "a.zip").read_bytes() != (tmp_path / "c.zip").read_bytes()


def test_nothing_is_overwritten(job, tmp_path):
    pack(job, tmp_path / "a.zip")
    with pytest.raises(ConfigurationError, match="already exists"):
        read_bundle(tmp_path / "a.zip", job.parent)
    assert read_bundle(tmp_path / "a.zip", job.parent, "other")[0].name == "other"
    for name in ("../x", "a/b", ".x", ""):
        with pytest.raises(ConfigurationError):
            read_bundle(tmp_path / "a.zip", tmp_path / "new", name or "..")


def forge(source: Path, target: Path, *, manifest=None, members=None, drop=()) -> Path:
    """The bundle again, with changes."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        data = json.loads(old.read("bundle.json"))
        new.writestr("bundle.json", json.dumps(manifest(data) if manifest else data))
        for name in old.namelist()[1:]:
            if name not in drop:
                new.writestr(name, (members or {}).get(name, old.read(name)))
        for name, content in (members or {}).items():
            if name not in old.namelist():
                new.writestr(name, content)
    return target


def listed(path: str):
    def change(data: dict) -> dict:
        return {**data, "files": [{**data["files"][0], "path": path}, *data["files"][1:]]}

    return change


@pytest.mark.parametrize(
    "changes",
    [
        {"members": {"files/summary.json": b"[]"}},
        {"members": {"files/extra": b"x"}},
        {"members": {"outside": b"x"}},
        {"drop": ("files/summary.json",)},
        {"manifest": listed("../up")},
        {"manifest": listed("/etc/x")},
        {"manifest": listed("a/../../x")},
        {"manifest": listed("a//b")},
        {"manifest": listed("a\\b")},
        {"manifest": listed("")},
        {"manifest": listed("r__1/state.json"), "members": {"files/r__1/state.json": b"{}"}},
        {"manifest": lambda d: {**d, "files": d["files"] * 2}},
        {"manifest": lambda d: {**d, "files": [{**f, "size": 10**12} for f in d["files"]]}},
        {"manifest": lambda d: {**d, "files": [{**f, "size": -1} for f in d["files"]]}},
        {"manifest": lambda d: {**d, "schema_version": "9"}},
        {"manifest": lambda d: {**d, "job_name": "../../x"}},
        {"manifest": lambda d: {**d, "job_name": 3}},
        {"manifest": lambda d: []},
    ],
)
def test_what_is_not_as_the_manifest_says_is_refused_and_leaves_nothing(job, tmp_path, changes):
    pack(job, tmp_path / "a.zip")
    forged = forge(tmp_path / "a.zip", tmp_path / "forged.zip", **changes)
    inside = tmp_path / "deep" / "jobs"
    with pytest.raises(ConfigurationError):
        read_bundle(forged, inside)
    assert list(inside.iterdir()) == [] and sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["jobs"]


@pytest.mark.parametrize("content", [b"", b"PK", b"nonsense" * 100])
def test_other_files_are_one_clear_line(tmp_path, content):
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(ConfigurationError, match="not a bundle"):
        read_bundle(tmp_path / "x.zip", tmp_path / "jobs")


def test_a_damaged_bundle_is_refused(job, tmp_path):
    pack(job, tmp_path / "a.zip")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    at = data.index(b"files/r__1/result.json") + 60
    data[at] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(ConfigurationError):
        read_bundle(tmp_path / "a.zip", tmp_path / "new")
