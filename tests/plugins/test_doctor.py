"""`bench plugins list | show | doctor` as a user sees them."""

from __future__ import annotations

import time


def doctor(fake_bench, *args, fakes, env=None):
    ran = fake_bench(
        "plugins", "doctor", "--json", "--timeout", "1", *args, fakes=[fake_bench.authoring, *fakes], env=env
    )
    rows = {(one["kind"], one["name"]): one for one in ran.json}
    return ran.code, {
        key: {check["name"]: (check["status"], check["detail"], check["remedy"]) for check in one["checks"]}
        for key, one in rows.items()
    }


def test_doctor_passes_good_plugins_and_never_shows_a_secret(fake_bench):
    env = {"FAKE_AGENT_KEY": "s3cret"}
    code, found = doctor(fake_bench, fakes=["multi"], env=env)
    assert code == 0
    assert found["agent", "multi"]["credentials"] == ("ok", "api-key: FAKE_AGENT_KEY", "")
    assert found["sandbox", "multi"]["available"][0] == "ok"
    assert "s3cret" not in fake_bench("plugins", "doctor", "-v", fakes=[fake_bench.authoring, "multi"], env=env).out
    without = fake_bench("plugins", "doctor", fakes=[fake_bench.authoring, "multi"])
    assert (
        without.code == 0 and "credentials: None found." in without.out and "→ export FAKE_AGENT_KEY=…" in without.out
    )
    assert without.out.endswith("3 plugins: 2 ok, 1 with warnings.\n")


def test_credentials_may_stand_in_a_dotenv_file(fake_bench, tmp_path):
    (tmp_path / "keys").write_text("FAKE_AGENT_KEY=s3cret\n")
    env = {"BENCHFLOW_DOTENV_PATH": str(tmp_path / "keys")}
    assert doctor(fake_bench, fakes=["multi"], env=env)[1]["agent", "multi"]["credentials"][0] == "ok"


def test_doctor_finds_what_is_missing_and_says_how_to_get_it(fake_bench):
    code, found = doctor(fake_bench, "elsewhere", fakes=["checks"])
    assert found == {
        ("sandbox", "elsewhere"): {
            "load": ("ok", "not on this host", ""),
            "requires": (
                "fail",
                "a-vendor-sdk-that-nobody-has is not installed.",
                "pip install 'a-vendor-sdk-that-nobody-has>=2'",
            ),
            "variable": ("warn", "FAKE_TOKEN is not set.", "export FAKE_TOKEN=…"),
            "available": ("warn", "no engine answers", "start-the-engine"),
            "engine": ("ok", "answers", ""),
        }
    }
    assert code == 1


def test_what_is_only_not_available_here_is_no_failure(fake_bench, tmp_path):
    """The same plugin once its SDK is there: no engine and no token are warnings."""
    info = tmp_path / "a_vendor_sdk_that_nobody_has-2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: a-vendor-sdk-that-nobody-has\nVersion: 2.1\n")
    env = {
        "PYTHONPATH": f"{fake_bench.env(['checks', fake_bench.authoring])['PYTHONPATH']}:{tmp_path}",
        "FAKE_TOKEN": "t",
    }
    code, found = doctor(fake_bench, "sandbox:elsewhere", fakes=[], env=env)
    assert code == 0
    assert found["sandbox", "elsewhere"]["variable"] == ("ok", "FAKE_TOKEN is set.", "")
    assert found["sandbox", "elsewhere"]["available"][0] == "warn"
    (info / "METADATA").write_text("Name: a-vendor-sdk-that-nobody-has\nVersion: 1.0\n")
    _, found = doctor(fake_bench, "sandbox:elsewhere", fakes=[], env=env)
    assert found["sandbox", "elsewhere"]["requires"][1] == "a-vendor-sdk-that-nobody-has 1.0 does not satisfy >=2."


def test_doctor_survives_checks_that_hang_raise_or_answer_nonsense(fake_bench):
    started = time.monotonic()
    code, found = doctor(fake_bench, "hangs", "bad-checks", fakes=["checks"])
    assert time.monotonic() - started < 20
    assert code == 1
    assert found["sandbox", "hangs"]["check"][:2] == ("fail", "Its check() did not answer in 1 s.")
    assert found["sandbox", "bad-checks"]["available"][1] == "Its available() raised OSError: no route to anywhere."
    assert found["sandbox", "bad-checks"]["check"][1] == "Its check() returned something else than a list of Check."


def test_doctor_reports_broken_blocked_and_doubled_plugins(fake_bench):
    fakes = ["raises", "capitals", "malformed", "noisy", "twin-a", "twin-b"]
    ran = fake_bench("-p", "no:fine", "plugins", "doctor", fakes=[fake_bench.authoring, *fakes])
    assert ran.code == 1
    for line in (
        "fail  sandbox:raises                fake-raises 1.0",
        "        fail  load: It fails on import: RuntimeError: kaput.",
        "fail  sandbox:Bad_Name              fake-capitals 1.0",
        "        fail  entry point: Its name 'Bad_Name'",
        "skip  sandbox:fine                  fake-malformed 1.0",
        "        warn  output: It prints to stdout when it is loaded: 'hello from the import'.",
        "              → Pick one with fake-twin-a::twin, or block one with -p no:fake-twin-b.",
    ):
        assert f"\n{line}" in f"\n{ran.out}", line


def test_doctor_of_a_name_that_is_not_installed(fake_bench):
    ran = fake_bench("plugins", "doctor", "mlti", fakes=[fake_bench.authoring, "multi"])
    wanted = "error: No plugin 'mlti' is installed. Did you mean 'multi'? See: bench plugins list\n"
    assert (ran.code, ran.out, ran.err) == (1, "", wanted)


def test_show_gives_everything_that_is_data(fake_bench):
    ran = fake_bench("plugins", "show", "sandbox:elsewhere", fakes=[fake_bench.authoring, "checks"])
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "sandbox elsewhere"
    for line in (
        "  distribution   fake-checks 1.0",
        "  functions      open, capabilities, available, check",
        "  requires       FAKE_TOKEN",
        "  capabilities   users",
        "  requires_dist  benchflow-core>=0.8.0.dev0,<0.9, click>=1, a-vendor-sdk-that-nobody-has>=2",
    ):
        assert line in ran.out.splitlines(), line
    assert "printed by a check" not in ran.out + ran.err


def test_show_takes_names_of_every_form(fake_bench):
    fakes = ["multi", "twin-a", "twin-b"]
    for name, expected in {
        "multi": ["agent", "sandbox"],
        "multi-too": ["agent"],
        "agent:multi": ["agent"],
        "fake-multi": ["agent", "sandbox"],
        "fake-multi::multi": ["agent", "sandbox"],
        "fake-twin-b::twin": ["sandbox"],
    }.items():
        shown = fake_bench("plugins", "show", name, "--json", fakes=[fake_bench.authoring, *fakes]).json
        assert [one["kind"] for one in shown] == expected, name
    assert shown[0]["summary"] == "twin b"


def test_show_of_a_broken_plugin_says_why_and_fails(fake_bench):
    ran = fake_bench("plugins", "show", "raises", fakes=[fake_bench.authoring, "raises"])
    assert ran.code == 1 and "  problem        It fails on import: RuntimeError: kaput." in ran.out.splitlines()
    blocked = fake_bench("-p", "no:raises", "plugins", "show", "raises", fakes=[fake_bench.authoring, "raises"])
    assert blocked.code == 1 and "Blocked by -p no:raises." in blocked.out


def test_list_is_a_table_and_json_and_requirements(fake_bench):
    fakes = ["multi", "raises", "observer"]
    lines = fake_bench("plugins", "list", fakes=fakes).out.splitlines()
    assert lines[0].split("  ")[0] == "KIND" and len(lines) == 7
    assert "sandbox   raises     1.0      fake-raises    failed  It fails on import: RuntimeError: kaput." in lines
    assert fake_bench("plugins", "list", "--kind", "agent", "--json", fakes=fakes).json == [
        {
            "kind": "agent",
            "name": "multi",
            "version": "1.0",
            "distribution": "fake-multi",
            "status": "active",
            "reason": "",
            "summary": "an agent of many names",
            "aliases": ["multi-too"],
            "warnings": [],
        }
    ]
    pins = fake_bench("plugins", "list", "--requirements", fakes=fakes).out.splitlines()
    assert pins[0].startswith("benchflow-core==0.8") and pins[1:] == [
        "fake-multi==1.0",
        "fake-observer==1.0",
        "fake-raises==1.0",
    ]
    assert fake_bench("plugins", "list").out == "No plugins installed.\n"


def test_a_long_reason_is_wrapped_to_the_terminal(fake_bench):
    lines = fake_bench("plugins", "list", fakes=["misspelt"], env={"COLUMNS": "90"}).out.splitlines()
    assert len(lines) > 3 and max(map(len, lines)) <= 90
    assert (
        lines[2].startswith(" " * lines[0].index("PROVIDES") + "")
        and not lines[2][: lines[0].index("PROVIDES")].strip()
    )


def test_a_command_cannot_take_the_name_of_one_of_ours(fake_bench):
    rows = {row["name"]: row for row in fake_bench("plugins", "list", "--json", fakes=["clash"]).json}
    assert rows["plugins"]["status"] == "failed"
    assert rows["plugins"]["reason"] == "bench has a command 'plugins' of its own."
    assert rows["clash"]["status"] == "active"
    assert rows["clash"]["warnings"] == ["bench has a command 'completion' of its own, so that alias is never used."]
    assert fake_bench("plugins", "list", fakes=["clash"]).out.startswith("KIND")
