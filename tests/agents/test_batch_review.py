"""The checks that the documentation of running benchmarks prescribes after a batch, typed as they stand there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.agents, pytest.mark.timeout(900), pytest.mark.xdist_group("agent-pi")]

ROOT = Path(__file__).parents[2]
RUN = """
TASK=citation-check
COMMON="--tasks-dir $SKILLSBENCH/tasks --include $TASK --agent pi \\
  --sandbox local --concurrency 1 --usage-tracking required --agent-idle-timeout none"
bench eval create $COMMON --model openai/local-model --reasoning-effort high --skill-mode with-skill --jobs-dir jobs/opus-skill
bench eval create $COMMON --model openai/local-model --skill-mode no-skill --jobs-dir jobs/opus-noskill
"""
CHECK = """
J=%s
find $J -name rewards.jsonl -exec tail -1 {} \\;                                  # reward
grep -ho '"usage_source": "[a-z_]*"' $(find $J -name result.json)                # expect provider_response
grep -ho '"effort": "[a-z]*"' $(find $J -name llm_trajectory.jsonl) | sort -u    # Opus MAX -> "max"
python3 .claude/skills/benchflow-experiment-review/scripts/extract_harness_skills.py \\
  "$(find $J -name llm_trajectory.jsonl | head -1)" --task-skill citing
python3 .claude/skills/benchflow-experiment-review/scripts/audit_batch.py $J --task-skill citing
"""


def test_a_batch_is_run_and_reviewed_as_documented(local_model, agent_cache, tmp_path):
    task = shutil.copytree(ROOT / "examples/tasks/hello-file", tmp_path / "skillsbench/tasks/citation-check")
    (task / "environment/skills/citing").mkdir(parents=True)
    (task / "environment/skills/citing/SKILL.md").write_text(
        "---\nname: citing\ndescription: How to cite.\n---\nCite.\n"
    )
    (task / "instruction.md").write_text("[[fake:solve]]")
    greet = 'echo "Hello, $(cat /app/name.txt)!" > /app/hello.txt'
    local_model.script("solve", [{"text": "I do it.", "tools": [{"do": "bash", "command": greet}]}, {"text": "Done."}])
    (tmp_path / ".claude").symlink_to(ROOT / ".claude")
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "BENCHFLOW_CACHE": str(agent_cache),
        "SKILLSBENCH": str(tmp_path / "skillsbench"),
        "OPENAI_BASE_URL": f"{local_model.base_url}/v1",
        "OPENAI_API_KEY": "sk-provider-key",
    }

    def bash(script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=False
        )

    ran = bash(f"set -e\n{RUN}")
    assert ran.returncode == 0, ran.stderr
    with_skill = bash(CHECK % "jobs/opus-skill")
    assert with_skill.returncode == 0, with_skill.stdout + with_skill.stderr
    lines = with_skill.stdout.splitlines()
    assert '"value": 1.0' in lines[0]
    assert '"usage_source": "provider_response"' in lines and '"effort": "high"' in lines
    assert not [line for line in lines if "usage_source" in line and "provider_response" not in line]
    assert "task_skills: citing" in lines and "task_skills_loading: 1" in lines
    without = bash(CHECK % "jobs/opus-noskill")
    assert without.returncode == 0, without.stdout + without.stderr
    assert "task_skills_loading: 0" in without.stdout and "1 of 1 rollouts are healthy" in without.stdout
