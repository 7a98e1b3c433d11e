"""The learner store on disk: what is stamped, what is dropped, and what a kill at any moment leaves."""

from __future__ import annotations

import multiprocessing
import shutil
from xml.etree import ElementTree

import pytest
from benchflow_feature_standard.learning.curve import learning_curve
from benchflow_feature_standard.learning.store import LEARNER_FILE, LearnerStore

from benchflow_core.errors import ConfigurationError


@pytest.fixture
def left(tmp_path):
    """A folder as a rollout leaves it."""
    count = iter(range(1000))

    def make(**files: str):
        root = tmp_path / f"left-{next(count)}"
        for name, text in files.items():
            path = root / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root

    return make


def test_an_improvement_is_stamped_and_a_regression_is_dropped(tmp_path, left):
    store = LearnerStore.open(tmp_path / "store")
    assert (store.head, store.best, len(store.generations)) == (0, None, 1)
    told = [
        store.offer(0.4, left(memory__a="one"), rollout="r1", task="t1"),
        store.offer(0.6, left(memory__a="two", skills__x="s"), rollout="r2"),
        store.offer(0.5, left(memory__a="worse"), rollout="r3"),
        store.offer(0.6, left(memory__a="two", skills__x="s"), rollout="r4"),
        store.offer(0.6, left(memory__a="three", skills__x="s"), rollout="r5"),
        store.offer(None, None, rollout="r6"),
    ]
    assert [step.verdict for step in told] == [
        "stamped",
        "stamped",
        "reverted",
        "unchanged",
        "stamped",
        "unscored",
    ]
    assert [step.generation for step in told] == [1, 2, 2, 2, 3, 3]
    assert told[2].changes == {"memory/a": "changed", "skills/x": "removed"}, "what was dropped is told"
    assert (store.current / "memory/a").read_text() == "three" and store.best == 0.6
    again = LearnerStore.read(tmp_path / "store")
    assert again.steps == store.steps and again.generations == store.generations and again.head == 3


def test_the_same_rollout_counts_once(tmp_path, left):
    store = LearnerStore.open(tmp_path / "store")
    first = store.offer(1.0, left(memory__a="x"), rollout="r1")
    assert store.offer(1.0, left(memory__a="x"), rollout="r1") == first and len(store.steps) == 1
    store.offer(None, None, rollout="r2")
    assert store.offer(1.0, left(memory__a="y"), rollout="r2").verdict == "stamped", "it was run again, and scored"


@pytest.mark.parametrize("moment", ["staged", "named"])
def test_a_kill_while_a_generation_is_made_leaves_the_old_state(tmp_path, left, moment):
    store = LearnerStore.open(tmp_path / "store")
    store.offer(0.5, left(memory__a="old"), rollout="r1")
    index = (store.root / LEARNER_FILE).read_bytes()
    store.offer(0.7, left(memory__a="new", memory__b="more"), rollout="r2")
    (store.root / LEARNER_FILE).write_bytes(index)
    if moment == "staged":
        store.folder(2).rename(store.root / "generations/.0002.new")
    killed = LearnerStore.read(store.root)
    assert (killed.head, killed.best) == (1, 0.5) and (killed.current / "memory/a").read_text() == "old"
    assert killed.offer(0.9, left(memory__a="third"), rollout="r3").generation == 2
    assert [p.name for p in (killed.current / "memory").iterdir()] == ["a"], "nothing of the leftover got in"


def _offers(root, who):
    for number in range(4):
        state = root.parent / f"{who}-{number}"
        (state / "memory").mkdir(parents=True)
        (state / "memory/note.md").write_text(f"{who}-{number}")
        LearnerStore.open(root).offer(0.5, state, rollout=f"{who}-{number}")


def test_several_processes_lose_nothing(tmp_path):
    root = tmp_path / "store"
    workers = [multiprocessing.get_context("fork").Process(target=_offers, args=(root, who)) for who in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    store = LearnerStore.open(root)
    assert len(store.steps) == 12 and store.head == 12
    for generation in store.generations[1:]:
        assert (store.folder(generation.number) / "memory/note.md").read_text() == generation.rollout


def test_going_back_and_what_differs(tmp_path, left):
    store = LearnerStore.open(tmp_path / "store", start=left(skills__greet__SKILL="first\n"))
    store.offer(1.0, left(skills__greet__SKILL="second\n", memory__bin="\0"), rollout="r1")
    assert store.changes(0, 1) == {"memory/bin": "added", "skills/greet/SKILL": "changed"}
    assert "-first\n+second\n" in store.diff(0, 1) and "(binary, 1 bytes)" in store.diff(0, 1)
    step = store.restore(0)
    assert (step.verdict, store.head, store.best) == ("restored", 0, None)
    assert store.offer(0.1, left(memory__a="x"), rollout="r2").verdict == "stamped", "measured by the one in force"
    assert store.generations[2].parent == 0
    with pytest.raises(ConfigurationError, match=r"no generation 9. There are 0 to 2"):
        store.restore(9)


def test_links_are_not_followed(tmp_path, left):
    state = left(memory__a="x")
    (state / "memory/secret").symlink_to("/etc/passwd")
    (state / "skills").symlink_to("/etc")
    store = LearnerStore.open(tmp_path / "store")
    store.offer(1.0, state, rollout="r1")
    assert store.changes(0, 1) == {"memory/a": "added"}


@pytest.mark.parametrize("broken", ["{", '{"version": 2, "generations": []}', "missing folder"])
def test_a_broken_store_is_said_to_be_one(tmp_path, broken):
    store = LearnerStore.open(tmp_path / "store")
    if broken == "missing folder":
        shutil.rmtree(store.folder(0))
    else:
        (store.root / LEARNER_FILE).write_text(broken)
    with pytest.raises(ConfigurationError, match=r"cannot be read|of version 2|is missing"):
        LearnerStore.open(tmp_path / "store")


def test_the_curve_is_a_picture_of_every_scored_rollout(tmp_path, left):
    store = LearnerStore.open(tmp_path / "store")
    for number, reward in enumerate([0.2, None, 0.8, 0.5, 0.9]):
        store.offer(reward, left(memory__a=str(number)), rollout=f"r{number}", task=f"<t{number}>")
    picture = ElementTree.fromstring(learning_curve(store.steps, "a & b"))
    titles = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [
        "<t0>: 0.2, stamped, generation 1",
        "<t2>: 0.8, stamped, generation 2",
        "<t3>: 0.5, reverted, generation 2",
        "<t4>: 0.9, stamped, generation 3",
    ]
    assert ElementTree.fromstring(learning_curve([], "nothing yet")) is not None
