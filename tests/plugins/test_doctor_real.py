"""The doctor on everything that is installed here: it must never be what is ill."""

from __future__ import annotations

import json
import subprocess
import sys


def test_the_doctor_finds_every_installed_plugin_well():
    argv = [sys.executable, "-m", "benchflow_core.cli.main", "plugins", "doctor", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    told = json.dumps(json.loads(done.stdout))
    for name in ("oracle", "scripted", "local", "harbor", "task-md", "script", "relay", "scenes"):
        assert f'"{name}"' in told
