"""The conformance suite: states of the box, and the verdict each of them deserves."""

import pytest
from benchflow_core.errors import VerifierError
from benchflow_testing_kit import VerifierCase, VerifierConformance

PARAMS = {"path": "out.txt", "expected": "hello"}


class TestVerifier(VerifierConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    @pytest.fixture
    def cases(self) -> list[VerifierCase]:
        return [
            VerifierCase("right", {"reward": 1.0}, "echo hello >out.txt", params=PARAMS),
            VerifierCase("wrong", {"reward": 0.0}, "echo goodbye >out.txt", params=PARAMS),
            VerifierCase("missing", {"reward": 0.0}, params=PARAMS),
            VerifierCase("a link", {"reward": 0.0}, "echo hello >real; ln -s real out.txt", params=PARAMS),
            VerifierCase("a folder", {"reward": 0.0}, "mkdir out.txt", params=PARAMS),
            VerifierCase("huge", {"reward": 0.0}, "dd if=/dev/zero of=out.txt bs=1M count=3", params=PARAMS),
            VerifierCase("no expectation", VerifierError, params={"path": "out.txt"}),
        ]
