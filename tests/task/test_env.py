from __future__ import annotations

import pytest

from benchflow_core.contracts.tasks import Solution, Task, TaskEnvironment, VerifierSettings
from benchflow_core.errors import ConfigurationError
from benchflow_core.task import requested_host_vars, resolve_env

HOST = {"KEY": "secret", "EMPTY": ""}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ("${KEY}", "secret"),
        ("${EMPTY}", ""),
        ("${EMPTY:-default}", ""),
        ("${GONE:-default}", "default"),
        ("${GONE:-}", ""),
        ("${GONE:-a:-b}", "a:-b"),
        ("${GONE:-${KEY}}", "${KEY}"),
        ("${GONE:-x}${KEY}", "x}${KEY"),
        ("prefix-${KEY}", "prefix-${KEY}"),
        ("${KEY} ", "${KEY} "),
        ("${KEY}${KEY}", "${KEY}${KEY}"),
        ("$KEY", "$KEY"),
        ("${}", "${}"),
        ("${KEY:x}", "${KEY:x}"),
        ("${GONE:-two\nlines}", "${GONE:-two\nlines}"),
    ],
)
def test_only_a_whole_value_is_a_template(value: str, expected: str) -> None:
    assert resolve_env({"A": value}, HOST, where="environment.env") == {"A": expected}


def test_every_missing_variable_is_named_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_env({"A": "${ONE}", "B": "${TWO}", "C": "${ONE}"}, HOST, where="verifier.env")
    assert caught.value.message == "verifier.env asks for the host's 'ONE', 'TWO', which are not set or not allowed."
    assert caught.value.remedy == "Set and allow it: --allow-env ONE --allow-env TWO"


def test_what_a_task_asks_for_is_listed_with_its_places(tmp_path, make_task) -> None:
    from benchflow_core.task import load_task

    config = """
    [environment.env]
    A = "${KEY}"
    B = "text"
    [verifier.env]
    J = "${JUDGE:-none}"
    K = "${KEY:-x}"
    [solution.env]
    S = "${ONLY_SOLUTION}"
    """
    found = {v.name: v for v in requested_host_vars(load_task(make_task(files={"task.toml": config})))}
    assert list(found) == ["JUDGE", "KEY", "ONLY_SOLUTION"]
    assert found["KEY"].required and found["KEY"].places == ("environment.env.A", "verifier.env.K")
    assert not found["JUDGE"].required


def test_a_verifier_box_of_its_own_is_looked_at_too(tmp_path) -> None:
    settings = VerifierSettings(environment=TaskEnvironment(env={"X": "${DEEP}"}))
    task = Task("t", tmp_path, "f", "", dialect=None, verifier=settings, solution=Solution(tmp_path))  # type: ignore[arg-type]
    assert [v.places for v in requested_host_vars(task)] == [("verifier.environment.env.X",)]
