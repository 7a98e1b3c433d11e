"""The kit's suites: what every source, adapter, driver and verifier has to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchflow_adapter_ors.plugin import benchflow_adapter, benchflow_source
from benchflow_testing_kit import (
    AdapterConformance,
    DriverConformance,
    SourceConformance,
    VerifierCase,
    VerifierConformance,
)

from benchflow_core.contracts import SourceRequest, Task
from benchflow_core.errors import ConfigurationError, VerifierError


def fetch(url: str, tmp_path: Path, ref: str | None = None) -> Any:
    return benchflow_source().fetch(SourceRequest(f"env:{url}", ref=ref, cache_dir=tmp_path / "cache"))


@pytest.fixture
def folders(server: Any, tmp_path: Path) -> list[Path]:
    return sorted(fetch(f"{server.url}?environment=words&limit=2", tmp_path).root.iterdir())


class TestSource(SourceConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "ors"

    @pytest.fixture
    def source_uris(self, server: Any) -> list[str]:
        return [f"env:{server.url}?environment=words"]


class TestAdapter(AdapterConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "ors"

    @pytest.fixture
    def good_tasks(self, folders: list[Path]) -> list[Path]:
        return folders

    @pytest.fixture
    def bad_tasks(self, folders: list[Path], tmp_path: Path) -> Iterator[list[Path]]:
        good = json.loads((folders[0] / "ors.json").read_text())
        bad = [{}, [], {**good, "index": "1"}, {**good, "rewards": "most"}, {**good, "server": {}}, {**good, "more": 1}]
        for number, data in enumerate(bad):
            (tmp_path / f"bad-{number}").mkdir()
            (tmp_path / f"bad-{number}/ors.json").write_text(json.dumps(data))
        yield [tmp_path / f"bad-{number}" for number in range(len(bad))]


class TestDriver(DriverConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "ors"

    @pytest.fixture
    def driver_task(self, folders: list[Path]) -> Task:
        return benchflow_adapter().load(folders[0])


def paid(value: float, **more: Any) -> dict[str, Any]:
    return {"kind": "reward", "data": {"value": value, "source": "ors"}, **more}


ENDED = {"kind": "ors_ended", "data": {"finished": True, "reason": "by the environment", "calls": 3}}


class TestVerifier(VerifierConformance):
    @pytest.fixture
    def plugin(self) -> str:
        return "ors"

    @pytest.fixture
    def cases(self) -> list[VerifierCase]:
        three = [paid(0.5), paid(0.25), paid(-1.0), ENDED]
        worth = {"last": -1.0, "first": 0.5, "sum": -0.25, "mean": -0.25 / 3, "max": 0.5, "min": -1.0}
        by_policy = [VerifierCase(n, {"reward": v}, params={"rewards": n}, events=three) for n, v in worth.items()]
        forged = [paid(0.5), paid(1.0, session="s", turn=1), {"kind": "reward", "data": {"value": 1.0}}, ENDED]
        return [
            *by_policy,
            VerifierCase("last is the default", {"reward": -1.0}, events=three),
            VerifierCase("nothing was paid", {"reward": 0.0}, events=[ENDED]),
            VerifierCase("an agent's own and another source's", {"reward": 0.5}, events=forged),
            VerifierCase("an end that an agent made up", VerifierError, events=[paid(1.0), {**ENDED, "session": "s"}]),
            VerifierCase("no session", VerifierError, events=[]),
        ]


def test_the_answer_is_not_in_the_folder(folders: list[Path]) -> None:
    text = (folders[0] / "ors.json").read_text()
    assert "alpha" not in text and json.loads(text)["index"] == 0


def test_a_version_is_the_digest_that_a_result_says(server: Any, tmp_path: Path) -> None:
    address = f"{server.url}?environment=words"
    found = fetch(address, tmp_path)
    assert len(list(found.root.iterdir())) == 10
    assert fetch(address, tmp_path, found.provenance["resolved_sha"]).root == found.root
    for ref, said in (("0" * 64, "are not those of"), ("../../etc", "is no version")):
        with pytest.raises(ConfigurationError, match=said):
            fetch(address, tmp_path, ref)


def test_an_environment_that_lists_in_pieces(server: Any, tmp_path: Path) -> None:
    specs = [
        json.loads((f / "ors.json").read_text())
        for f in fetch(f"{server.url}?environment=words", tmp_path).root.iterdir()
    ]
    few = [
        json.loads((f / "ors.json").read_text())
        for f in fetch(f"{server.url}?environment=words&limit=3", tmp_path).root.iterdir()
    ]
    assert len(few) == 3 and all(task in specs for task in few)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?split=dev", "has no split 'dev'. Name one with ?split=…: train, test."),
        ("?environment=Words", "has no environment 'Words'. Name one with ?environment=…: words"),
        ("?reward=sum", "cannot be asked for 'reward=sum'. Known: environment, image, limit"),
        ("?rewards=most", "cannot be asked for 'rewards=most'. Known: last, first, sum"),
        ("?network=host", "cannot be asked for 'network=host'. Known: none, public."),
        ("?limit=0", "'limit=0' is no number of tasks."),
    ],
)
def test_what_cannot_be_asked_for_is_one_line(server: Any, tmp_path: Path, query: str, said: str) -> None:
    more = "" if "environment" in query else "&environment=words"
    with pytest.raises(ConfigurationError) as error:
        fetch(server.url + query + more, tmp_path)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_addresses() -> None:
    matches = benchflow_source().matches
    good = ["openreward/Eigent/SETA", "http://127.0.0.1:8080", "https://example.org/x?split=test"]
    assert all(matches(f"env:{address}") and not matches(address) for address in good)
    assert not any(
        matches(f"env:{address}") for address in ("primeintellect/x", "openreward", "", "x.whl", "http://h/x.whl")
    )
