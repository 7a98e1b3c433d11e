"""The task's own set-up commands: what they change is the task's, not the agent's."""

from __future__ import annotations

from pathlib import Path

import pytest

DOCKERFILE = """FROM debian:12
WORKDIR /app
RUN printf '#!/bin/sh\\nexit 1\\n' > /usr/local/bin/checker && chmod 755 /usr/local/bin/checker
"""
TASK = """version = "1.0"
[environment]
allow_internet = false
[[environment.setup_commands]]
command = "{setup}"
[metadata.benchflow]
allow_substitute = true
"""
STRICT = "printf '#!/bin/sh\\\\ngrep -q right /app/answer\\\\n' > /usr/local/bin/checker"
SERVER = "cd / && (setsid python3 -m http.server 8177 >/dev/null 2>&1 &) && sleep 1"
CHECK = "#!/bin/sh\nif checker; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"


@pytest.fixture
def task(tmp_path: Path):
    def make(setup: str, tests: str, solution: str) -> Path:
        root = tmp_path / "task"
        for name, text in {
            "environment/Dockerfile": DOCKERFILE,
            "task.toml": TASK.format(setup=setup),
            "instruction.md": "Write the right answer.",
            "tests/test.sh": tests,
            "solution/solve.sh": f"#!/bin/sh\n{solution}\n",
        }.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return root

    return make


def test_a_program_that_set_up_replaced_stays(bench, result_of, name, task):
    folder = task(STRICT, CHECK, "echo right > /app/answer")
    done = bench("eval", "create", "-t", folder, "-a", name("oracle"), "--sandbox", name("local"))
    assert done.code == 0, done.err
    result = result_of()
    assert (result["rewards"], result["verifier_isolation"]) == ({"reward": 1.0}, "fresh")


def test_what_the_agent_does_to_it_counts_as_the_agents(bench, result_of, name, task, tmp_path):
    folder = task(STRICT, CHECK, "echo right > /app/answer")
    script = tmp_path / "cheat.yaml"
    script.write_text("- run: printf '#!/bin/sh\\nexit 0\\n' > /usr/local/bin/checker\n")
    options = ("--agent-option", f"script={script}", "--sandbox", name("local"))
    bench("eval", "create", "-t", folder, "-a", name("scripted"), *options)
    result = result_of()
    assert result["rewards"] == {"reward": 0.0} and result["verification"]["contested"]
    (culprit,) = result["verification"]["culprits"]
    assert culprit["path"] == "/usr/local/bin/checker"
    assert "-grep -q right /app/answer" in culprit["diff"] and "+exit 0" in culprit["diff"]


def test_a_server_that_set_up_started_lives_on(bench, result_of, name, task):
    solution = (
        "python3 -c \"import urllib.request as u; u.urlopen('http://127.0.0.1:8177/')\" && echo right > /app/answer"
    )
    check = "#!/bin/sh\nif grep -q right /app/answer; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
    folder = task(SERVER, check, solution)
    bench("eval", "create", "-t", folder, "-a", name("oracle"), "--sandbox", name("local"))
    assert result_of()["rewards"] == {"reward": 1.0}
