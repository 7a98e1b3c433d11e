"""Transfers over a socket, whose large files are passed as descriptors; the other end may be an agent's program."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from benchflow_boxkit.inside import passing, sending
from benchflow_boxkit.inside.receiving import Placement, Receiver
from benchflow_boxkit.inside.sending import PASSED, Limits, passed_records, row
from benchflow_boxkit.inside.wire import Refused

LIMITS = Limits(max_bytes=500_000)


def _transfer(target: Path, send: Callable[[socket.socket], None]) -> Receiver:
    """Feed a receiver with what is sent over a socket, until it is done or the sender is."""
    ours, theirs = socket.socketpair()
    receiver = Receiver(str(target), LIMITS, Placement())

    def work() -> None:
        with theirs, contextlib.suppress(ConnectionError):  # the receiver may have refused it
            send(theirs)

    sender = threading.Thread(target=work)
    sender.start()
    try:
        with ours:
            while not receiver.done:
                data, descriptors = passing.receive(ours)
                if not data:
                    break
                receiver.feed(data, descriptors)
        return receiver
    finally:
        sender.join()
        receiver.close()


def test_files_of_every_size_arrive(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    sizes = [0, 1, passing.LARGE - 1, passing.LARGE, passing.LARGE + 1, 3 * passing.LARGE]
    for number, size in enumerate(sizes):
        (source / "below" / str(number)).write_bytes(os.urandom(size))
    parts = list(passed_records(str(source), links=True))
    assert sum(isinstance(part, passing.PassedFile) for part in parts) == 3, "only large files are passed"
    passing.close(part.descriptor for part in parts if isinstance(part, passing.PassedFile))
    before = len(os.listdir("/proc/self/fd"))
    received = _transfer(tmp_path / "target", lambda sock: passing.send(sock, passed_records(str(source), links=True)))
    assert received.done and len(os.listdir("/proc/self/fd")) == before, "no descriptor stays open"
    for number in range(len(sizes)):
        name = f"below/{number}"
        assert (tmp_path / "target" / name).read_bytes() == (source / name).read_bytes()


def test_what_is_passed_counts_against_the_limits(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 600_000)
    with pytest.raises(Refused, match="more than 500000 bytes"):
        _transfer(
            tmp_path / "target", lambda sock: passing.send(sock, passed_records(str(tmp_path / "large"), links=True))
        )
    claimed = [
        row("top", mode=0o755),
        passing.PassedFile(row("file", "f", 0o644, 10, PASSED), os.open(tmp_path / "large", os.O_RDONLY)),
        sending.record("end"),
    ]
    assert _transfer(tmp_path / "folder", lambda sock: passing.send(sock, claimed)).done
    assert (tmp_path / "folder/f").stat().st_size == 10, "no more than was announced is taken"


def test_a_row_without_its_file_and_what_is_no_file_are_refused(tmp_path: Path) -> None:
    top, said = row("top", mode=0o755), row("file", "f", 0o644, 10, PASSED)
    with pytest.raises(Refused, match="did not come with its row"):
        _transfer(tmp_path / "target", lambda sock: passing.send(sock, [top, said]))
    read, write = os.pipe()
    os.close(write)
    with pytest.raises(Refused, match="is none"):
        _transfer(tmp_path / "target", lambda sock: passing.send(sock, [top, passing.PassedFile(said, read)]))
