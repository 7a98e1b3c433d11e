"""Plays the task: its files are where a box would have them, then solution and tests run."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

task = Path("/app/tasks/count-lines")
config = tomllib.loads((task / "task.toml").read_text())
assert isinstance(config, dict)
instruction = (task / "instruction.md").read_text()
assert "/app/input.txt" in instruction and "/app/count.txt" in instruction, "the instruction names both files"
docker = (task / "environment/Dockerfile").read_text()
assert "debian:bookworm-slim" in docker and "WORKDIR /app" in docker and "input.txt" in docker, docker
data = (task / "environment/input.txt").read_bytes()
assert data.count(b"\n") + (not data.endswith(b"\n")) == 7, "seven lines"

Path("/app/input.txt").write_bytes(data)
shutil.rmtree("/tests", ignore_errors=True)
shutil.copytree(task / "tests", "/tests")
reward = Path("/logs/verifier/reward.txt")


def score(prepare):
    """The reward after `prepare`, which is a shell command."""
    Path("/app/count.txt").unlink(missing_ok=True)
    reward.unlink(missing_ok=True)
    subprocess.run(["sh", "-c", prepare], cwd="/app", check=False, timeout=20)
    subprocess.run(["bash" if shutil.which("bash") else "sh", "/tests/test.sh"], cwd="/app", check=False, timeout=20)
    return float(reward.read_text()) if reward.exists() else None


solve = f"bash {task}/solution/solve.sh"
found = {"solution": score(solve), "nothing": score("true"), "wrong": score("echo 8 > /app/count.txt")}
found["text"] = score("echo 'There are 7 lines' > /app/count.txt")
if found != {"solution": 1.0, "nothing": 0.0, "wrong": 0.0, "text": 0.0}:
    sys.exit(f"rewards are {found}")
