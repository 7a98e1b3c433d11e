"""Whether the owner of a box still lives, read from its labels."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from benchflow_boxkit import leases

TERM = 100.0


def dead(*owner: str, expires_after: float = TERM) -> bool:
    """Whether a box with this owner would be removed."""
    found = leases.labels("box", {}, expires_after=expires_after)
    return leases.is_dead(leases.lease("x", {**found, leases.OWNER: json.dumps(owner)}))


def here() -> list[str]:
    """This process as an owner: machine, start of it, process namespace, pid and when it began."""
    return list(json.loads(leases.labels("box", {}, expires_after=TERM)[leases.OWNER]))


def test_an_owner_that_lives_keeps_its_boxes_beyond_their_term() -> None:
    assert not dead(*here(), expires_after=-1)


def test_an_owner_from_before_the_machine_was_started_again_is_dead() -> None:
    machine, _, *rest = here()
    assert dead(machine, "another-start", *rest)


def test_a_process_id_that_somebody_else_has_now_is_no_owner() -> None:
    assert dead(*here()[:-1], "1") and dead(*here()[:-1], "")


def test_an_owner_that_cannot_be_seen_is_judged_by_the_term() -> None:
    _, boot, *rest = here()
    assert not dead("another-machine", boot, *rest) and dead("another-machine", boot, *rest, expires_after=-1)


def test_a_process_that_ended_and_was_not_collected_is_dead() -> None:
    child = subprocess.Popen(["sleep", "0.2"])
    began = Path(f"/proc/{child.pid}/stat").read_text().rpartition(") ")[2].split()[19]
    owner = (*here()[:-2], str(child.pid), began)
    assert not dead(*owner)
    end = time.monotonic() + 10
    while ") Z " not in Path(f"/proc/{child.pid}/stat").read_text() and time.monotonic() < end:
        time.sleep(0.05)
    assert dead(*owner)
    child.wait()
