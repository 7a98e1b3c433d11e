"""The loader against committed fake distributions, each wrong in its own way, in a real process."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

BROKEN = {
    "raises": ("raises", "It fails on import: RuntimeError: kaput."),
    "syntax": ("syntax", "SyntaxError: invalid syntax"),
    "exits": ("exits", "It fails on import: SystemExit: not on this machine."),
    "missing-sdk": (
        "missing-sdk",
        "No module named 'a_vendor_sdk_that_nobody_has'. Try: pip install --force-reinstall",
    ),
    "misspelt": ("misspelt", "It has benchflow_sandbx instead. Did its author mean benchflow_sandbox?"),
    "unmarked": ("unmarked", "Its author should mark the function with @hookimpl."),
    "no-hook": ("no-hook", "Its module fake_no_hook has no hook benchflow_sandbox."),
    "returns-dict": ("wrong-type", "Its hook benchflow_sandbox returned a dict, not a SandboxSpec."),
    "returns-none": ("wrong-type", "Its hook benchflow_sandbox returned None, not a SandboxSpec."),
    "wrong-field": ("wrong-type", "summary should be str, not 5; open should be Callable"),
    "hook-raises": ("hook-raises", "Its hook benchflow_sandbox raised ValueError: no spec today."),
    "async-hook": ("async-hook", "Its hook benchflow_sandbox is async; a hook is a plain function."),
    "hook-args": ("hook-args", "benchflow_sandbox(config)"),
    "newer": ("newer", "It needs 'benchflow-core>=99'; this is benchflow-core 0.8"),
    "bad-name": ("capitals", "Its name 'Bad_Name' in [benchflow.sandboxes] cannot be used"),
    "Bad_Name": ("capitals", "Its author should rename it to 'bad-name'."),
    "no-value": ("malformed", "Its entry point 'no-value' in [benchflow.sandboxes] does not name a module."),
    "with-attribute": ("malformed", "Its author should write 'with-attribute = package.module'."),
    "with-spaces": ("malformed", "'with-spaces = fake malformed'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_that_is_asked_for_is_one_clear_error(fake_bench, name):
    fake, message = BROKEN[name]
    ran = fake_bench("use", "sandbox", name, fakes=["command", fake])
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: Sandbox ") and ran.err.count("\n") == 1
    assert f"of fake-{fake} 1.0 cannot be used." in ran.err and message in ran.err


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_that_nobody_asked_for_is_one_warning(fake_bench, name):
    fake, message = BROKEN[name]
    ran = fake_bench("use", "sandbox", "--json", fakes=["command", fake, "multi"])
    assert ran.code == 0
    assert "multi" in [one["name"] for one in ran.json]
    lines = [line for line in ran.err.splitlines() if message in line]
    assert len(lines) == 1 and f"of fake-{fake} 1.0 is left out (silence this with -p no:fake-{fake})" in lines[0]


@pytest.mark.parametrize("name", BROKEN)
def test_the_list_tells_what_is_wrong(fake_bench, name):
    fake, message = BROKEN[name]
    ran = fake_bench("plugins", "list", "--json", fakes=[fake, "multi"])
    assert ran.code == 0
    rows = {row["name"]: row for row in ran.json}
    wanted = "Bad_Name" if fake == "capitals" else name
    assert rows[wanted]["status"] == "failed" and message in rows[wanted]["reason"]
    assert (rows[wanted]["distribution"], rows[wanted]["version"]) == (f"fake-{fake}", "1.0")
    assert rows["multi"]["status"] == "active"


def test_one_bad_line_spoils_neither_its_file_nor_others(fake_bench):
    ran = fake_bench("use", "sandbox", "fine", "multi", fakes=["command", "malformed", "multi"])
    assert ran.code == 0, ran.err
    assert ran.out == "using sandbox:fine of fake-malformed\nusing sandbox:multi of fake-multi\n"


def test_an_entry_point_in_a_group_that_does_not_exist_is_reported(fake_bench):
    rows = fake_bench("plugins", "list", "--json", fakes=["malformed"]).json
    (row,) = [row for row in rows if row["name"] == "wrong-group"]
    assert row["status"] == "failed"
    assert "[benchflow.sandbox]. Did its author mean [benchflow.sandboxes]?" in row["reason"]


def test_a_name_in_two_distributions(fake_bench):
    fakes = ["command", "twin-a", "twin-b"]
    ran = fake_bench("use", "sandbox", "twin", fakes=fakes)
    assert ran.code == 1
    assert "Sandbox 'twin' is provided by fake-twin-a 1.0 and by fake-twin-b 1.0." in ran.err
    assert "Pick one with fake-twin-a::twin, or block one with -p no:fake-twin-b." in ran.err

    for letter in "ab":
        picked = fake_bench("use", "sandbox", f"fake-twin-{letter}::twin", "--json", fakes=fakes)
        assert picked.json[0]["summary"] == f"twin {letter}"
    blocked = fake_bench("-p", "no:fake-twin-a", "use", "sandbox", "twin", "--json", fakes=fakes)
    assert blocked.json[0]["distribution"] == "fake-twin-b"

    rows = fake_bench("plugins", "list", "--json", fakes=fakes).json
    assert [row["status"] for row in rows if row["name"] == "twin"] == ["duplicate", "duplicate"]
    every = fake_bench("use", "sandbox", "--json", fakes=fakes)
    assert (every.json, every.err.count("None of them is used.")) == ([], 1)


def test_several_kinds_and_an_alias_from_one_module(fake_bench):
    ran = fake_bench("use", "agent", "multi", "multi-too", "--json", fakes=["command", "multi"])
    assert [one["name"] for one in ran.json] == ["multi", "multi"]
    ran = fake_bench("use", "sandbox", "multi", "--json", fakes=["command", "multi"])
    assert ran.json[0]["summary"] == "a sandbox too"
    rows = fake_bench("plugins", "list", "--json", fakes=["multi"]).json
    assert [(row["kind"], row["aliases"]) for row in rows] == [("agent", ["multi-too"]), ("sandbox", [])]


@pytest.mark.parametrize("typed", ["Multi", "MULTI_TOO", " multi "])
def test_typed_names_are_forgiven(fake_bench, typed):
    ran = fake_bench("use", "agent", typed, "--json", fakes=["command", "multi"])
    assert ran.json[0]["name"] == "multi"


def test_an_agent_wrapped_by_another(fake_bench):
    fakes = ["command", "wrapper", "multi"]
    ran = fake_bench("use", "agent", "wrapper/multi", "wrapper/wrapper/multi-too", "--json", fakes=fakes)
    assert [(one["name"], one["summary"]) for one in ran.json] == [
        ("wrapper/multi", "wrapped: an agent of many names"),
        ("wrapper/wrapper/multi", "wrapped: wrapped: an agent of many names"),
    ]
    for name, message in {
        "multi/wrapper": "Agent 'multi' wraps no other agent, so 'multi/wrapper' does not exist. Use 'wrapper' alone.",
        "bad-wrapper/multi": "wrap of fake-wrapper 1.0 returned a str, not an AgentSpec.",
        "wrapper/gemini": "Unknown agent 'gemini'.",
    }.items():
        ran = fake_bench("use", "agent", name, fakes=fakes)
        assert ran.code == 1 and message in ran.err


def test_an_unknown_name_says_what_to_install(fake_bench):
    fakes = ["command", "multi", "noisy"]
    ran = fake_bench("use", "sandbox", "e2b", fakes=fakes)
    told = "error: Unknown sandbox 'e2b'. Installed: multi, noisy. Try: pip install benchflow-sandbox-e2b\n"
    assert (ran.code, ran.err) == (1, told)
    assert fake_bench("use", "agent", "x", fakes=["command"]).err.startswith(
        "error: Unknown agent 'x'. Installed: none."
    )
    close = fake_bench("use", "sandbox", "mlti", fakes=fakes).err
    assert close == "error: Unknown sandbox 'mlti'. Did you mean 'multi'? Installed: multi, noisy.\n"
    hostile = fake_bench("use", "sandbox", "\x1b[31mred\nline", fakes=fakes).err
    assert "\x1b" not in hostile and hostile.count("\n") == 1 and "pip install" not in hostile


def test_inside_a_uv_tool_environment_pip_is_not_suggested(fake_bench):
    receipt = fake_bench.python.parent.parent / "uv-receipt.toml"
    receipt.write_text('[tool]\nrequirements = [{ name = "benchflow" }, { name = "benchflow-agent-x" }]\n')
    try:
        ran = fake_bench("use", "sandbox", "e2b", fakes=["command"])
    finally:
        receipt.unlink()
    wanted = "Try: uv tool install benchflow --with benchflow-agent-x --with benchflow-sandbox-e2b\n"
    assert ran.err.endswith(wanted)


def test_a_plugin_that_prints_cannot_spoil_json(fake_bench):
    ran = fake_bench("use", "sandbox", "noisy", "--json", fakes=["command", "noisy"])
    assert [one["name"] for one in ran.json] == ["noisy"]
    assert "warning: Plugin sandbox:noisy of fake-noisy 1.0: It prints to stdout when it is loaded" in ran.err
    listed = fake_bench("plugins", "list", "--json", fakes=["noisy"])
    assert "'hello from the import'" in listed.json[0]["warnings"][0]


def test_a_plugin_that_is_not_done_loading_is_named_meanwhile(fake_bench):
    env = fake_bench.env(["slow"], {"FAKE_SLOW_SECONDS": "600"})
    argv = fake_bench.argv("plugins", "list")
    with subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as waiting:
        said = waiting.stderr.readline()
        waiting.kill()
    wanted = "Plugin sandbox:slow of fake-slow 1.0 is still being loaded after 5 s. Leave it out with -p no:fake-slow."
    assert said == f"warning: {wanted}\n"


def test_a_hook_that_does_not_exist_beside_one_that_does(fake_bench):
    ran = fake_bench("use", "sandbox", "half-misspelt", fakes=["command", "half-misspelt"])
    assert ran.code == 0
    assert "It has a hook benchflow_agnt that does not exist. Did its author mean benchflow_agent?" in ran.err


def test_observers_are_loaded_for_a_job_and_asked_whether_they_want_it(fake_bench):
    ran = fake_bench("use", "observers", "--json", fakes=["command", "observer"])
    assert [one["name"] for one in ran.json] == ["watcher"]
    assert "Observer undecided of fake-observer 1.0 is left out. Its enabled() raised ZeroDivisionError" in ran.err


def test_a_slow_plugin_costs_only_those_who_ask_for_it(fake_bench, tmp_path):
    marker = tmp_path / "imported"
    fakes = ["slow", "multi", "command", fake_bench.authoring]
    env = {"FAKE_SLOW_MARKER": str(marker)}
    for args in (
        ["--help"],
        ["--version"],
        ["plugins", "--help"],
        ["plugins", "list", "--requirements"],
        ["plugins", "list", "--kind", "agent"],
        ["plugins", "show", "multi"],
        ["use", "sandbox", "multi"],
        ["use", "agent"],
        ["use", "sandbox", "slwo"],
        ["-p", "no:slow", "plugins", "list"],
        ["-p", "no:slow", "use", "sandbox"],
    ):
        fake_bench(*args, fakes=fakes, env=env)
        assert not marker.exists(), args
    assert "took three seconds" in fake_bench("plugins", "list", fakes=fakes, env=env).out
    assert marker.exists()


def test_the_first_distribution_on_the_path_wins(fake_bench, tmp_path):
    """As for imports. The other one is not there as far as anybody can tell."""
    info = tmp_path / "Fake.Multi-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: Fake.Multi\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[benchflow.agents]\nother = fake_multi\n")
    before = {"PYTHONPATH": f"{tmp_path}:{fake_bench.env(['multi'])['PYTHONPATH']}"}
    rows = fake_bench("plugins", "list", "--json", env=before).json
    assert [(row["name"], row["version"]) for row in rows] == [("other", "2.0")]
    after = {"PYTHONPATH": f"{fake_bench.env(['multi'])['PYTHONPATH']}:{tmp_path}"}
    rows = fake_bench("plugins", "list", "--json", env=after).json
    assert {(row["name"], row["version"]) for row in rows} == {("multi", "1.0")}


def test_a_plugin_inside_an_archive_is_found(fake_bench, tmp_path):
    from zipfile import ZipFile

    fake = Path(__file__).parent.parent / "data" / "dists" / "multi"
    archive = tmp_path / "fake.whl"
    with ZipFile(archive, "w") as wheel:
        for path in fake.rglob("*"):
            wheel.write(path, path.relative_to(fake))
    env = {"PYTHONPATH": f"{fake_bench.env()['PYTHONPATH']}:{archive}"}
    assert [row["status"] for row in fake_bench("plugins", "list", "--json", env=env).json] == ["active", "active"]


def test_a_freshly_installed_plugin_is_seen_at_once(fake_bench, tmp_path):
    env = {"PYTHONPATH": f"{fake_bench.env()['PYTHONPATH']}:{tmp_path}"}
    assert fake_bench("plugins", "list", "--json", env=env).json == []
    (tmp_path / "fresh.py").write_text((Path(__file__).parent.parent / "data/dists/multi/fake_multi.py").read_text())
    info = tmp_path / "fresh-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[benchflow.agents]\nfresh = fresh\n")
    assert [row["name"] for row in fake_bench("plugins", "list", "--json", env=env).json] == ["fresh"]
