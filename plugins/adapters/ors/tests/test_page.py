"""The documentation's way from OpenReward's own example to a score, as it is written there."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[4] / "docs/openreward.md"


@pytest.mark.timeout(900)  # it starts the other tool's programs twice, which import for seconds
def test_from_their_own_example_to_a_score(serving: Any, bench: Callable[..., Any], tmp_path: Path) -> None:
    text = PAGE.read_text()
    commands = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    _install, init, start, ours = commands
    home = serving.python.parent
    subprocess.run([home / shlex.split(init)[0], *shlex.split(init)[1:]], cwd=tmp_path, check=True)
    (tmp_path / "solve.yaml").write_text(re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0])
    program = tmp_path / shlex.split(start)[1]
    # The one thing that differs from the page: a port that is free here.
    program.write_text(program.read_text().replace(".run()", ".run('127.0.0.1', int(__import__('sys').argv[1]))"))
    with serving(program, log=tmp_path / "log") as server:
        address = shlex.split(ours)[shlex.split(ours).index("--source-env") + 1]
        ran = bench(address.replace("http://127.0.0.1:8080", server.url), script=str(tmp_path / "solve.yaml"))
        assert ran.code == 0 and "✓ Score: 1/1 (100.0%)" in ran.output, ran.output
        assert ran.rewards == [1.0] and ran.results[0]["task_name"] == "basicenvironment-test-0000"
