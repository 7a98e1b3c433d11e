"""The kernel only gets smaller and plainer: no figure of `tests/data/ratchets.json` may rise.

`python scripts/ratchets.py` prints the figures; `--write` keeps those that fell. A figure is raised by hand only, together with
the reason.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
import ratchets

KEPT = ratchets.kept()


@pytest.fixture(scope="module")
def now(tmp_path_factory) -> dict[str, int]:
    return ratchets.figures(tmp_path_factory.mktemp("ratchets"))


def test_no_figure_rises(now):
    print(ratchets.table(now, KEPT))
    risen = [f"{name}: {value:,}, may be {KEPT[name]:,}" for name, value in now.items() if value > KEPT[name]]
    assert risen == []


def test_there_are_few_distributions():
    assert len(ratchets.distributions()) <= 50
