"""The conformance suite runs real rollouts in your workers."""

import pytest
from benchflow_core.contracts import ExecutorContext, ExecutorSpec, PlanItem
from benchflow_core.errors import WorkerLost
from benchflow_testing_kit import ExecutorConformance


class TestExecutor(ExecutorConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    async def test_python_that_cannot_work_is_a_lost_worker(self, spec: ExecutorSpec, tmp_path) -> None:
        executor = spec.open(ExecutorContext(tmp_path, 1, {"python": "/bin/false"}, {}))
        with pytest.raises(WorkerLost):
            await executor.run(PlanItem("one", {}, {}, "sha256:0", ()), lambda message: None)
        await executor.close()
