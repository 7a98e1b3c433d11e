"""Blocking: what is blocked is not imported, and whoever asks for it hears who blocked it."""

from __future__ import annotations

import pytest

FAKES = ["command", "multi", "slow"]


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "imported"


@pytest.mark.parametrize(
    ("args", "env", "by"),
    [
        (["-p", "no:slow"], {}, "-p no:slow. Leave that option out to use it."),
        (["-pno:slow"], {}, "-p no:slow."),
        (["-p", "no:sandbox:slow"], {}, "-p no:sandbox:slow."),
        (["-p", "no:fake-slow"], {}, "-p no:fake-slow."),
        (["-p", "no:Fake_Slow"], {}, "-p no:Fake_Slow."),
        (["--json", "-p", "no:multi", "-v", "-p", "no:slow"], {}, "-p no:slow."),
        ([], {"BENCHFLOW_PLUGINS": "use, multi"}, "BENCHFLOW_PLUGINS='use,multi'. Add slow to BENCHFLOW_PLUGINS"),
        ([], {"BENCHFLOW_PLUGINS": "fake-command"}, "BENCHFLOW_PLUGINS='fake-command'."),
    ],
)
def test_a_blocked_plugin_is_not_imported(fake_bench, marker, args, env, by):
    env = {**env, "FAKE_SLOW_MARKER": str(marker)}
    ran = fake_bench(*args, "use", "sandbox", "slow", fakes=FAKES, env=env)
    assert ran.code == 1
    assert f"error: Sandbox 'slow' of fake-slow 1.0 is blocked by {by}" in ran.err
    rows = fake_bench(*args, "plugins", "list", "--json", fakes=FAKES, env=env).json
    assert [row["status"] for row in rows if row["name"] == "slow"] == ["blocked"]
    assert not marker.exists()


@pytest.mark.parametrize(
    ("args", "env"), [(["--no-plugins"], {}), ([], {"BENCHFLOW_PLUGINS": ""}), ([], {"BENCHFLOW_PLUGINS": " , "})]
)
def test_none_at_all(fake_bench, marker, args, env):
    env = {**env, "FAKE_SLOW_MARKER": str(marker)}
    rows = fake_bench(*args, "plugins", "list", "--json", fakes=FAKES, env=env).json
    assert {row["status"] for row in rows} == {"blocked"}
    ran = fake_bench(*args, "use", "sandbox", "multi", fakes=FAKES, env=env)
    assert ran.code == 1 and "Command 'use' of fake-command 1.0 is blocked by" in ran.err
    assert "use " not in fake_bench(*args, "--help", fakes=FAKES, env=env).out
    assert not marker.exists()


def test_what_the_core_brings_stays_unless_it_is_named(fake_bench, tmp_path):
    """A driver of the core's own is part of the core."""
    info = tmp_path / "benchflow_core-9.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[benchflow.agents]\nbuilt-in = fake_multi\n")
    env = {"PYTHONPATH": f"{tmp_path}:{fake_bench.env(['multi'])['PYTHONPATH']}"}
    status = {
        row["name"]: row["status"] for row in fake_bench("--no-plugins", "plugins", "list", "--json", env=env).json
    }
    assert status == {"built-in": "active", "multi": "blocked"}
    named = fake_bench("-p", "no:built-in", "plugins", "list", "--json", env=env).json
    assert [row["status"] for row in named if row["name"] == "built-in"] == ["blocked"]


def test_blocking_by_an_alias_blocks_the_plugin_in_that_kind(fake_bench):
    ran = fake_bench("-p", "no:multi-too", "use", "agent", "multi", fakes=FAKES)
    assert ran.code == 1 and "blocked by -p no:multi-too" in ran.err
    assert fake_bench("-p", "no:multi-too", "use", "sandbox", "multi", fakes=FAKES).code == 0


def test_an_allow_list_lets_those_through(fake_bench):
    env = {"BENCHFLOW_PLUGINS": "fake-command,agent:multi"}
    assert fake_bench("use", "agent", "multi", fakes=FAKES, env=env).code == 0
    assert fake_bench("use", "sandbox", "multi", fakes=FAKES, env=env).code == 1


def test_a_block_that_matches_nothing_is_pointed_out(fake_bench):
    ran = fake_bench("-p", "no:mlti", "use", "agent", fakes=FAKES)
    assert ran.code == 0 and ran.err == "warning: -p no:mlti matches no installed plugin.\n"
    ran = fake_bench("use", "agent", fakes=FAKES, env={"BENCHFLOW_PLUGINS": "fake-command,mlti"})
    assert ran.code == 0 and ran.err == "warning: BENCHFLOW_PLUGINS=mlti matches no installed plugin.\n"


@pytest.mark.parametrize("value", ["multi", "no:", ""])
def test_p_only_blocks(fake_bench, value):
    ran = fake_bench("-p", value, "plugins", "list", fakes=FAKES)
    assert ran.code == 2 and ran.err.startswith("error: -p takes no:NAME")


@pytest.mark.parametrize(("args", "env"), [(["--strict-plugins"], {}), ([], {"BENCHFLOW_PLUGINS_STRICT": "1"})])
@pytest.mark.parametrize(
    ("fakes", "message"),
    [
        (["raises"], "Sandbox 'raises' of fake-raises 1.0 cannot be used."),
        (["twin-a", "twin-b"], "Sandbox 'twin' is provided by"),
        (["capitals"], "Plugin sandbox:Bad_Name of fake-capitals 1.0 has a problem, and plugins are strict."),
        (["malformed"], "does not name a module"),
        (["noisy"], "It prints to stdout when it is loaded"),
        (["half-misspelt"], "benchflow_agnt"),
    ],
)
def test_strict_mode_turns_every_problem_into_an_error(fake_bench, args, env, fakes, message):
    ran = fake_bench(*args, "use", "sandbox", fakes=["command", *fakes], env=env)
    assert ran.code == 1 and message in ran.err.splitlines()[-1]
    assert fake_bench(*args, "plugins", "list", fakes=fakes, env=env).code == 1
    assert fake_bench(*args, "--help", fakes=fakes, env=env).code == 0
    lenient = fake_bench("use", "sandbox", fakes=["command", *fakes])
    assert lenient.code == 0 and "warning: " in lenient.err


def test_strict_mode_has_no_quarrel_with_good_plugins(fake_bench):
    for args in (["use", "agent", "multi"], ["plugins", "list"]):
        ran = fake_bench("--strict-plugins", *args, fakes=["command", "multi", "wrapper"])
        assert (ran.code, ran.err) == (0, "")
