"""Jobs that an older version kept are still read, shown, compared, resumed and reproduced.

The sample in `tests/data/stored_jobs` is never made anew: it says how files looked that people have.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.own_names
SAMPLE = Path(__file__).parents[1] / "data/stored_jobs"
JOBS = {"fresh": None, "shared": 1.0, "separate": 1.0, "world": 1.0, "learner": 1.0, "scored": 1.0}
"""Each job with its score; one of several arms has a score per arm, and none of its own."""


@pytest.fixture
def stored(tmp_path) -> Path:
    """A copy whose files name the folder that they lie in."""
    folder = shutil.copytree(SAMPLE, tmp_path / "stored")
    for path in folder.rglob("*.json*"):
        path.write_text(path.read_text().replace("@FOLDER@", str(folder)))
    return folder


def rollout_of(job: Path) -> Path:
    return next(path.parent for path in sorted(job.glob("*/result.json")))


def test_all_are_listed_with_their_scores(bench, stored):
    rows = bench("eval", "list", stored, "--json").json
    assert {row["job_name"]: row["score_ratio"] for row in rows} == JOBS


@pytest.mark.parametrize("name", JOBS)
def test_a_job_and_a_rollout_are_shown(bench, stored, name):
    assert f"Job {name}: " in bench("eval", "show", stored / name).out
    shown = bench("eval", "show", rollout_of(stored / name), "--json")
    assert shown.code == 0, shown.err
    assert bench("eval", "metrics", stored / name, "--json").json["score_ratio"] == JOBS[name]


def test_what_policies_worlds_learners_and_verdicts_left_is_still_there(stored):
    results = {name: json.loads((rollout_of(stored / name) / "result.json").read_text()) for name in JOBS}
    assert [results[n]["verifier_isolation"] for n in ("fresh", "shared", "separate")] == [
        "fresh",
        "shared",
        "separate",
    ]
    assert results["world"]["world"] and results["scored"]["verdict"]["number"] == 2


def test_two_are_compared(bench, stored):
    done = bench("eval", "compare", f"{stored}/fresh:nop", stored / "scored", "--json")
    assert done.code == 0, done.err
    assert "0.0" in done.out and "1.0" in done.out


def test_one_is_resumed(bench, stored):
    lost = rollout_of(stored / "fresh")
    before = {p.parent.name: p.read_text() for p in (stored / "fresh").glob("*/result.json") if p.parent != lost}
    shutil.rmtree(lost)
    done = bench("eval", "resume", stored / "fresh", "--allow-drift", "--json")
    assert done.code == 0, done.err
    assert (done.json["total"], done.json["scored"]) == (4, 4)
    assert {n: (stored / "fresh" / n / "result.json").read_text() for n in before} == before


def test_a_rollout_is_reproduced(bench, stored, tmp_path):
    done = bench("eval", "reproduce", rollout_of(stored / "scored"), "--json")
    assert done.code == 0, done.err
