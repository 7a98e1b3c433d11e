"""What a command may import. Counting modules is immune to a busy machine; timing is not (see `benchmarks/perf`).

The numbers are a ratchet: lower them when a command gets lighter; raise one only together with a reason.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchflow_core.cli.main import COMMANDS

HEAVY = ("pydantic", "rich", "yaml", "asyncio", "tomli_w", "acp", "ssl", "http", "urllib.request", "logging", "email")
METADATA = ("pluggy", "importlib.metadata", "packaging", "benchflow_core.contracts", "benchflow_core.hookspecs")
PROBE = """
import contextlib, json, os, sys
import click
before = set(sys.modules)
from benchflow_core.cli.main import main
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    code = main(sys.argv[1:])
added = sorted(set(sys.modules) - before)
print(json.dumps({"code": code, "added": added}))
"""


def added_modules(python, args: list[str], env=None) -> list[str]:
    """Beyond those of Python and click."""
    done = subprocess.run([python, "-c", PROBE, *args], env=env, capture_output=True, text=True, timeout=60)
    found = json.loads(done.stdout)
    assert found["code"] == 0, done.stderr
    return found["added"]


def belongs(module: str, banned: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in banned)


@pytest.mark.parametrize(
    ("args", "budget", "banned"),
    [
        (["--version"], 17, (*HEAVY, *METADATA)),
        (["--help"], 20, (*HEAVY, *METADATA)),
        (["plugins", "--help"], 21, (*HEAVY, *METADATA)),
        (["plugins", "list", "--requirements"], 38, HEAVY),
        (["plugins", "list"], 69, (*HEAVY, "packaging", "subprocess")),
        (["plugins", "list", "--json"], 74, (*HEAVY, "packaging", "subprocess")),
    ],
)
def test_the_number_of_modules(fake_bench, args, budget, banned):
    added = added_modules(fake_bench.python, args, fake_bench.env(["multi", "command", "observer"]))
    assert [name for name in added if belongs(name, banned)] == []
    assert len(added) <= budget, added


def test_completion_of_commands_is_as_light_as_help(fake_bench):
    asked = {"_BENCH_COMPLETE": "bash_complete", "COMP_WORDS": "bench ", "COMP_CWORD": "1"}
    added = added_modules(fake_bench.python, [], fake_bench.env(["multi", "command"], asked))
    assert [name for name in added if belongs(name, (*HEAVY, *METADATA))] == []
    assert len(added) <= 22, added


OWN = [name for name, (place, _) in COMMANDS.items() if ":" in place]
"""Commands of the core itself: those of packages import what their own `plugin.py` needs."""


@pytest.mark.parametrize("args", [["--help"], *([name, "--help"] for name in OWN)], ids=" ".join)
def test_help_with_every_plugin_of_ours_installed(args):
    """A group that a package brings is loaded through its plugin, which needs the metadata and no more."""
    from_package = args[0] in COMMANDS and ":" not in COMMANDS[args[0]][0]
    added = added_modules(sys.executable, args)
    assert [name for name in added if belongs(name, HEAVY if from_package else (*HEAVY, *METADATA))] == []


def test_listing_every_plugin_of_ours(request):
    """A `plugin.py` that pulls in something heavy shows here."""
    added = added_modules(sys.executable, ["plugins", "list"])
    assert [name for name in added if belongs(name, HEAVY)] == []
