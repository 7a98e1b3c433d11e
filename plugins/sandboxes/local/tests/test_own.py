"""Files of an image that behave as if the box had written them: git clones by hard links, links, locks."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from benchflow_core.contracts import ImageRequest, StartRequest

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

GIT = "git -c user.name=x -c user.email=x -C"
MAKE = f"git init -q {{0}} && echo hi >{{0}}/f && {GIT} {{0}} add f && {GIT} {{0}} commit -qm x"
CLONE = "rm -rf /tmp/c && git clone -q {0} /tmp/c && cat /tmp/c/f"
PLACES = ("/app/repo", "/srv/repo", "/opt/repo")
DOCKERFILE = f"""FROM a AS first
WORKDIR /app
RUN {MAKE.format("/srv/repo")}
FROM first
RUN {CLONE.format("/srv/repo")}
RUN {MAKE.format("/app/repo")} && {MAKE.format("/opt/repo")}
RUN echo 1 >one && ln one two && chmod 4751 one && echo 3 >three && touch -d 2001-01-01 one /app && chown 7:8 three || true
"""


async def sh(box: Any, script: str) -> str:
    done = await box.exec(["sh", "-c", script], cwd="/")
    assert done.exit_code == 0, (script, done.stderr)
    return str(done.stdout.decode())


@pytest.fixture
async def image(provider: Any, tmp_path: Path) -> Any:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    return await provider.prepare(ImageRequest(tmp_path, tmp_path / "Dockerfile", allow_substitute=True))


async def test_repositories_are_cloned(provider: Any, image: Any) -> None:
    """Of the image and of an agent, where they were made and in a box on a snapshot."""
    box = await provider.start(image, StartRequest("agent"))
    for place in PLACES:
        assert await sh(box, CLONE.format(place)) == "hi\n"
    await sh(box, f"{MAKE.format('/data/deep/own')}; {GIT} /opt/repo commit -q --allow-empty -m more; rm -rf /tmp/c")
    snapshot = await box.snapshot("x")
    changed = {change.path for change in snapshot.changes}
    assert "/data/deep/own" in changed and not any(path.startswith(("/app", "/srv")) for path in changed), changed
    copy = await provider.start(snapshot.image, StartRequest("verifier"))
    for place in (*PLACES, "/data/deep/own"):
        assert await sh(copy, CLONE.format(place)) == "hi\n"
    assert await sh(copy, "rm -rf /tmp/c; git -C /opt/repo log --oneline | wc -l") == "2\n"
    assert (await copy.snapshot("y")).changes == ()


async def test_files_of_the_working_directory_are_as_they_were(provider: Any, image: Any) -> None:
    box = await provider.start(image, StartRequest("test"))
    names = "one two three repo .".split()
    look = f"cd /app; ls -A; stat -c '%a %u %g %h %s %Y' {' '.join(names)}"
    owner = "7 8" if len(box.info.users) > 1 else "0 0"
    rows = (await sh(box, look)).splitlines()
    assert rows[:4] == ["one", "repo", "three", "two"]
    assert rows[4] == rows[5] == "4751 0 0 2 2 978307200" and rows[6].startswith(f"644 {owner} 1 2 ")
    assert rows[-1].startswith("755 0 0 ") and rows[-1].endswith(" 978307200")
    await sh(box, "cd /app; i=$(stat -c %i three); ln three four; [ three -ef four ] && [ $i = $(stat -c %i four) ]")
    await sh(box, "cd /app; [ one -ef two ]; echo more >>one; grep -q more two")


async def test_what_is_too_much_is_left_alone(provider: Any, start: Any) -> None:
    """A working directory with many files, and links in place of folders, change nothing but inode numbers."""
    box = await start()
    many = "cd /app; for n in $(seq 220); do echo $n >file$n; done"
    await sh(box, f"{many}; {MAKE.format('/app/repo')}; {MAKE.format('/srv/other')}")
    snapshot = await box.snapshot("x")
    await sh(box, "cd /srv/other/.git; mv objects /srv/moved; ln -s /etc objects")
    linked = await box.snapshot("y")
    copy = await provider.start(snapshot.image, StartRequest("many"))
    assert await sh(copy, "ls /app | wc -l; cat /app/file7") == "221\n7\n"
    assert await sh(copy, CLONE.format("/app/repo")) == "hi\n", "its objects are few"
    fakes = "import os\nfor n in range(510):\n  for d in ('objects', 'refs'): os.makedirs(f'/data/{n}/{d}')\n  open(f'/data/{n}/HEAD', 'w')"
    await sh(box, f'python3 -c "{fakes}"')
    assert len((await box.snapshot("fakes")).image.meta["repositories"]) == 500
    again = await provider.start(linked.image, StartRequest("linked"))
    assert (await again.snapshot("z")).changes == ()
