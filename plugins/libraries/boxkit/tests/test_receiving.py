"""What a box sends to this host is untrusted: forged rows of a transfer write nothing outside their target."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchflow_boxkit.inside.receiving import Placement, Receiver
from benchflow_boxkit.inside.sending import LENGTH, Limits, row
from benchflow_boxkit.inside.wire import Refused

TOP = row("top", mode=0o755)
LIMITS = Limits(max_bytes=1000, max_entries=10, max_depth=5)


@pytest.fixture
def receive(tmp_path: Path) -> Iterator[object]:
    receivers = []

    def feed(*rows: bytes, links: bool = False) -> Receiver:
        receiver = Receiver(str(tmp_path / "target"), LIMITS, Placement(least=0o600), links=links)
        receivers.append(receiver)
        receiver.feed(b"".join(rows))
        return receiver

    yield feed
    for receiver in receivers:
        receiver.close()


def _raw(content: object) -> bytes:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return LENGTH.pack(len(body)) + body


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../out", "/etc/x", "a\0b"])
@pytest.mark.parametrize("kind", ["file", "dir", "link"])
def test_only_single_path_components_are_written(receive, tmp_path: Path, kind: str, name: str) -> None:
    with pytest.raises(Refused, match="unsafe name"):
        receive(TOP, row(kind, name, 0o644, 2, extra="x"), b"hi", links=True)
    assert [p.name for p in tmp_path.rglob("*")] == ["target"]


def test_a_link_is_refused_where_only_files_are_expected(receive, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="unexpected kind 'link'"):
        receive(TOP, row("link", "reward.txt", extra="/etc/passwd"))
    assert not (tmp_path / "target" / "reward.txt").is_symlink()


@pytest.mark.parametrize(
    "rows",
    [
        [row("file", "x", 0o644, 2)],
        [row("up")],
        [TOP, row("up"), row("file", "x", 0o644, 2)],
        [TOP, row("up"), row("up")],
        [TOP, TOP],
        [TOP, row("top-file", "x", 0o644, 2)],
    ],
)
def test_rows_out_of_place_are_refused(receive, tmp_path: Path, rows: list[bytes]) -> None:
    with pytest.raises(Refused, match="out of place"):
        receive(*rows)
    assert not list(tmp_path.rglob("x"))


@pytest.mark.parametrize(
    "content",
    [
        ["file", "x", 0o644, -5, "", [0, 0]],
        ["file", "x", -1, 2, "", [0, 0]],
        ["file", "x", 0o644, 1e400, "", [0, 0]],
        ["file", "x", 0o644, "2", "", [0, 0]],
        ["file", ["x"], 0o644, 2, "", [0, 0]],
        ["file", "x", 0o644, 2, "", [0]],
        ["file", "x", 0o644, 2, "", None],
        [["file"], "x", 0o644, 2, "", [0, 0]],
        ["file", "x"],
        {"kind": "file"},
        b"no json",
        b"[" * 100_000,
    ],
)
def test_rows_that_make_no_sense_are_refused(receive, tmp_path: Path, content: object) -> None:
    with pytest.raises(Refused, match="makes no sense"):
        receive(TOP, _raw(content))
    assert not list(tmp_path.rglob("x"))


@pytest.mark.parametrize("extra", ["text", None, {}, {"errno": "28"}, {"errno": [28]}, {"refused": ["x"]}])
def test_an_error_that_makes_no_sense_is_a_refusal(receive, extra: object) -> None:
    with pytest.raises(Refused):
        receive(TOP, row("error", extra=extra))


def test_an_error_of_the_sender_is_told_from_one_of_this_host(receive, tmp_path: Path) -> None:
    receiver = Receiver(str(tmp_path / "target"), LIMITS)
    with pytest.raises(OSError, match="full"):
        receiver.feed(TOP + row("error", extra={"errno": errno.ENOSPC, "text": "full"}))
    assert receiver.sender_failed
    receiver.close()


def test_limits_hold_whatever_sizes_are_announced(receive, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="more than 1000 bytes"):
        receive(TOP, row("file", "a", 0o644, 600), b"x" * 600, row("file", "b", 0o644, 600))
    with pytest.raises(Refused, match="more than 10 entries"):
        receive(TOP, *(row("file", f"f{i}", 0o644) for i in range(11)))
    with pytest.raises(Refused, match="deeper than 5"):
        receive(TOP, *(row("dir", "d", 0o755) for _ in range(6)))


def test_what_is_allowed_arrives(receive, tmp_path: Path) -> None:
    done = receive(TOP, row("dir", "d", 0o700), row("file", "f", 0o600, 2), b"hi", row("up"), row("up"), row("end"))
    assert done.done and (tmp_path / "target/d/f").read_bytes() == b"hi"
    assert not os.access(tmp_path / "target/d/f", os.X_OK)
