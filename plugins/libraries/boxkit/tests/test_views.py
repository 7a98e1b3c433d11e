"""Whether a box can limit what one program sees is found out in the box, before a program runs unlimited."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import benchflow_boxkit.inside
from benchflow_core.contracts import ImageRequest, Sandbox, SandboxContext, StartRequest

local = pytest.importorskip("benchflow_sandbox_local.plugin", reason="the embedded sandbox is not installed")
_TRY = "import sys; sys.path.insert(0, '/kit'); from benchflow_boxkit.inside import view; print(view.refusal('/trial'))"


@pytest_asyncio.fixture(params=["yes", "no"])
async def nesting(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[str, Sandbox, str]]:
    """A box whose root may mount, or may not; and its Python."""
    (tmp_path / "work").mkdir()
    context = SandboxContext(tmp_path / "work", tmp_path / "cache", options={"nesting": request.param})
    provider = local.benchflow_sandbox().open(context)
    image = await provider.prepare(ImageRequest())
    yield request.param, await provider.start(image, StartRequest(name="view")), image.runtimes["python"]
    await provider.close()


async def test_a_box_says_whether_it_can_limit_a_program(nesting: tuple[str, Sandbox, str]) -> None:
    may, box, python = nesting
    await box.upload(Path(benchflow_boxkit.inside.__file__).parent, "/kit/benchflow_boxkit/inside")
    done = await box.exec([python, "-c", _TRY])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.decode().strip() == ("" if may == "yes" else "unshare: Operation not permitted")
