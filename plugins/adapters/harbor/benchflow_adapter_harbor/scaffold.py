"""New tasks: small, complete, and solvable without network or image."""

from __future__ import annotations

from benchflow_core.contracts.adapters import Scaffold, ScaffoldRequest

_TOML = """\
schema_version = "1.4"

[metadata]
difficulty = "easy"
tags = []

[metadata.benchflow]
# Nothing here depends on the image: the task also runs where no container engine is.
allow_substitute = true

[agent]
timeout_sec = 600

[verifier]
timeout_sec = 120

[environment]
cpus = 1
memory_mb = 2048
"""

_FRONTMATTER = """\
---
schema_version: "1.3"
metadata:
  difficulty: easy
  tags: []
agent:
  timeout_sec: 600
verifier:
  timeout_sec: 120
sandbox:
  cpus: 1
  memory_mb: 2048
benchflow:
  # Nothing here depends on the image: the task also runs where no container engine is.
  allow_substitute: true
---

"""

_PROMPT = """\
Write the line `Hello, world!` to the file `/app/hello.txt`.
"""

_DOCKERFILE = """\
FROM {image}
WORKDIR /app
"""

_SOLUTION = """\
#!/bin/sh
# The reference solution: what `-a oracle` runs. It must earn the full reward.
set -e
echo 'Hello, world!' > /app/hello.txt
"""

_PYTHON_TEST = """\
#!/bin/sh
# Runs after the agent, in a box of its own. One number goes to reward.txt: 1 for solved, 0 for not.
cd "$(dirname "$0")" || exit 1
reward=0
if python3 -m unittest -v test_outputs >&2; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
"""

_TEST_OUTPUTS = '''\
"""What the agent should have left behind. Runs under unittest and pytest alike."""

import unittest
from pathlib import Path

HELLO = Path("/app/hello.txt")


class TestHello(unittest.TestCase):
    def test_file_is_there(self):
        self.assertTrue(HELLO.is_file())

    def test_content(self):
        self.assertEqual(HELLO.read_text().rstrip("\\n"), "Hello, world!")
'''

_SHELL_TEST = """\
#!/bin/sh
# Runs after the agent, in a box of its own. One number goes to reward.txt: 1 for solved, 0 for not.
reward=0
if [ -f /app/hello.txt ] && [ "$(cat /app/hello.txt)" = 'Hello, world!' ]; then
    reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
"""


def scaffold_harbor(request: ScaffoldRequest) -> Scaffold:
    files = {"task.toml": _TOML, "instruction.md": _PROMPT, **_shared(request, "tests", "solution")}
    return Scaffold(files, _next("instruction.md", "tests", "solution", request))


def scaffold_taskmd(request: ScaffoldRequest) -> Scaffold:
    files = {"task.md": _FRONTMATTER + _PROMPT, **_shared(request, "verifier", "oracle")}
    return Scaffold(files, _next("task.md", "verifier", "oracle", request))


def _shared(request: ScaffoldRequest, tests: str, solution: str) -> dict[str, str]:
    image = "python:3.12-slim" if request.pytest else "debian:bookworm-slim"
    files = {"environment/Dockerfile": _DOCKERFILE.format(image=image)}
    files[f"{tests}/test.sh"] = _PYTHON_TEST if request.pytest else _SHELL_TEST
    if request.pytest:
        files[f"{tests}/test_outputs.py"] = _TEST_OUTPUTS
    if request.solution:
        files[f"{solution}/solve.sh"] = _SOLUTION
    return files


def _next(prompt: str, tests: str, solution: str, request: ScaffoldRequest) -> tuple[str, ...]:
    test = f"{tests}/test_outputs.py" if request.pytest else f"{tests}/test.sh"
    steps = [f"Say what the agent is to do in {prompt}.", f"Judge it in {test}."]
    if request.solution:
        steps.append(f"Solve it in {solution}/solve.sh.")
    return (*steps, "Put what the agent starts with into environment/.")
