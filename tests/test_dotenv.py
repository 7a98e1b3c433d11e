"""`.env`: read as a shell would, without expansion, and never over what is set."""

from __future__ import annotations

import pytest

from benchflow_core.dotenv import user_env
from benchflow_core.errors import ConfigurationError


def test_values_quotes_comments_and_precedence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(
        '# a comment\nexport A=1\nB=\'two $x\'  # no\nC="three\\n\\"q\\""\nD=four # comment\nE=\nF = six\nTAKEN=file\n'
    )
    env = user_env({"TAKEN": "set", "PATH": "/bin"})
    assert {k: env[k] for k in "ABCDEF"} == {
        "A": "1",
        "B": "two $x",
        "C": 'three\n"q"',
        "D": "four",
        "E": "",
        "F": "six",
    }
    assert env["TAKEN"] == "set"


def test_no_file_another_file_and_a_broken_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert user_env({"A": "1"}) == {"A": "1"}
    (tmp_path / "other").write_text("B=2")
    assert user_env({"BENCHFLOW_DOTENV_PATH": "other"})["B"] == "2"
    (tmp_path / ".env").write_text("GOOD=1\nnot a line\n")
    with pytest.raises(ConfigurationError, match=r"\.env, line 2"):
        user_env({})
    assert user_env({"BENCHFLOW_DOTENV_PATH": ""}) == {"BENCHFLOW_DOTENV_PATH": ""}
    with pytest.raises(ConfigurationError, match="not a file"):
        user_env({"BENCHFLOW_DOTENV_PATH": "missing"})
