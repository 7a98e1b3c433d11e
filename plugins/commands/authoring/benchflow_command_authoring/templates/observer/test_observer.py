"""The conformance suite, and what is noted."""

from pathlib import Path

import pytest
from benchflow_core.contracts import JobStarted, ObserverSpec
from benchflow_testing_kit import ObserverConformance


class TestObserver(ObserverConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    def test_a_job_is_noted(self, spec: ObserverSpec, tmp_path: Path) -> None:
        spec.on_event(JobStarted(time=0.0, job="job-1", job_dir=tmp_path, planned=3, config={}))
        assert (tmp_path / "{{name}}.log").read_text() == "1970-01-01T00:00:00+00:00 job-1 started, 3 rollouts planned\n"
