"""The pages of the services: their tables are up to date, and their commands run as written."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SCRIPTS = Path(__file__).parents[1] / "scripts"


def load(name):
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(f"claw_{name}", SCRIPTS / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tables, contract = load("tables"), load("contract")


@pytest.mark.parametrize("service", tables.PAGES)
def test_the_table_is_up_to_date(service):
    _, old, new = tables.page(service)
    assert old == new, f"run {SCRIPTS.relative_to(ROOT)}/tables.py"


@pytest.mark.parametrize("service", [name for name, document in tables.PAGES.items() if document])
def test_the_contract_is_the_discovery_document(service):
    folder = Path(import_module(f"benchflow_service_claw_{service}").__file__).parent
    kept = json.loads((folder / "contract.json").read_text())
    assert kept == contract.contract(*tables.PAGES[service]), f"run {SCRIPTS.relative_to(ROOT)}/contract.py"


@pytest.mark.parametrize("service", tables.PAGES)
def test_the_commands_and_the_scenario_of_the_page(service, tmp_path):
    text = (ROOT / "docs" / "services" / f"{service}.md").read_text()
    [scenario] = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (tmp_path / "task.json").write_text(scenario)
    [commands] = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    seeding = f"claw-{service} --db task.db seed --scenario task.json"
    for line in [*commands.splitlines(), seeding]:
        program, *arguments = shlex.split(line)
        code = f"from benchflow_service_{program.replace('-', '_')}.cli import main; main()"
        done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        if " diff " in line:
            assert json.loads(done.stdout) == {"added": [], "removed": [], "changed": []}
