"""Shell completion, asked the way the shells ask."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def completions(fake_bench, words: str, fakes=(), env=None) -> list[str]:
    count = str(len(words.split()) - (not words.endswith(" ")))
    asked = {"_BENCH_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": count, **(env or {})}
    ran = fake_bench(fakes=fakes, env=asked)
    assert ran.err == ""
    return [line.partition(",")[2] for line in ran.out.splitlines() if line]


def test_commands_and_options(fake_bench):
    assert completions(fake_bench, "bench plug") == ["plugins"]
    assert completions(fake_bench, "bench plugins ") == ["list"]
    assert completions(fake_bench, "bench hel", ["command"]) == ["hello"]
    assert "--requirements" in completions(fake_bench, "bench plugins list --")
    assert completions(fake_bench, "bench plugins list --kind sa") == ["sandbox"]


def test_plugin_names_come_from_metadata_and_respect_blocks(fake_bench):
    fakes = ["multi", "slow", "raises", "malformed", fake_bench.authoring]
    assert completions(fake_bench, "bench plugins show mul", fakes) == ["multi", "multi-too"]
    assert completions(fake_bench, "bench plugins show raise", fakes) == ["raises"]
    assert completions(fake_bench, "bench -p no:raises plugins show raise", fakes) == []


def test_a_broken_command_of_a_plugin_does_not_disturb(fake_bench):
    assert completions(fake_bench, "bench bad-b", ["command"]) == ["bad-build"]
    assert "--name" not in completions(fake_bench, "bench bad-build --", ["command"])


def test_plugin_name_and_task_path(fake_bench, tmp_path):
    """The two helpers for other commands, through a command that uses them."""
    (tmp_path / "completes.py").write_text(
        """
import click
from pathlib import Path
from benchflow_core.cli.completion import plugin_name, task_path
from benchflow_core.contracts import AdapterSpec, CommandSpec
from benchflow_core.hookspecs import hookimpl

@hookimpl
def benchflow_adapter():
    return AdapterSpec(summary="x", signature="x", detect=lambda p: (p / "is-task").exists(), load=lambda p: None)

@hookimpl
def benchflow_command():
    @click.command()
    @click.option("-a", shell_complete=plugin_name("agent"))
    @click.argument("task", shell_complete=task_path)
    def completes(a, task): ...
    return CommandSpec(summary="x", build=lambda: completes)
"""
    )
    info = tmp_path / "completes-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(
        "[benchflow.commands]\ncompletes = completes\n[benchflow.adapters]\nx = completes\n".replace("\\\n", "\n")
    )
    for name in ("tasks/one", "tasks/two", "tasks/other"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("one", "two"):
        (tmp_path / "tasks" / name / "is-task").touch()
    path = f"{fake_bench.env(['multi', 'wrapper'])['PYTHONPATH']}:{tmp_path}"
    env = {"PYTHONPATH": path}
    assert completions(fake_bench, "bench completes -a mu", env=env) == ["multi", "multi-too"]
    assert completions(fake_bench, "bench completes -a wrapper/mu", env=env) == ["wrapper/multi", "wrapper/multi-too"]
    assert completions(fake_bench, f"bench completes {tmp_path}/tasks/", env=env) == [
        f"{tmp_path}/tasks/one",
        f"{tmp_path}/tasks/two",
    ]
    assert completions(fake_bench, f"bench completes {tmp_path}/tasks/tw", env=env) == [f"{tmp_path}/tasks/two"]
    assert completions(fake_bench, f"bench completes {tmp_path}/ta", env=env) == [f"{tmp_path}/ta"]
    assert completions(fake_bench, "bench completes /nowhere/at/all", env=env) == ["/nowhere/at/all"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(fake_bench, shell):
    ran = fake_bench("completion", shell)
    assert ran.code == 0 and ran.err == ""
    assert "_BENCH_COMPLETE" in ran.out and "_BENCHFLOW_COMPLETE" in ran.out
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=ran.out, text=True, capture_output=True).returncode == 0


def test_an_unknown_shell(fake_bench):
    ran = fake_bench("completion", "tcsh")
    assert ran.code == 2 and "'tcsh' is not one of 'bash', 'zsh', 'fish'" in ran.err


def test_bash_really_completes(fake_bench, tmp_path):
    """The script, sourced by a real bash, with a `bench` on PATH."""
    script = tmp_path / "bench"
    script.write_text(
        f"#!{fake_bench.python}\nimport sys\nfrom benchflow_core.cli.main import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    env = {**fake_bench.env(["multi", fake_bench.authoring]), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    asked = """
eval "$(bench completion bash)"
COMP_WORDS=(bench plugins show mult) COMP_CWORD=3
_bench_completion bench mult show
printf '%s\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash", "-c", asked], env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["multi", "multi-too"], done.stderr
