"""Recording and replaying: the same bytes again, found by what a request says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchflow_gateway_relay.replay import Replay, first_difference

from benchflow_core.contracts import Exchange, RolloutKey
from benchflow_core.errors import ConfigurationError

WIRES = ("chat", "responses", "messages", "gemini")
FIELDS = ("wire", "status", "error_type", "content_type", "answer", "request")


async def record(bench: Any, key: RolloutKey, path: Path) -> list[Exchange]:
    """What was exchanged, as a recording."""
    found = await bench.exchanges(key)
    path.write_text("".join(json.dumps({n: getattr(e, n) for n in FIELDS}) + "\n" for e in found))
    return list(found)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
async def test_the_same_bytes_come_again_and_nobody_is_asked(
    bench: Any, tmp_path: Path, wire: Any, stream: bool
) -> None:
    bench.model.script("words", [{"text": "These very words.", "usage": {"input": 11, "output": 7}}])
    key = await bench.key(wire, record=True)
    first = await bench.ask(key, wire, "[[fake:words]]", stream=stream)
    await record(bench, key, tmp_path / "r.jsonl")
    asked = len(bench.model.log)
    again = await bench.key(wire, replay=tmp_path / "r.jsonl", target={"credential_env": ("NOT_SET",)})
    status, body, headers = await bench.ask(again, wire, "[[fake:words]]", stream=stream)
    assert (status, body) == first[:2] and headers["content-type"] == first[2]["content-type"]
    assert len(bench.model.log) == asked
    [exchange] = await bench.exchanges(again)
    assert exchange.replayed == "exact" and exchange.usage.source == "recording"
    assert (exchange.usage.input_tokens, exchange.usage.output_tokens, exchange.usage.cost_usd) == (11, 7, 0.0)


async def test_errors_and_broken_streams_come_again_in_their_order(bench: Any, tmp_path: Path) -> None:
    bench.model.script("x", [{"text": "word " * 40}])
    bench.model.fault(status=529, error="busy")
    bench.model.fault(cut=3, text="word " * 40)
    key = await bench.key("chat", record=True)
    for _ in range(3):
        await _try(bench, key)
    recorded = await record(bench, key, tmp_path / "r.jsonl")
    assert [e.error_type for e in recorded] == ["provider_error", "stream_cut", None]
    again = await bench.key("chat", replay=tmp_path / "r.jsonl", target={"credential_env": ("NOT_SET",)})
    for _ in range(3):
        await _try(bench, again)
    found = await bench.exchanges(again)
    assert [(e.status, e.error_type) for e in found] == [(e.status, e.error_type) for e in recorded]


async def _try(bench: Any, key: RolloutKey) -> None:
    import aiohttp

    try:
        await bench.ask(key, "chat", "[[fake:x]]", stream=True)
    except aiohttp.ClientPayloadError:
        pass


async def test_a_request_is_found_although_times_and_ids_changed(bench: Any, tmp_path: Path) -> None:
    said = "It is {time}. Session {id}. In it: shell-{six}. Your folder is /tmp/run-{n}. The command took {n}.5 ms. Model on 127.0.0.1:{n}."
    then = said.format(
        time="Mon Nov 16 2026, 05:21:14 UTC", id="01a1e1c5-da2b-7231-802e-f95aa9f29b64", n=4123, six="142efL"
    )
    now = said.format(
        time="Tue Dec 1 2026, 17:02:55 UTC", id="7c0f3a52-1b2c-4d5e-8f90-aabbccddeeff", n=5999, six="xcN0Of"
    )
    key = await bench.key("chat", record=True)
    await bench.ask(key, "chat", then, metadata={"user": "a"})
    await record(bench, key, tmp_path / "r.jsonl")
    again = await bench.key("chat", replay=tmp_path / "r.jsonl")
    assert (await bench.ask(again, "chat", now, metadata={"user": "b"}))[0] == 200
    [exchange] = await bench.exchanges(again)
    assert exchange.replayed == "like" and exchange.divergence is None


async def test_what_the_recording_does_not_hold_goes_to_the_provider(bench: Any, tmp_path: Path) -> None:
    key = await bench.key("chat", record=True)
    await bench.ask(key, "chat", "one")
    await record(bench, key, tmp_path / "r.jsonl")
    asked = len(bench.model.log)
    again = await bench.key("chat", replay=tmp_path / "r.jsonl")
    for prompt in ("two", "one", "one"):
        assert (await bench.ask(again, "chat", prompt))[0] == 200
    assert len(bench.model.log) == asked + 2
    other, same, after = await bench.exchanges(again)
    assert (
        other.divergence
        == 'the request differs from number 1 of the recording at messages[0].content: "one" then, "two" now'
    )
    assert (same.replayed, same.divergence) == ("exact", None)
    assert (after.replayed, after.divergence) == ("", "the recording has ended")


async def test_without_a_key_of_the_provider_leaving_the_recording_is_refused(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("")
    again = await bench.key("messages", replay=tmp_path / "r.jsonl", target={"credential_env": ("NOT_SET",)})
    status, body, _ = await bench.ask(again, "messages", "hello")
    assert status == 409 and b"no key to go on live" in body and bench.model.log == type(bench.model.log)()
    [exchange] = await bench.exchanges(again)
    assert exchange.error_type == "replay_diverged"


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"wire": "chat"}', '{"wire": 1, "request": {}, "answer": "", "status": 200}']
)
async def test_a_file_that_is_no_recording_is_refused(bench: Any, tmp_path: Path, line: str) -> None:
    (tmp_path / "r.jsonl").write_text(f"{line}\n")
    with pytest.raises(ConfigurationError, match=r"r\.jsonl:1 is not a recorded exchange"):
        await bench.key("chat", replay=tmp_path / "r.jsonl")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        await bench.key("chat", replay=tmp_path / "none.jsonl")


def test_the_first_difference_is_named() -> None:
    assert first_difference({"a": [1, 2]}, {"a": [1, 2, 3]}) == "a: 2 entries then, 3 now"
    assert first_difference({"a": 1}, {"a": 1, "b": True}) == "b: null then, true now"
    assert first_difference({"a": {"b": "x" * 100 + "1"}}, {"a": {"b": "x" * 100 + "2"}}).startswith("a.b: ")


def test_only_places_are_kept_of_a_large_recording(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with path.open("w") as file:
        for number in range(50):
            body = {"model": "m", "messages": [{"role": "user", "content": f"{number} " + "x y " * 5000}]}
            file.write(json.dumps({"wire": "chat", "status": 200, "answer": "{}", "request": body}) + "\n")
    replay = Replay(path)
    assert path.stat().st_size > 900_000
    import pickle

    assert len(pickle.dumps(vars(replay))) < 50_000
