"""Parts that need no box: recipes, patience, rows of a snapshot."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from benchflow_boxkit.build_folder import BOX, OWN
from benchflow_boxkit.inside import delta
from benchflow_boxkit.pacing import Pace
from benchflow_boxkit.recipe import DOCKERFILE, compose
from benchflow_boxkit.snapshots import _parts, _reverted
from benchflow_core.contracts import ImageRequest, Layer
from benchflow_core.errors import (
    CapabilityMissing,
    ConfigurationError,
    SandboxQuotaExceeded,
    SandboxRateLimited,
    SandboxStartError,
    TaskError,
)


def _task(tmp_path: Path, text: str, **files: str) -> ImageRequest:
    folder = tmp_path / "task"
    folder.mkdir(exist_ok=True)
    for name, content in {"Dockerfile": text, **files}.items():
        (folder / name).write_text(content)
    return ImageRequest(context=folder, dockerfile=folder / "Dockerfile")


@pytest.mark.parametrize(
    ("line", "cleaned"),
    [
        ("COPY . /app", True),
        ("COPY * /app/", True),
        ("COPY */* /app/", True),
        ("COPY x/.. /app/", True),
        ("COPY --from=a . /app/", False),
        ("COPY <<E /x\nCOPY . /y\nE", False),
        ("RUN x \\\n# no\n COPY . /y", False),
        ("COPY --chown=a ./ \\\n /app", True),
        ('ADD ["x", ".", "/app"]', True),
        ("COPY $WHAT /app", True),
        ("COPY x .", False),
        ("COPY .bashrc /root/", False),
    ],
)
def test_what_a_copy_of_everything_takes_along_of_ours_is_removed(tmp_path: Path, line: str, cleaned: bool) -> None:
    """Before the next command of the task runs, and at the end as root."""
    recipe = compose(_task(tmp_path, f"FROM a AS a\nUSER me\nFROM a\n{line}\nRUN after\n"), (), {})
    ours = '"clean"]\nUSER me\nRUN after\n'
    assert ('"keep", "clean"]' in recipe.text, ours in recipe.text) == (cleaned, cleaned)
    at = recipe.text.splitlines().index("RUN after")
    assert recipe.numbers[at] == 4 + line.count("\n") + 1


def test_the_key_of_an_image_is_its_content(tmp_path: Path) -> None:
    first = compose(_task(tmp_path, "FROM a\nCOPY x /x\n", x="1"), (), {})
    assert compose(_task(tmp_path, "FROM a\nCOPY x /x\n", x="1"), (), {}).key == first.key
    assert compose(_task(tmp_path, "FROM a\nCOPY x /x\n", x="2"), (), {}).key != first.key
    layer = Layer(key="agent@1", prefix="/opt/benchflow/agents/a", files={"f": b"1"})
    again = _task(tmp_path, "FROM a\nCOPY x /x\n", x="1")
    with_layer = compose(again, (layer,), {})
    other = compose(again, (Layer(key="agent@1", prefix=layer.prefix, files={"f": b"2"}),), {})
    assert len({first.key, with_layer.key, other.key}) == 3


def test_the_folder_holds_everything_the_dockerfile_names(tmp_path: Path) -> None:
    layer = Layer(
        key="agent@1", prefix="/opt/benchflow/agents/a", files={"bin/run": b"#!/bin/sh\n"}, install=(("true",),)
    )
    request = _task(tmp_path, "FROM a\nCOPY x /x\n", x="1", skipped="no", **{".dockerignore": "skipped\n"})
    compose(request, (layer,), {}).write(out := tmp_path / "out", tmp_path / "cache")
    text = (out / DOCKERFILE).read_text()
    assert (out / "Dockerfile").read_text() == "FROM a\nCOPY x /x\n", "the task's own is as it was"
    assert text.startswith(f"FROM a\nCOPY {BOX} /opt/benchflow/boxkit\nCOPY x /x\n") and "USER root" in text
    assert (out / "x").read_text() == "1" and not (out / "skipped").exists()
    assert os.access(out / f"{OWN}/files/0/bin/run", os.X_OK)
    assert (out / f"{BOX}/code/benchflow_boxkit/inside/supervisor.py").is_file()
    for word in (part for line in text.splitlines() if line.startswith("COPY .") for part in line.split()[1:2]):
        assert (out / word).exists(), word


def test_build_arguments_become_defaults(tmp_path: Path) -> None:
    request = _task(tmp_path, "ARG TAG=1\nFROM a:$TAG\nARG WHO\nRUN echo $WHO\n")
    text = compose(ImageRequest(**{**_fields(request), "build_args": {"TAG": "2", "WHO": 'a "b"'}}), (), {}).text
    assert 'ARG TAG="2"' in text and 'ARG WHO="a \\"b\\""' in text


def _fields(request: ImageRequest) -> dict:
    return {name: getattr(request, name) for name in ("context", "dockerfile")}


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ImageRequest(), ConfigurationError),
        (ImageRequest(compose=Path("compose.yaml")), CapabilityMissing),
        (ImageRequest(image="a b; rm"), TaskError),
        (ImageRequest(dockerfile=Path("/no/such/Dockerfile")), TaskError),
    ],
)
def test_what_cannot_be_an_image_is_refused(request_: ImageRequest, error: type[Exception]) -> None:
    with pytest.raises(error):
        compose(request_, (), {})


def test_a_layer_stays_below_its_prefix() -> None:
    for layer in (Layer("a", "/opt/benchflow/boxkit"), Layer("a", "/x"), Layer("a", "/opt/a", files={"../b": b""})):
        with pytest.raises(ConfigurationError):
            compose(ImageRequest(image="a"), (layer,), {})


async def test_a_refusal_holds_back_everybody() -> None:
    pace, calls, began = Pace(8), [], time.monotonic()

    async def call() -> int:
        calls.append(time.monotonic() - began)
        if len(calls) == 1:
            raise SandboxRateLimited("too many", details={"retry_after": 0.6})
        return 1

    first = asyncio.ensure_future(pace.run(call))
    await asyncio.sleep(0.05)
    assert await asyncio.gather(first, *(pace.run(call) for _ in range(5))) == [1] * 6
    assert min(calls[1:]) >= 0.6 and pace.refusals == 1


async def test_only_what_is_worth_it_is_tried_again() -> None:
    for error, expected in (
        (SandboxStartError("no", retryable=False), 1),
        (SandboxStartError("maybe"), 2),
        (SandboxQuotaExceeded("full"), 2),
    ):
        calls = 0

        async def call(error: Exception = error) -> None:
            nonlocal calls
            calls += 1
            raise error

        with pytest.raises(type(error)):
            await Pace(1, tries=2).run(call)
        assert calls == expected


async def test_no_more_than_so_many_at_once() -> None:
    now = most = 0

    async def call() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1

    pace = Pace(4)
    await asyncio.gather(*(pace.run(call) for _ in range(64)))
    assert most == 4


async def test_a_client_that_loses_a_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """E2B's SDK loses about one in ten, in the middle of an upload."""
    monkeypatch.setattr("benchflow_boxkit.pacing._SAY_AGAIN", 0.05)
    heard = asyncio.Event()

    async def call() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            heard.set()
        await asyncio.sleep(30)

    task = asyncio.create_task(Pace(1).run(call))
    await asyncio.sleep(0.01)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=10)
    assert done and task.cancelled() and heard.is_set()


def test_rows_are_read_back_and_reverted(tmp_path: Path) -> None:
    info = os.stat(__file__)
    content = Path(__file__).read_bytes()
    rows = [
        delta.encode("gone", "/etc/a"),
        delta.encode("gone", "/etc/a/b"),
        delta.encode("dir", "/z", os.stat(tmp_path)),
        delta.encode("file", "/z/f", info) + content,
        delta.encode("link", "/etc/l", os.lstat(__file__), "/target"),
        delta.encode("end", ""),
    ]
    (tmp_path / "rows").write_bytes(b"".join(rows))
    order: list[str] = []
    data = bytearray()
    reader = delta.Reader(lambda row: order.append(row[1]), data.extend)
    for part in _parts(tmp_path, frozenset()):
        reader.feed(part)
    assert reader.done and order == ["/etc/a/b", "/etc/a", "/etc/l", "/z", "/z/f"] and bytes(data) == content
    order.clear()
    reader = delta.Reader(lambda row: order.append(row[1]), data.extend)
    for part in _parts(tmp_path, frozenset({"/z/f", "/etc/a"})):
        reader.feed(part)
    assert order == ["/etc/l", "/z"]


def test_what_stands_in_the_way_of_a_reverted_path_goes() -> None:
    link = ["link", "/usr/lib", 0, 0, "/tmp", [0, 0], [True, True], 0]
    assert _reverted(link, frozenset({"/usr/lib/python3"})) and not _reverted(link, frozenset({"/usr/bin"}))


@pytest.mark.parametrize("path", ["relative", "/a/../b", "/a//b", "/.", "/a\0b"])
def test_unsafe_rows_are_refused(path: str) -> None:
    with pytest.raises(Exception, match=r"unsafe|sense"):
        delta.Reader(lambda _: None, lambda _: None).feed(delta.encode("dir", path))


def test_the_bench_can_never_be_a_backend() -> None:
    import tomllib

    for name in ("testing/clouds", "libraries/boxkit"):
        project = tomllib.loads((Path(__file__).parents[3] / name / "pyproject.toml").read_text())["project"]
        assert not [group for group in project.get("entry-points", {}) if group.startswith("benchflow.")]
