"""Where LiteLLM lives, and what is said when it is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from benchflow_service_litellm import environment
from benchflow_service_litellm.environment import COMMAND, LiteLLMEnvironment
from benchflow_service_litellm.settings import workers_for

from benchflow_core.errors import ConfigurationError


def test_the_folder_is_named_after_the_pins(tmp_path: Path) -> None:
    found = LiteLLMEnvironment.of({"BENCHFLOW_CACHE": str(tmp_path)})
    assert found.home.parent == tmp_path / "litellm" and found.home.name.startswith("1.106.2-")
    assert not found.installed
    check = found.check()
    assert (check.status, check.remedy) == ("warn", COMMAND) and found.available().ok
    assert "first use" in found.available().reason


def test_a_folder_of_the_users_must_have_it(tmp_path: Path) -> None:
    found = LiteLLMEnvironment.of({"BENCHFLOW_LITELLM_HOME": str(tmp_path / "nothing")})
    assert not found.available().ok and found.check().status == "fail"
    assert "BENCHFLOW_LITELLM_HOME" in found.available().reason and COMMAND in found.available().remedy
    (tmp_path / "nothing" / "bin").mkdir(parents=True)
    (tmp_path / "nothing" / "bin" / "litellm").touch()
    assert found.available().ok and found.check().status == "ok"


def test_an_install_that_fails_leaves_nothing_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "requirements.txt"
    broken.write_text("litellm==0.0.0+none --hash=sha256:00\n")
    monkeypatch.setattr(environment, "_REQUIREMENTS", broken)
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    found = LiteLLMEnvironment.of({"BENCHFLOW_CACHE": str(tmp_path / "cache")})
    with pytest.raises(ConfigurationError) as caught:
        found.ensure()
    assert "could not be installed" in caught.value.message and COMMAND in (caught.value.remedy or "")
    assert not found.home.exists() and not found.installed


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(ConfigurationError, match="not empty"):
        LiteLLMEnvironment.of({"BENCHFLOW_LITELLM_HOME": str(tmp_path)}).ensure()
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_the_command_says_where_it_is(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "benchflow_service_litellm", "where"]
    done = subprocess.run(argv, env={"BENCHFLOW_CACHE": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout.startswith(str(tmp_path / "litellm"))


@pytest.mark.parametrize(
    ("concurrency", "cores", "asked", "expected"),
    [(1, 8, None, 1), (16, 8, None, 1), (17, 8, None, 2), (500, 8, None, 8), (500, 2, None, 2), (1, 2, "5", 5)],
)
def test_workers_follow_the_concurrency(concurrency: int, cores: int, asked: str | None, expected: int) -> None:
    assert workers_for(concurrency, cores, asked) == expected


def test_every_requirement_is_pinned_with_hashes() -> None:
    lines = environment._REQUIREMENTS.read_text().splitlines()
    named = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert len(named) > 50 and all("==" in line and line.endswith("\\") for line in named)
