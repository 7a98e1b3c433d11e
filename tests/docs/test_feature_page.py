"""The feature of docs/plugins/features.md, installed as it stands, takes part in a real rollout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/plugins/features.md").read_text("utf-8")


def test_the_example_is_short_and_works(tmp_path):
    source = re.search(r'```python title="acme_rules.py"\n(.*?)```', PAGE, re.DOTALL)
    assert source is not None and len([line for line in source[1].splitlines() if line]) <= 60
    (tmp_path / "acme_rules.py").write_text(source[1])
    info = tmp_path / "acme_rules-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.0\nSummary: rules\n")
    (info / "entry_points.txt").write_text("[benchflow.features]\nrules = acme_rules\n")
    (tmp_path / "rules.txt").write_text("Be brief.")
    script = json.dumps([{"run": 'cat /rules.txt; echo "Hello, $(cat name.txt)!" > hello.txt'}])
    options = ["--agent-option", f"script={script}", "--house-rules", "rules.txt", "-e", "local", "--job-name", "j"]
    code = "import sys; from benchflow_core.cli.main import main; sys.argv[0] = 'bench'; sys.exit(main())"
    task = ROOT / "examples/tasks/hello-file"
    argv = [sys.executable, "-c", code, "eval", "create", "-t", str(task), "-a", "scripted", *options]
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "BENCHFLOW_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (rollout,) = (tmp_path / "jobs/j").glob("hello-file*")
    result = json.loads((rollout / "result.json").read_text())
    assert result["house_rules"] == "rules.txt" and result["rewards"] == {"reward": 1.0}
    events = (rollout / "events.jsonl").read_text()
    assert "Be brief." in events and "The rules of the house are in /rules.txt" in events
    refused = subprocess.run(
        [*argv[:-4], "--house-rules", "none.txt", "-e", "local"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1 and "house_rules: " in refused.stderr and "is no file" in refused.stderr
