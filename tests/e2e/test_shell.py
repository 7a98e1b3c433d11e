"""`bench sandbox shell`: the box as an agent would find it, and gone afterwards."""

from __future__ import annotations

import subprocess


def test_a_command_in_the_box_gives_its_exit_code(bench, name, examples):
    done = bench(
        "sandbox", "shell", examples / "hello-file", "-c", "cat /app/name.txt; cat /instruction.md | head -1; exit 7"
    )
    assert done.code == 7, done.err
    assert done.out.startswith("Ada")
    assert bench("sandbox", "list", "--boxes", "--json").json == []


def test_what_is_typed_reaches_the_shell(command, env, name, examples, tmp_path):
    (tmp_path / "home").mkdir()
    argv = [*command, "sandbox", "shell", str(examples / "hello-file"), "-c", "sh"]
    typed = "echo hello > /app/x\ncat /app/x\nexit 3\n"
    done = subprocess.run(
        argv, env=env, cwd=tmp_path, input=typed, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (3, "hello\n"), done.stderr
