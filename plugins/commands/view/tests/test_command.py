"""The command: its names, its mistakes, and the conformance suite."""

from __future__ import annotations

import json
import subprocess

import pytest
from benchflow_testing_kit import CommandConformance

from .conftest import BENCH, TALK, make_rollout


def bench(*args, cwd=None, env=None):
    return subprocess.run([BENCH, *map(str, args)], cwd=cwd, env=env, capture_output=True, text=True, timeout=60)


class TestView(CommandConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "view"


@pytest.mark.parametrize("words", [["view"], ["eval", "view"]])
def test_it_answers_under_both_names(words):
    done = bench(*words, "--help")
    assert done.returncode == 0 and "--export" in done.stdout and "--no-open" in done.stdout
    listed = bench(*words[:-1], "--help").stdout
    assert "view " in listed and "eval.view" not in listed


def test_mistakes_are_one_line(tmp_path, view_env, jobs):
    (tmp_path / "empty").mkdir()
    (tmp_path / "data.jsonl").write_text("")
    for args, expected in [
        (["nowhere"], "there is no job or rollout 'nowhere'"),
        ([tmp_path / "empty"], "holds no job and no rollout"),
        ([tmp_path / "data.jsonl", jobs], "a session file is opened by itself"),
        ([jobs, "--port", "70000"], "70000"),
        ([jobs, "--export", tmp_path / "data.jsonl" / "x.html"], "cannot write"),
        ([jobs, "--export", jobs], "is not empty and no earlier export"),
    ]:
        done = bench("view", *args, "--no-open", cwd=tmp_path, env=view_env)
        assert done.returncode != 0 and done.stdout == "", (args, done)
        [line] = done.stderr.splitlines()
        assert line.startswith("error: ") and expected in line, (args, done.stderr)


def test_a_taken_port_is_said(view_env, jobs):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = bench("view", jobs, "--no-open", "--port", taken.getsockname()[1], env=view_env)
    assert done.returncode != 0 and "cannot listen on port" in done.stderr


def test_json_is_one_document(view_env, jobs):
    command = [BENCH, "--json", "view", jobs, "--no-open"]
    process = subprocess.Popen(command, env=view_env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told = json.loads(process.stdout.readline())
    process.terminate()
    process.communicate(timeout=20)
    assert told["url"].startswith(f"http://127.0.0.1:{told['port']}/")


def test_what_is_opened_decides_the_first_page(tmp_path, jobs):
    from benchflow_command_view.catalogue import JobCatalogue

    from benchflow_core.evaluation.stored import results_reader

    def first(*paths):
        return JobCatalogue(results_reader(), paths).opens

    assert first(jobs) == "/jobs"
    assert first(jobs / "before") == "/job/before"
    assert first(jobs / "before" / "alpha__00000001") == "/rollout/before/alpha__00000001"
    assert first(jobs / "before", jobs / "after") == "/compare/before+after"
    session = tmp_path / "session.jsonl"
    session.write_text("{}\n")
    assert first(session) == "/rollout/session/session.jsonl"
    older = tmp_path / "tb2" / "my-trial"
    (older / "trajectory").mkdir(parents=True)
    (older / "trajectory" / "acp_trajectory.jsonl").write_text('{"type": "agent_message", "text": "hi"}\n')
    assert first(older) == "/rollout/tb2/my-trial"


def test_two_folders_of_one_name_have_two_addresses(tmp_path):
    from benchflow_command_view.catalogue import JobCatalogue

    from benchflow_core.evaluation.stored import results_reader

    for parent in ("x", "y"):
        make_rollout(tmp_path / parent / "job", "t__1", TALK)
    found = JobCatalogue(results_reader(), [tmp_path / "x" / "job", tmp_path / "y" / "job"]).jobs()
    assert list(found) == ["job", "job~2"] and {place.path.parent.name for place in found.values()} == {"x", "y"}
