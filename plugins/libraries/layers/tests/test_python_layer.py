"""The Python that Python agents bring along: how it is put together, and that its pins can still be had."""

from __future__ import annotations

import hashlib
import http.server
import json
import platform
import runpy
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from benchflow_layers import PYTHON_LAYER

from benchflow_core.plugins import registry

FETCH = Path(__file__).parents[1] / "benchflow_layers" / "pip" / "fetch.py"
PINS = json.loads(PYTHON_LAYER.files["packages.json"])


@pytest.fixture(scope="module")
def fetch():
    return runpy.run_path(str(FETCH))


@pytest.fixture
def served(tmp_path):
    """A folder over HTTP, as a mirror is."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_only_what_has_the_pinned_digest_is_taken(fetch, served, tmp_path):
    (tmp_path / "one.deb").write_bytes(b"content")
    right = hashlib.sha256(b"content").hexdigest()
    assert fetch["download"]([f"{served}/missing", served], "one.deb", right) == b"content"
    with pytest.raises(SystemExit, match=r"one\.deb: the digest is another"):
        fetch["download"]([served], "one.deb", "0" * 64)
    with pytest.raises(SystemExit, match="HTTP Error 404"):
        fetch["download"]([served], "two.deb", right)


def test_a_package_is_read_as_debian_writes_it(fetch):
    def member(name: bytes, data: bytes) -> bytes:
        return name.ljust(48) + str(len(data)).encode().ljust(10) + b"`\n" + data + b"\n" * (len(data) % 2)

    package = b"!<arch>\n" + member(b"debian-binary", b"2.0") + member(b"data.tar.xz/", b"odd")
    assert fetch["member"](package, b"data.tar.xz") == b"odd"
    with pytest.raises(SystemExit, match=r"has no control\.tar"):
        fetch["member"](package, b"control.tar")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("usr/bin/python3.13", "/p/bin/python3.13"),
        ("usr/lib/python3.13/os.py", "/p/lib/python3.13/os.py"),
        ("usr/lib/x86_64-linux-gnu/libssl.so.3", "/p/lib/native/libssl.so.3"),
        ("usr/lib64/ld-linux-x86-64.so.2", "/p/lib/native/ld-linux-x86-64.so.2"),
        ("usr/share/doc/libssl3/copyright", None),
        ("etc/python3.13/sitecustomize.py", None),
    ],
)
def test_what_goes_where(fetch, name, place):
    found = fetch["place_of"](name, Path("/p"), Path("/p/lib/native"))
    assert found == (Path(place) if place else None)


@pytest.mark.agents
def test_the_packages_of_python_can_still_be_had(fetch):
    places = fetch["mirrors"]()
    if not places or platform.machine() not in PINS:
        pytest.skip("this machine takes no packages of Debian's")
    for path, _ in PINS[platform.machine()]:
        request = urllib.request.Request(f"{places[0]}/{path}", method="HEAD")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.status == 200
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} is gone: pin what replaced it with scripts/pin_python.py") from error
        except OSError as error:
            pytest.skip(f"no mirror answers here: {error}")


@pytest.mark.agents
def test_the_pins_of_python_agents_still_resolve(tmp_path):
    uv = shutil.which("uv") or Path(sys.executable).with_name("uv")
    if not Path(uv).exists():
        pytest.skip("there is no uv here")
    found = {}
    for agent in registry().all("agent"):
        for layer in agent.spec.layers:
            if "requirements.txt" in layer.files:
                found[agent.name] = layer.files["requirements.txt"].decode()
    assert found
    for name, text in found.items():
        indexed = [line for line in text.splitlines() if " @ " not in line]
        assert all("==" in line for line in indexed), f"{name}: {indexed}"
        (tmp_path / "in.txt").write_text("\n".join(indexed))
        argv = [uv, "pip", "compile", "--quiet", "--no-deps", "--no-header", "--python-version", "3.13", "in.txt"]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
        if done.returncode and ("dns error" in done.stderr or "error sending request" in done.stderr):
            pytest.skip("no package index answers here")
        assert done.returncode == 0, f"{name}: {done.stderr}"
        kept = [line for line in done.stdout.splitlines() if "==" in line and not line.lstrip().startswith("#")]
        assert len(kept) == len(indexed), name
