"""Ten tasks and three players through us and through the package's own client: the same rewards."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett")


def script(tool: str, field: str, said: Callable[[str], str]) -> str:
    turns = [
        {"match": f"^Word {number}:", "steps": [{"tool": tool, "input": {field: said(word)}}, {"say": "Done."}]}
        for number, word in enumerate(WORDS)
    ]
    return json.dumps({"turns": turns})


PLAYERS = {
    "reference": {"script": script("answer", "word", lambda word: word)},
    "nop": {"agent": "nop"},
    "half": {"script": script("guess", "letter", lambda word: word[0])},
}


@pytest.mark.timeout(900)  # thirty rollouts
def test_ten_tasks_are_worth_the_same(server: Any, original: Any, bench: Any) -> None:
    theirs = original(server)
    address = f"{server.url}?environment=words"
    for player, how in PLAYERS.items():
        ours = bench(address, **how)
        rows = zip(ours.results, ours.rewards, theirs[player], strict=True)
        print(f"\n{server.dialect}, {player}: {theirs[f'{player} seconds']:.3f} s each by the original client")
        print("\n".join(f"  {result['task_name']:18} ours {mine}, theirs {other}" for result, mine, other in rows))
        assert ours.rewards == theirs[player], player
        finished = {result["loop"]["finished"] for result in ours.results}
        assert finished == {player == "reference"}
    begun, ended = server.sessions()
    assert begun == ended == 60
