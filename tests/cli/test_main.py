"""`bench` itself: global options, errors, exit codes, pipes and signals, each in a real process."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time

import pytest

ALL = ["raises", "syntax", "exits", "malformed", "capitals", "newer", "twin-a", "twin-b", "noisy", "hook-raises"]


def test_help_and_version_work_when_every_plugin_is_broken(fake_bench):
    for env in ({}, {"BENCHFLOW_PLUGINS_STRICT": "1"}):
        help_ = fake_bench("--help", fakes=ALL, env=env)
        assert (help_.code, help_.err) == (0, "") and help_.out.startswith("Usage: bench [OPTIONS] COMMAND")
        version = fake_bench("--version", fakes=ALL, env=env)
        assert (version.code, version.err) == (0, "") and version.out.startswith("bench 0.8")
    assert list(fake_bench("--json", "--version").json) == ["version"]
    assert list(fake_bench("--version", "--json").json) == ["version"]


def test_commands_of_plugins_have_a_section_of_their_own(fake_bench):
    out = fake_bench("--help", fakes=["command"]).out
    own, others = out.split("\nCommands from plugins:\n")
    assert "  plugins " in own
    assert "  hello      Greets whoever asks.\n" in others
    assert "Commands from plugins" not in fake_bench("--help").out


def test_a_command_of_a_plugin(fake_bench):
    assert fake_bench("hello", "--name", "you", fakes=["command"]).out == "hello you, json=False\n"
    assert "--name" in fake_bench("hello", "--help", fakes=["command"]).out
    broken = fake_bench("bad-build", fakes=["command"])
    wanted = "error: Command 'bad-build' of fake-command 1.0 cannot be built: ZeroDivisionError: division by zero.\n"
    assert (broken.code, broken.err) == (1, wanted)


@pytest.mark.parametrize(
    "args",
    [
        ["--json", "hello"],
        ["hello", "--json"],
        ["hello", "--name", "world", "-v", "--quiet", "--json"],
        ["-v", "hello", "-vv", "--json"],
    ],
)
def test_common_options_stand_before_or_after_the_command(fake_bench, args):
    assert fake_bench(*args, fakes=["command"]).out == "hello world, json=True\n"


def test_common_options_reach_every_level(fake_bench):
    for args in (["--json", "plugins", "list"], ["plugins", "--json", "list"], ["plugins", "list", "--json"]):
        assert fake_bench(*args).json == []


def test_a_value_that_looks_like_a_common_option_stays_a_value(fake_bench):
    assert fake_bench("hello", "--name=--json", fakes=["command"]).out == "hello --json, json=False\n"


def test_groups_of_bench_have_commands_of_plugins(fake_bench):
    help_ = fake_bench("plugins", "--help", fakes=["command"]).out
    own, others = help_.split("\nCommands from plugins:\n")
    assert "  list " in own and "  list " not in others, "a command of ours is never replaced"
    assert "  greet  Greets whoever asks.\n" in others
    for group in ("plugins", "tasks"):
        assert fake_bench(group, "greet", fakes=["command"]).out == "greetings\n"
    assert "No such command 'greet'" in fake_bench("tasks", "greet").err
    missing = fake_bench("tasks", "check", "x")
    wanted = (
        "error: bench tasks check comes with benchflow-command-authoring. Run: pip install benchflow-command-authoring"
    )
    assert (missing.code, missing.err) == (1, f"{wanted}\n")
    assert "certify" not in fake_bench("tasks", "--help").out
    for command in (["eval", "show"], ["metrics"]):
        missing = fake_bench(*command)
        said = f"error: bench {' '.join(command)} comes with benchflow-command-results. Run: pip install "
        assert missing.code == 1 and missing.err.startswith(said)
    odd = fake_bench("plugins", "odd", fakes=["command"])
    message = "Command 'plugins.odd' of fake-command 1.0 cannot be used: it is an int, not a click command."
    assert (odd.code, odd.err) == (1, f"error: {message}\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["pluginz"], "No such command 'pluginz'. Did you mean 'plugins'? Try 'bench --help'."),
        (["plugins", "lst"], "No such command 'lst'. Did you mean 'list'? Try 'bench plugins --help'."),
        (["helo"], "No such command 'helo'. Did you mean 'hello'? Try 'bench --help'."),
        (["zzz"], "No such command 'zzz'. Try 'bench --help'."),
        (["--nope"], "No such option '--nope'. Try 'bench --help'."),
        (["plugins", "show"], "Missing argument 'NAME'. Try 'bench plugins show --help'."),
        (["plugins", "list", "--kind", "x"], "Invalid value for '--kind': 'x' is not one of agent, sandbox,"),
        (["\x1b]0;owned\x07"], r"No such command '\x1b]0;owned\x07'."),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(fake_bench, args, message):
    ran = fake_bench(*args, fakes=["command", fake_bench.authoring])
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {message}") and ran.err.count("\n") == 1


def test_no_command_shows_the_help_and_is_a_usage_error(fake_bench):
    for args in ([], ["plugins"]):
        ran = fake_bench(*args)
        assert (ran.code, ran.out) == (2, "") and ran.err.startswith("Usage: bench ")


def test_errors_under_json_are_one_document(fake_bench):
    for args, code, kind in (
        (["use", "sandbox", "x", "--json"], "plugin_error", "configuration"),
        (["--json", "plugins", "lst"], "usage_error", "configuration"),
        (["plugins", "list", "--bogus", "--json"], "usage_error", "configuration"),
        (["use", "agent", "--explode", "--json"], "ZeroDivisionError", "defect"),
    ):
        ran = fake_bench(*args, fakes=["command"])
        error = ran.json["error"]
        assert (error["code"], error["kind"]) == (code, kind)
        assert set(error) == {"kind", "code", "message", "remedy", "retryable", "details"}
        assert ran.err.startswith("error: ") and ran.err.count("\n") == 1


def test_a_defect_is_one_line_and_a_traceback_only_with_v(fake_bench):
    ran = fake_bench("use", "agent", "--explode", fakes=["command"])
    wanted = "error: ZeroDivisionError: as asked. This is a defect: run again with -v to see where.\n"
    assert (ran.code, ran.err) == (70, wanted)
    for args in (["-v", "use", "agent", "--explode"], ["use", "agent", "--explode", "-v"]):
        ran = fake_bench(*args, fakes=["command"])
        assert ran.code == 70 and "Traceback (most recent call last)" in ran.err
        assert ran.err.endswith("error: ZeroDivisionError: as asked. This is a defect.\n")


def test_the_cause_of_a_broken_plugin_is_shown_with_v(fake_bench):
    fakes = ["command", "raises"]
    assert "Traceback" not in fake_bench("use", "sandbox", "raises", fakes=fakes).err
    for names in (["raises"], []):
        ran = fake_bench("use", "sandbox", *names, "-v", fakes=fakes)
        assert 'raise RuntimeError("kaput")' in ran.err


def test_ctrl_c_is_130_and_quiet(fake_bench, tmp_path):
    importing = tmp_path / "importing"
    process = subprocess.Popen(
        fake_bench.argv("use", "sandbox", "slow"),
        env=fake_bench.env(["command", "slow"], {"FAKE_SLOW_MARKER": str(importing)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's `&` leaves it ignored
    )
    while not importing.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (130, "", "error: Interrupted.\n")


def test_a_reader_that_goes_away_is_no_drama(fake_bench):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        fake_bench.argv("plugins", "list"), env=fake_bench.env(["multi"]), stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_is_an_error(fake_bench):
    with open("/dev/full", "w") as full:
        done = subprocess.run(fake_bench.argv("--help"), env=fake_bench.env(), stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr == b"error: The output could not be written: No space left on device.\n"


def test_closed_streams_are_endured(fake_bench):
    argv = " ".join(fake_bench.argv("plugins", "list"))
    for closing in (">&-", "2>&-", ">&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{argv} {closing}"], env=fake_bench.env(["multi", "noisy"]), capture_output=True
        )
        assert done.returncode == 0, (closing, done.stderr)


def test_an_encoding_without_the_character(fake_bench):
    ran = fake_bench("plugins", "doctor", fakes=[fake_bench.authoring, "multi"], env={"PYTHONIOENCODING": "ascii"})
    assert ran.code == 0 and r"\u2192 export FAKE_AGENT_KEY=\u2026" in ran.out


def _on_a_terminal(fake_bench, *args, fakes, env=None):
    """What a user with a colour terminal sees."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        fake_bench.argv(*args),
        env=fake_bench.env(fakes, {"TERM": "xterm", **(env or {})}),
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    chunks = []
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:
            break
        if not chunk:
            break
        chunks.append(chunk)
    process.wait(timeout=20)
    os.close(ours)
    return b"".join(chunks).decode()


def test_colour_only_on_a_terminal_and_without_no_color(fake_bench):
    assert "\x1b[31merror:\x1b[0m" in _on_a_terminal(fake_bench, "nope", fakes=[])
    assert "\x1b[" not in _on_a_terminal(fake_bench, "nope", fakes=[], env={"NO_COLOR": "1"})
    assert "\x1b[1mKIND" in _on_a_terminal(fake_bench, "plugins", "list", fakes=["multi"])
    assert "\x1b[" not in fake_bench("plugins", "list", fakes=["multi"]).out
    assert "\x1b[1magent multi\x1b[0m" in _on_a_terminal(
        fake_bench, "plugins", "show", "multi", fakes=[fake_bench.authoring, "multi"]
    )


def test_a_plugin_cannot_drive_the_terminal(fake_bench, tmp_path):
    evil = tmp_path / "evil-1\x1b[2J.dist-info"
    evil.mkdir()
    (evil / "entry_points.txt").write_text("[benchflow.agents]\nevil\x1b[2J = x\nother = x\x9b2J\n")
    env = {"PYTHONPATH": f"{fake_bench.env([fake_bench.authoring])['PYTHONPATH']}:{tmp_path}"}
    for args in (["plugins", "list"], ["plugins", "doctor"], ["plugins", "show", "evil"]):
        shown = _on_a_terminal(fake_bench, *args, fakes=[], env=env)
        assert "evil" in shown and "\x1b[2J" not in shown and "\x9b" not in shown


def test_json_on_a_terminal_is_indented(fake_bench):
    shown = _on_a_terminal(fake_bench, "plugins", "list", "--json", fakes=["multi"])
    assert shown.startswith("[\r\n  {") and len(json.loads(shown)) == 2


def test_both_names_are_the_same_program(fake_bench, tmp_path):
    script = tmp_path / "benchflow"
    script.write_text(
        f"#!{fake_bench.python}\nimport sys\nfrom benchflow_core.cli.main import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    run = subprocess.run([str(script), "--version"], env=fake_bench.env(), capture_output=True, text=True)
    assert run.stdout.startswith("benchflow 0.8")
    run = subprocess.run([str(script), "plugins", "x"], env=fake_bench.env(), capture_output=True, text=True)
    assert "Try 'benchflow plugins --help'." in run.stderr
