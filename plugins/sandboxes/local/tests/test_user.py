"""The same boxes for a user without privileges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import asyncio, os
from pathlib import Path
from benchflow_core.contracts import ImageRequest, NetworkPolicy, SandboxContext, StartRequest
from benchflow_core.errors import CapabilityMissing
from benchflow_sandbox_local.plugin import benchflow_sandbox

MAKE = "git init -q %s && git -C %s -c user.name=x -c user.email=x commit -qm x --allow-empty"

async def main():
    home = Path(os.environ["HOME"])
    spec = benchflow_sandbox()
    print(spec.available().reason, "users" in spec.capabilities(), "snapshot" in spec.capabilities())
    (home / "work").mkdir()
    (home / "secret").write_text("mine")
    provider = spec.open(SandboxContext(home / "work", home / "cache"))
    image = await provider.prepare(ImageRequest())
    box = await provider.start(image, StartRequest("test"))
    async def sh(text):
        done = await box.exec(["sh", "-c", text])
        return (done.stdout + done.stderr).decode().strip()
    print(await sh("id -u; touch /usr/bin/x /etc/x /opt/x /usr/local/lib/x && echo written"))
    print(await sh("rm /usr/bin/env && ls /usr/bin/env 2>&1 | grep -c 'No such'"))
    print(await sh(f"cat {home}/secret; cat /etc/shadow | cut -c1-7 | head -1; ls /home /root"))
    print(await sh("unshare -U true; mount -t tmpfs none /mnt; rmdir /run/mount 2>/dev/null; echo >/proc/sys/kernel/core_pattern"))
    try:
        await box.exec(["true"], user="nobody")
    except CapabilityMissing as error:
        print("refused:", error.message)
    snapshot = await box.snapshot("x")
    print(sorted(c.path for c in snapshot.changes))
    copy = await provider.start(snapshot.image, StartRequest("copy", revert=("/usr/bin/env", "/usr/bin/x")))
    print((await copy.exec(["sh", "-c", "ls /usr/bin/env /usr/bin/x /etc/x 2>/dev/null"])).stdout.decode().split())
    (home / "Dockerfile").write_text(f"FROM a\\nRUN {MAKE % ('/srv/repo', '/srv/repo')}")
    image = await provider.prepare(ImageRequest(dockerfile=home / "Dockerfile", allow_substitute=True))
    box = await provider.start(image, StartRequest("git"))
    print(await sh(f"git clone -q /srv/repo /tmp/c && echo cloned; {MAKE % ('/data/repo', '/data/repo')}"))
    box = await provider.start((await box.snapshot("y")).image, StartRequest("git2"))
    print(await sh("for r in srv data; do git clone -q /$r/repo /tmp/$r && echo cloned; done"))
    await provider.close()
    state = home / "cache/sandbox-local"
    print([list((state / name).iterdir()) for name in ("boxes", "trash", "snaps")])

asyncio.run(main())
"""

MANY = """
import asyncio, os, resource
from pathlib import Path
from benchflow_core.contracts import ImageRequest, SandboxContext, StartRequest
from benchflow_sandbox_local.plugin import benchflow_sandbox

async def main():
    home = Path(os.environ["HOME"])
    (home / "work").mkdir()
    for number in range(400):
        path = home / "tree" / str(number % 50) / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 70_000)
    provider = benchflow_sandbox().open(SandboxContext(home / "work", home / "cache"))
    box = await provider.start(await provider.prepare(ImageRequest()), StartRequest("many"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    await asyncio.gather(*(box.upload(home / "tree", f"/data/{n}") for n in range(2)))
    print((await box.exec(["sh", "-c", "find /data -type f | wc -l"])).stdout.decode().strip())
    await provider.close()

asyncio.run(main())
"""


def test_a_normal_user_gets_the_same_boxes(as_user: Any) -> None:
    done = as_user("-c", SCRIPT)
    if "stage 3" in done.stdout:
        pytest.skip("user namespaces are forbidden to users here")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("stage 1") and lines[0].endswith("one user, root False True"), done.stderr
    assert lines[1:5] == ["0", "written", "1", "root:*:"] or "No such file" in lines[4], lines
    text = done.stdout
    assert "mine" not in text and "root:*:" in text
    assert (
        text.count("Operation not permitted") + text.count("permission denied") >= 2 and "Read-only file system" in text
    )
    assert "refused: This box has one user" in text
    assert "['/etc/x', '/opt/x', '/usr/bin/env', '/usr/bin/x', '/usr/local/lib/x']" in text
    assert "['/etc/x', '/usr/bin/env']" in text
    assert text.count("cloned\n") == 3, "repositories of the image and of an agent"
    assert lines[-1] == "[[], [], []]", "nothing is left, work directories of mode 000 included"


@pytest.mark.slow
def test_a_normal_user_passes_the_suite(as_user: Any, pytestconfig: pytest.Config) -> None:
    here = Path(__file__).parent / "test_conformance.py"
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(pytestconfig.inipath), str(here)]
    done = as_user(*arguments)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_few_descriptors_may_be_under_way_and_many_files_arrive(as_user: Any) -> None:
    """The kernel counts a normal user's in all sockets together, against the sender's limit of open files."""
    done = as_user("-c", MANY)
    if "user namespaces" in done.stderr:
        pytest.skip("user namespaces are forbidden to users here")
    assert done.stdout.splitlines()[-1:] == ["800"], done.stderr[-2000:]
