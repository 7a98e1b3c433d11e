"""The conformance suite, and a plan run by a real worker."""

from pathlib import Path

import pytest
from benchflow_core.contracts import ExecutorContext, ExecutorSpec, PlanItem
from benchflow_core.testing import ExecutorConformance

WORKER = """#!/bin/sh
if grep -q '"id": "2"'; then echo broken >&2; exit 3; fi
echo /rollouts/done
"""


class TestExecutor(ExecutorConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    async def test_every_item_is_run(self, spec: ExecutorSpec, tmp_path: Path) -> None:
        worker = tmp_path / "worker"
        worker.write_text(WORKER)
        worker.chmod(0o755)
        items = [PlanItem(str(n), {}, {}, "sha256:0", ()) for n in range(4)]
        context = ExecutorContext(tmp_path, concurrency=2, options={"worker": str(worker)})
        found = {result.id: result async for result in spec.run(items, context)}
        assert sorted(found) == ["0", "1", "2", "3"]
        assert found["0"].rollout_dir == "/rollouts/done"
        assert found["2"].rollout_dir is None and "broken" in found["2"].error["message"]
