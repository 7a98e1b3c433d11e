"""The conformance suite, and the service itself on a real port."""

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from benchflow_testing_kit import ServiceConformance

import {{module}}.store


class TestService(ServiceConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "{{name}}"

    def test_it_stores_what_it_is_given(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        server = subprocess.Popen(
            [sys.executable, {{module}}.store.__file__, str(port), str(tmp_path / "data.json")]
        )
        try:
            base = f"http://127.0.0.1:{port}"
            wait_for(f"{base}/health")
            urllib.request.urlopen(urllib.request.Request(f"{base}/color", data=b"blue", method="PUT")).close()
            assert urllib.request.urlopen(f"{base}/color").read() == b"blue"
        finally:
            server.kill()
            server.wait()


def wait_for(url: str) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(url).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")
